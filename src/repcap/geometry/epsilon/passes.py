"""The first pass over the rows: every sum that one reading can give."""

from __future__ import annotations

import dataclasses

import torch

from repcap.geometry.epsilon import gram
from repcap.geometry.epsilon.moments import Moments, MomentsBuilder
from repcap.geometry.epsilon.repeats import RepeatFinder
from repcap.geometry.rows.reader import RowReader
from repcap.geometry.rows.unit_rows import UnitRows

_SUM_ROWS = 512
"""Rows that are taken to float64 at a time."""

Kind = tuple[bool, bool]
"""(beyond the tokenizer, direction occurred before)."""


@dataclasses.dataclass(frozen=True, eq=False)
class FirstPass:
    """What one reading of the rows gives.

    parts: moments of disjoint sets of rows by kind; they are added, never subtracted, so nothing cancels. Empty where
    the rows are few and `held`.
    held: (n, d) float64 unit rows where n <= d + 1 rows were read, else None.
    padded, repeat: (n,) bool, the kind of each row. indices: (n,) int64 row numbers. norms: (n,) float64 lengths.
    total: (d,) float64, sum of the rows as stored. dropped: (row number, reason).
    groups: row numbers of equal directions.
    """

    parts: dict[Kind, Moments]
    held: torch.Tensor | None
    padded: torch.Tensor
    repeat: torch.Tensor
    indices: torch.Tensor
    norms: torch.Tensor
    total: torch.Tensor
    dropped: tuple[tuple[int, str], ...]
    groups: list[list[int]]

    @property
    def count(self) -> int:
        """Rows that have a direction, n."""
        return len(self.indices)

    def mask(self, *, padding: bool = True, repeats: bool = True) -> torch.Tensor:
        """(n,) bool: all rows, or without the padding, without the repeats, or without both."""
        keep = torch.ones(self.count, dtype=torch.bool)
        if not padding:
            keep &= ~self.padded
        if not repeats:
            keep &= ~self.repeat
        return keep

    def moments(self, *, padding: bool = True, repeats: bool = True) -> Moments:
        """Moments of the rows of `mask`."""
        if self.held is not None:
            return Moments.of(self.held[self.mask(padding=padding, repeats=repeats)])
        chosen = [part for kind, part in self.parts.items() if not (kind[0] > padding or kind[1] > repeats)]
        result = chosen[0] if chosen else Moments.empty(len(self.total))
        for part in chosen[1:]:
            result = result + part
        return result


class _Part:
    """Sums of the rows of one kind. A few rows are kept as they are; G is formed only when they become many."""

    def __init__(self, reader: RowReader, keep: int) -> None:
        self._reader, self._keep = reader, keep
        self._pending: list[torch.Tensor] = []
        self._builder: MomentsBuilder | None = None

    def add(self, units: torch.Tensor) -> None:
        if not self._keep:
            self._fold(units)
            return
        self._pending.append(units.clone())
        if sum(map(len, self._pending)) >= self._keep:
            self._fold(torch.cat(self._pending))
            self._pending = []

    def _fold(self, units: torch.Tensor) -> None:
        if self._builder is None:
            self._builder = MomentsBuilder(self._reader.dim, self._reader.device, self._reader.dtype)
        self._builder.add(units.to(self._reader.device))

    def result(self) -> Moments:
        if self._pending:
            self._fold(torch.cat(self._pending))
            self._pending = []
        return Moments.empty(self._reader.dim) if self._builder is None else self._builder.result()


class Collector:
    """Takes blocks of unit rows apart by kind and adds them up."""

    def __init__(self, reader: RowReader, border: int, find_repeats: bool) -> None:
        self.reader, self.border = reader, border
        self.hold = gram.fits(reader.count, reader.dim)
        self.finder = RepeatFinder(reader.dim, reader.unit) if find_repeats else None
        self.parts: dict[Kind, _Part] = {}
        self.blocks: list[tuple[torch.Tensor, ...]] = []
        self.held: list[torch.Tensor] = []
        self.dropped: list[tuple[int, str]] = []
        self.total = torch.zeros(reader.dim, dtype=torch.float64)
        self._wide = torch.empty((_SUM_ROWS, reader.dim), dtype=torch.float64)

    def add(self, block: UnitRows) -> None:
        self.dropped.extend(block.dropped)
        if not len(block.indices):
            return
        self._add_stored(block)
        padded = block.indices >= self.border
        repeat = torch.zeros_like(padded)
        if self.finder is not None:
            repeat = self.finder.find(block.units, block.indices)
        self.blocks.append((block.indices, block.norms, padded, repeat))
        if self.hold:
            self.held.append(block.units.clone())
            return
        for kind in ((False, False), (False, True), (True, False), (True, True)):
            chosen = (padded == kind[0]) & (repeat == kind[1])
            size = int(chosen.sum())
            if size:
                units = block.units if size == len(chosen) else block.units[chosen]
                keep = 0 if kind == (False, False) else max(256, self.reader.dim // 4)
                self.parts.setdefault(kind, _Part(self.reader, keep)).add(units)

    def _add_stored(self, block: UnitRows) -> None:
        """Add the stored rows themselves to `total`, from unit rows and lengths.

        Through one buffer: fresh pieces of this size would leave holes in the heap, half a gigabyte at d = 4096.
        """
        largest = block.norms.max()  # taken out, so that no sum overflows
        for weights, units in zip((block.norms / largest).split(_SUM_ROWS), block.units.split(_SUM_ROWS), strict=True):
            wide = self._wide[: len(units)].copy_(units)
            self.total += (weights @ wide) * largest

    def result(self) -> FirstPass:
        columns = [torch.cat(column) for column in zip(*self.blocks, strict=True)] or [
            torch.empty(0, dtype=dtype) for dtype in (torch.long, torch.float64, torch.bool, torch.bool)
        ]
        dim = self.reader.dim
        held = torch.cat(self.held) if self.held else torch.empty((0, dim), dtype=torch.float64)
        return FirstPass(
            parts={kind: part.result() for kind, part in self.parts.items()},
            held=held if self.hold else None,
            indices=columns[0],
            norms=columns[1],
            padded=columns[2],
            repeat=columns[3],
            total=self.total,
            dropped=tuple(self.dropped),
            groups=[] if self.finder is None else self.finder.groups,
        )


def first_pass(reader: RowReader, tokens: int | None = None, *, find_repeats: bool = True) -> FirstPass:
    """Read the rows once. O(n d^2) time; memory O(d^2), one block, and about 200 bytes a row.

    tokens: how many ids the tokenizer knows; rows from there on are padding. None: not known, no row is padding.
    n <= d + 1 rows are read in float64 and held: 8 n d bytes.
    """
    if gram.fits(reader.count, reader.dim):
        reader = reader.replaced(dtype=torch.float64)
    collector = Collector(reader, reader.matrix.count if tokens is None else tokens, find_repeats)
    for block in reader.units():
        collector.add(block)
    return collector.result()
