"""The largest |cosine| of each row of one matrix with any row of another, block by block."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import numpy as np
import torch

from repcap.devices import resolve_device
from repcap.errors import VectorsError
from repcap.geometry.rows.unit_rows import Normaliser
from repcap.matrix import Matrix, ProgressFn

MEMORY = 1 << 30
"""Bytes of unit rows that a table keeps; a larger one is read again at every pass."""
BLOCK, DEVICE_BLOCK = 2048, 8192
PANEL = 8192


class UnitTable:
    """The unit rows of a matrix, float32, in blocks on a device; kept after the first pass where they fit `memory`."""

    def __init__(self, matrix: Matrix, device: str | torch.device = "auto", memory: int = MEMORY) -> None:
        self.matrix, self.device = matrix, resolve_device(device)
        self.block = BLOCK if self.device.type == "cpu" else DEVICE_BLOCK
        self._keep = 4 * matrix.count * matrix.dim <= memory
        self._kept: list[tuple[np.ndarray, torch.Tensor]] | None = None

    def blocks(self) -> Iterator[tuple[np.ndarray, torch.Tensor]]:
        """Yield (row numbers (m,), unit rows (m, d)) of the rows that have a direction."""
        if self._kept is not None:
            yield from self._kept
            return
        kept: list[tuple[np.ndarray, torch.Tensor]] = []
        for first, block in self.matrix.blocks(self.block):
            found = Normaliser(torch.float32)(block, torch.arange(first, first + len(block)))
            if not len(found.indices):
                continue
            item = (found.indices.numpy(), found.units.to(self.device))
            if self._keep:
                kept.append(item)
            yield item
        self._kept = kept if self._keep else None


@dataclasses.dataclass(frozen=True, eq=False)
class Alignment:
    """Of each row the largest |cosine| and the row that attains it.

    cosine: (m,) float32, NaN for a row without a direction. index: (m,) int64, -1 there. Equal values: lowest number.
    """

    cosine: np.ndarray
    index: np.ndarray

    @property
    def largest(self) -> int | None:
        """The row with the largest |cosine| of all, or None where no row has a direction."""
        return None if np.isnan(self.cosine).all() else int(np.nanargmax(self.cosine))


def largest_alignment(rows: Matrix, table: UnitTable, on_progress: ProgressFn | None = None) -> Alignment:
    """The largest |cosine| of each row of `rows`, (m, d), with a row of `table`, (n, d).

    Cost: 2 m n d operations. Memory: 8192 rows, one block of the table (or the table where it is kept) and one block of
    cosines; never m x n.

    Raises
    ------
    VectorsError
        if the widths differ, or no row of the table has a direction.
    """
    if rows.dim != table.matrix.dim:
        raise VectorsError(
            f"rows of {rows.dim} columns ({rows.info.name}) and of {table.matrix.dim} ({table.matrix.info.name}) have "
            "no cosine: both must live in the same space"
        )
    cosine = np.full(rows.count, np.nan, dtype=np.float32)
    index = np.full(rows.count, -1, dtype=np.int64)
    buffer = torch.empty(min(table.block, rows.count) * min(table.block, table.matrix.count), device=table.device)
    done, total = 0, rows.count * table.matrix.count
    for first in range(0, rows.count, PANEL):
        stop = min(first + PANEL, rows.count)
        found = Normaliser(torch.float32)(rows.read(first, stop), torch.arange(first, stop))
        held = found.units.to(table.device)
        best = torch.full((len(held),), -1.0, device=table.device)
        where = torch.full((len(held),), -1, dtype=torch.long, device=table.device)
        for numbers, others in table.blocks():
            _improve(held, others, torch.from_numpy(numbers), buffer, best, where)
            done += (stop - first) * len(numbers)
            if on_progress is not None:
                on_progress(done, total)
        if bool((where < 0).any()):
            raise VectorsError(f"{table.matrix.info.name} of {table.matrix.info.source} has no row with a direction")
        cosine[found.indices.numpy()] = best.clamp_(0.0, 1.0).cpu().numpy()
        index[found.indices.numpy()] = where.cpu().numpy()
    if on_progress is not None and done < total:
        on_progress(total, total)
    return Alignment(cosine, index)


def _improve(
    held: torch.Tensor,
    others: torch.Tensor,
    numbers: torch.Tensor,
    buffer: torch.Tensor,
    best: torch.Tensor,
    where: torch.Tensor,
) -> None:
    """Take the largest |held . others| of each row into `best`, (m,), and its row number into `where`, (m,).

    buffer: room for the cosines of some rows with all of `others` (fresh pages for each product cost more).
    """
    block = max(1, len(buffer) // len(others))
    for at in range(0, len(held), block):
        part = held[at : at + block]
        product = buffer[: len(part) * len(others)].view(len(part), len(others))
        torch.mm(part, others.mT, out=product)
        value = torch.maximum(product.amax(1), -product.amin(1))  # torch's aminmax is 60 times slower than both
        better = (value > best[at : at + block]).nonzero()[:, 0]
        if len(better):
            # Where the maximum stands is looked up only in rows that it improves, which become rare soon.
            position = product[better].abs_().argmax(dim=1)
            best[at + better] = value[better]
            where[at + better] = numbers.to(position.device)[position]
