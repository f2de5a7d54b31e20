"""The exact distribution of all pairwise cosines, streamed in blocks.

Every unordered pair i < j is multiplied once, binned, and forgotten. The floor is the symmetric half of a full product,
n^2 d operations; what is done with a block while it is in the processor's cache costs about a tenth of multiplying it.
`count_panels` of any share of `panel_pairs` can run anywhere, and the resulting `PairCounts` add up.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch

from repcap.errors import InputError, VectorsError
from repcap.geometry.pairs.blocks import MEMORY, PANEL, PanelPair, Rows, count_above, panel_pairs, scan, where_beyond
from repcap.geometry.pairs.histogram import FINE_BINS, ROUNDING, Extreme, PairCounts, Wanted, quanta
from repcap.matrix import Matrix, ProgressFn

__all__ = ["PanelPair", "count_pairs", "count_panels", "panel_pairs"]

_HALF = FINE_BINS // 2
_PIECE = 1 << 17
"""Cosines whose powers are added up at once on the cpu: 512 kB, which stay in a core's own cache."""
_FEW = 4096
"""Candidates for the most extreme pairs that are sorted here; of more torch picks."""


def count_pairs(
    matrix: Matrix,
    *,
    mask: np.ndarray | None = None,
    wanted: Wanted = Wanted(),
    panel: int = PANEL,
    device: str = "auto",
    memory: int = MEMORY,
    on_progress: ProgressFn | None = None,
) -> PairCounts:
    """Count the cosines of all pairs of rows of `matrix`, shape (n, d). See `count_panels`.

    Raises
    ------
    VectorsError
        if no two rows have a direction.
    """
    chosen = panel_pairs(matrix.count, panel)
    counted = count_panels(
        matrix, chosen, mask=mask, wanted=wanted, panel=panel, device=device, memory=memory, on_progress=on_progress
    )
    if not counted.pairs:
        raise VectorsError(f"{matrix.info.title} has no pair of rows that have a direction")
    return counted


def count_panels(
    matrix: Matrix,
    chosen: Sequence[PanelPair],
    *,
    mask: np.ndarray | None = None,
    wanted: Wanted = Wanted(),
    panel: int = PANEL,
    device: str = "auto",
    memory: int = MEMORY,
    on_progress: ProgressFn | None = None,
) -> PairCounts:
    """Count the cosines of the pairs of rows in these pairs of panels.

    mask: shape (n,), bool, the rows to use; rows without a direction (zero, not finite) are left out in any case.
    wanted: how many of the largest and of the smallest cosines to name, the epsilon beyond which pairs are counted, and
    the centre about which powers are added up.

    Cost: n^2 d operations for all panels. Memory: `memory` bytes of float32 unit rows (at least two panels), and one
    block of cosines a thread. Never n x n. on_progress counts pairs of rows, dropped ones included.

    Raises
    ------
    InputError
        if `wanted` or `mask` is unusable.
    """
    if wanted.keep < 0:
        raise InputError(f"keep must be at least 0, got {wanted.keep}")
    tallies = scan(
        matrix,
        chosen,
        lambda: _Tally(wanted),
        scale=_HALF,
        mask=mask,
        panel=panel,
        device=device,
        memory=memory,
        on_progress=on_progress,
    )
    total = PairCounts.empty(wanted)
    for tally in tallies:
        total = total + tally.result()
    return total


