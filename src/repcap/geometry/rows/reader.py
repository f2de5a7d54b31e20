"""Which rows are read, in which blocks, and what is done to them before they become unit rows."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import torch

from repcap.devices import resolve_device
from repcap.errors import InputError, VectorsError
from repcap.geometry.rows.unit_rows import NO_REST, ZERO, Normaliser, UnitRows
from repcap.matrix import Matrix

_BLOCK_BYTES = 64 << 20
_MAX_BLOCK_ROWS = 4096

Transform = Callable[[torch.Tensor], torch.Tensor]
"""(b, d) float64 rows to (b, d) float64 rows, in place or not."""


def check_matrix(matrix: Matrix) -> None:
    """Refuse a matrix without rows or columns.

    Raises
    ------
    VectorsError
        if n = 0 or d = 0.
    """
    if matrix.count == 0:
        raise VectorsError(f"{matrix.info.title} has no rows: nothing to measure")
    if matrix.dim == 0:
        raise VectorsError(f"{matrix.info.title} has no columns: nothing to measure")


def select_rows(
    count: int, exclude_ids: Iterable[int] = (), only_ids: Iterable[int] = (), vocab_size: int | None = None
) -> torch.Tensor:
    """Row numbers, sorted int64, out of 0..count-1: below `vocab_size`, among `only_ids`, not in `exclude_ids`.

    An empty `only_ids` means all. Memory: 9 bytes a row.

    Raises
    ------
    InputError
        if an id or `vocab_size` is out of range.
    """
    if vocab_size is not None and not 1 <= vocab_size <= count:
        raise InputError(f"vocabulary size {vocab_size} is outside 1..{count}, the rows of the matrix")
    only = _checked(only_ids, count, "--only-ids")
    excluded = _checked(exclude_ids, count, "--exclude-ids")
    mask = torch.ones(count, dtype=torch.bool)
    if len(only):
        mask.zero_()
        mask[only] = True
    mask[excluded] = False
    if vocab_size is not None:
        mask[vocab_size:] = False
    return mask.nonzero()[:, 0]


def _checked(ids: Iterable[int], count: int, option: str) -> torch.Tensor:
    listed = list(ids)
    for i in listed:
        if not _is_row(i, count):
            raise InputError(f"{option}: {i} is no row of the matrix; rows are 0..{count - 1}")
    return torch.tensor([int(i) for i in listed], dtype=torch.long)


def _is_row(value: Any, count: int) -> bool:
    try:
        return not isinstance(value, bool) and int(value) == value and 0 <= value < count
    except (TypeError, ValueError, OverflowError):
        return False


def default_block_rows(dim: int) -> int:
    """Rows in a block: 64 MiB of float32, at most 4096."""
    return max(1, min(_MAX_BLOCK_ROWS, _BLOCK_BYTES // (4 * dim)))


@dataclasses.dataclass(frozen=True)
class RowReader:
    """Reads chosen rows of a matrix in blocks and turns them into unit rows on a device.

    rows: (m,) int64, sorted row numbers. dtype: float32 or float64 of the unit rows.
    transform: applied to the stored rows in float64 before they are normalised; rows of which it leaves less than
    rounding are dropped with the reason `nothing left`.
    Memory: two stored blocks (one is read ahead while the other is worked on) and one block of unit rows.
    """

    matrix: Matrix
    rows: torch.Tensor
    device: torch.device
    dtype: torch.dtype
    block_rows: int
    transform: Transform | None = None
    on_rows: Callable[[int], None] | None = None
    lock: threading.Lock = dataclasses.field(default_factory=threading.Lock)
    """Held while the matrix is read: a source need not stand two threads."""

    @property
    def dim(self) -> int:
        return self.matrix.dim

    @property
    def count(self) -> int:
        """Rows that are read; those without a direction are among them."""
        return len(self.rows)

    def replaced(
        self,
        *,
        rows: torch.Tensor | None = None,
        dtype: torch.dtype | None = None,
        transform: Transform | None = None,
    ) -> RowReader:
        """The same matrix, read otherwise."""
        return dataclasses.replace(
            self,
            rows=self.rows if rows is None else rows,
            dtype=dtype or self.dtype,
            transform=transform or self.transform,
        )

    def stored(self) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """Yield (row numbers, stored rows). The next block is read by a second thread meanwhile."""
        planned = [indices for indices in self.rows.split(self.block_rows) if len(indices)]
        if self.matrix.contiguous and planned:
            with self.lock:
                self.matrix.prefetch(_runs(self.rows))
        with ThreadPoolExecutor(max_workers=1, thread_name_prefix="repcap-read") as pool:
            ahead = pool.submit(self._fetch, planned[0]) if planned else None
            for position, indices in enumerate(planned):
                assert ahead is not None
                block = ahead.result()
                if position + 1 < len(planned):
                    ahead = pool.submit(self._fetch, planned[position + 1])
                yield indices, block
                if self.on_rows is not None:
                    self.on_rows(len(indices))

    def _fetch(self, indices: torch.Tensor) -> torch.Tensor:
        first, last = int(indices[0]), int(indices[-1])
        span = last - first + 1
        with self.lock:
            if span == len(indices):
                return self.matrix.read(first, last + 1)
            if self.matrix.contiguous:
                runs = _runs(indices)
                if 2 * len(runs) <= len(indices):
                    return torch.cat([self.matrix.read(start, stop) for start, stop in runs])
            elif span <= 2 * len(indices):
                return self.matrix.read(first, last + 1)[indices - first]
            return self.matrix.take(indices.tolist())

    def unit(self, index: int) -> torch.Tensor:
        """The unit row (d,) of one row that has a direction, with the same bits as in its block."""
        block = self._fetch(torch.tensor([index]))
        return Normaliser(self.dtype)(block, torch.tensor([index])).units[0]

    def units(self) -> Iterator[UnitRows]:
        """Yield blocks of unit rows, on the cpu. They share one buffer: use each before the next."""
        normaliser = Normaliser(self.dtype)
        if self.transform is None:
            for indices, block in self.stored():
                yield normaliser(block, indices)
            return
        wide = Normaliser(torch.float64)
        for indices, block in self.stored():
            yield _transformed(block, wide(block, indices), self.transform, normaliser)


def plain_reader(matrix: Matrix, device: str = "auto", rows: torch.Tensor | None = None) -> RowReader:
    """All rows of `matrix`, or `rows`, (m,) ascending numbers, as float32 unit rows in blocks of the default size."""
    return RowReader(
        matrix=matrix,
        rows=torch.arange(matrix.count) if rows is None else rows,
        device=resolve_device(device),
        dtype=torch.float32,
        block_rows=default_block_rows(matrix.dim),
    )


def lengths_of(matrix: Matrix) -> tuple[np.ndarray, list[tuple[int, str]]]:
    """Lengths of all rows, (n,) float64, 0 for a row without a direction, and those rows with the reason.

    One pass, O(n d); memory one block and 8 bytes a row.
    """
    length = np.zeros(matrix.count)
    dropped: list[tuple[int, str]] = []
    normaliser = Normaliser(torch.float32)
    for first, block in matrix.blocks(default_block_rows(matrix.dim)):
        rows = normaliser(block, torch.arange(first, first + len(block)))
        length[rows.indices.numpy()] = rows.norms.numpy()
        dropped += rows.dropped
    return length, dropped


def _transformed(block: torch.Tensor, plain: UnitRows, transform: Transform, normaliser: Normaliser) -> UnitRows:
    """Unit rows of transform(x), where `plain` are the float64 unit rows of `block`; works in the buffer of `plain`."""
    changed = transform(plain.units.mul_(plain.norms[:, None]))
    left = torch.linalg.vector_norm(changed, dim=1)
    # A row is known to the rounding of its stored dtype, and what is taken from it to that of the products it comes
    # from: what is left below either is noise, not a direction.
    stored = 4 * torch.finfo(block.dtype).eps if block.dtype in (torch.float32, torch.float64) else 1e-6
    rounding = max(stored, 4 * torch.finfo(normaliser.dtype).eps)
    gone = left <= rounding * plain.norms
    changed[gone] = 0.0
    again = normaliser(changed, plain.indices)
    emptied = tuple((row, NO_REST if reason == ZERO else reason) for row, reason in again.dropped)
    return UnitRows(again.units, plain.norms[~gone] if emptied else plain.norms, again.indices, plain.dropped + emptied)


def _runs(indices: torch.Tensor) -> list[tuple[int, int]]:
    """Row numbers, (m,), as (first, last + 1) of runs of neighbours."""
    ends = (indices.diff() != 1).nonzero()[:, 0]
    firsts = torch.cat([indices[:1], indices[ends + 1]]).tolist()
    lasts = torch.cat([indices[ends], indices[-1:]]).tolist()
    return [(first, last + 1) for first, last in zip(firsts, lasts, strict=True)]