class _Tally:
    """What one thread has counted. Products come scaled by _HALF: bin numbers but for a shift."""

    def __init__(self, wanted: Wanted) -> None:
        self.wanted = wanted
        # Two guard bins: a float32 product may lie just outside [-1, 1].
        self.counts = np.zeros(FINE_BINS + 2, dtype=np.int64)
        self.powers = [0, 0, 0, 0]
        self.above = self.below = 0
        self.largest: list[Extreme] = []
        self.smallest: list[Extreme] = []
        self._index: torch.Tensor | None = None

    def take(self, a: Rows, b: Rows, same: bool, product: torch.Tensor) -> None:
        if not same:
            columns = product.shape[1]
            self._count(product.view(-1), lambda at: (int(a.ids[at // columns]), int(b.ids[at % columns])))
            return
        i, j = torch.triu_indices(product.shape[0], product.shape[0], 1, device=product.device)
        self._count(product[i, j], lambda at: (int(a.ids[int(i[at])]), int(a.ids[int(j[at])])))

    def _count(self, scaled: torch.Tensor, name: Callable[[int], tuple[int, int]]) -> None:
        """scaled: (m,), in the order of the pairs' row numbers."""
        if not scaled.numel():
            return
        low, high = (float(end) / _HALF for end in torch.aminmax(scaled))
        self._extremes(scaled, low, high, name)
        self._beyond(scaled, low, high)
        self._powers(scaled)
        # Truncation is floor for positive numbers; +1 makes room for the lower guard bin.
        index = self._work_space(scaled)
        index.copy_(scaled.add_(_HALF + 1.0))
        self.counts += torch.bincount(index, minlength=FINE_BINS + 2).cpu().numpy()

    def _work_space(self, scaled: torch.Tensor) -> torch.Tensor:
        size = scaled.numel()
        if self._index is None or self._index.numel() < size:
            # int16 halves the traffic on the cpu; an accelerator's atomics want int32.
            dtype = torch.int16 if scaled.device.type == "cpu" else torch.int32
            self._index = torch.empty(size, dtype=dtype, device=scaled.device)
        return self._index[:size]

    def _beyond(self, scaled: torch.Tensor, low: float, high: float) -> None:
        if self.wanted.epsilon is None:
            return
        border = self.wanted.epsilon + ROUNDING
        if high > border:
            self.above += count_above(scaled, border * _HALF)
        border = -self.wanted.epsilon - ROUNDING
        if low < border:
            self.below += count_above(scaled, border * _HALF, under=True)

    def _powers(self, scaled: torch.Tensor) -> None:
        size = _PIECE if scaled.device.type == "cpu" else scaled.numel()
        sums = [0.0] * 4
        for piece in scaled.split(size):
            first = piece - self.wanted.origin
            second = first * first
            sums[0] += _total(first)
            sums[1] += _total(second)
            sums[2] += _total(first * second)
            sums[3] += _total(second * second)
        for power, value in enumerate(sums):
            self.powers[power] += quanta(value / float(_HALF) ** (power + 1))

    def _extremes(self, scaled: torch.Tensor, low: float, high: float, name: Callable[[int], tuple[int, int]]) -> None:
        keep = self.wanted.keep
        if not keep:
            return
        for sign, best, held in ((1.0, high, self.largest), (-1.0, low, self.smallest)):
            limit = None
            if len(held) == keep:
                limit = held[-1].cosine * _HALF
                last, end = held[-1], max(-1.0, min(1.0, best))
                if sign * end < sign * last.cosine or (end == last.cosine and name(0) > (last.i, last.j)):
                    continue
            for value, flat in _most(scaled, min(keep, scaled.numel()), sign > 0, limit):
                i, j = name(flat)
                held.append(Extreme(max(-1.0, min(1.0, value / _HALF)), min(i, j), max(i, j)))
            held.sort(key=lambda e: (-sign * e.cosine, e.i, e.j))
            del held[keep:]

    def result(self) -> PairCounts:
        counts = self.counts[1:-1].copy()
        counts[0] += self.counts[0]
        counts[-1] += self.counts[-1]
        one, two, three, four = self.powers
        return PairCounts(
            counts,
            tuple(self.largest),
            tuple(self.smallest),
            self.wanted,
            (one, two, three, four),
            self.above,
            self.below,
        )


def _total(values: torch.Tensor) -> float:
    """Sum of float32 `values`, (m,), in float64 but for runs of 512: a float32 dot product of all loses five digits."""
    if values.device.type == "mps":  # it has no float64
        return float(values.sum())
    whole = len(values) // 512 * 512
    return float(values[:whole].view(-1, 512).sum(1).double().sum() + values[whole:].double().sum())


def _most(scaled: torch.Tensor, keep: int, largest: bool, limit: float | None) -> list[tuple[float, int]]:
    """(value, position) of the `keep` largest or smallest; of equal values those that stand first.

    limit: what lies short of it need not be given, which makes it faster.
    """
    if limit is not None:
        at = where_beyond(scaled, limit, under=not largest)
        if len(at) <= _FEW:
            values = scaled[torch.from_numpy(at)].cpu().numpy()
            order = np.lexsort((at, -values if largest else values))[:keep]
            return list(zip(values[order].tolist(), at[order].tolist(), strict=True))
    top = scaled.topk(keep, largest=largest)
    ends: list[float] = top.values.tolist()
    found = [(v, at) for v, at in zip(ends, top.indices.tolist(), strict=True) if v != ends[-1]]
    for first in range(0, scaled.numel(), 1 << 20):
        if len(found) == keep:
            break
        equal = (scaled[first : first + (1 << 20)] == ends[-1]).nonzero()[: keep - len(found), 0]
        found += [(ends[-1], first + at) for at in equal.tolist()]
    return found
