"""The exact distribution of all pairwise cosines, streamed in blocks.

Every unordered pair i < j is multiplied once, binned, and forgotten. The floor is the symmetric half of a full product,
n^2 d operations; binning a block that is still in the processor's cache costs about a tenth of multiplying it.
`count_panels` of any share of `panel_pairs` can run anywhere, and the resulting `PairCounts` add up.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from repcap.errors import InputError, VectorsError
from repcap.geometry.blocks import MEMORY, PANEL, PanelPair, Rows, panel_pairs, scan
from repcap.geometry.histogram import FINE_BINS, Extreme, PairCounts
from repcap.matrix import Matrix, ProgressFn

if TYPE_CHECKING:
    import torch

__all__ = ["PanelPair", "count_pairs", "count_panels", "panel_pairs"]

_HALF = FINE_BINS // 2


def count_pairs(
    matrix: Matrix,
    *,
    mask: np.ndarray | None = None,
    keep: int = 10,
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
        matrix, chosen, mask=mask, keep=keep, panel=panel, device=device, memory=memory, on_progress=on_progress
    )
    if not counted.pairs:
        raise VectorsError(f"{matrix.info.name} of {matrix.info.source} has no pair of rows that have a direction")
    return counted


def count_panels(
    matrix: Matrix,
    chosen: Sequence[PanelPair],
    *,
    mask: np.ndarray | None = None,
    keep: int = 10,
    panel: int = PANEL,
    device: str = "auto",
    memory: int = MEMORY,
    on_progress: ProgressFn | None = None,
) -> PairCounts:
    """Count the cosines of the pairs of rows in these pairs of panels.

    mask: shape (n,), bool, the rows to use; rows without a direction (zero, not finite) are left out in any case.
    keep: how many of the largest and of the smallest cosines to name.

    Cost: n^2 d operations for all panels. Memory: `memory` bytes of float32 unit rows (at least two panels), and one
    block of cosines a thread. Never n x n. on_progress counts pairs of rows, dropped ones included.

    Raises
    ------
    InputError
        if `keep` or `mask` is unusable.
    """
    if keep < 0:
        raise InputError(f"keep must be at least 0, got {keep}")
    tallies = scan(
        matrix,
        chosen,
        lambda: _Tally(keep),
        scale=_HALF,
        mask=mask,
        panel=panel,
        device=device,
        memory=memory,
        on_progress=on_progress,
    )
    total = PairCounts.empty(keep)
    for tally in tallies:
        total = total + tally.result()
    return total


class _Tally:
    """What one thread has counted. Products come scaled by _HALF: bin numbers but for a shift."""

    def __init__(self, keep: int) -> None:
        self.keep = keep
        # Two guard bins: a float32 product may lie just outside [-1, 1].
        self.counts = np.zeros(FINE_BINS + 2, dtype=np.int64)
        self.largest: list[Extreme] = []
        self.smallest: list[Extreme] = []
        self._index: torch.Tensor | None = None

    def take(self, a: Rows, b: Rows, same: bool, product: torch.Tensor) -> None:
        import torch

        if not same:
            columns = product.shape[1]
            self._bin(product.view(-1), lambda at: (int(a.ids[at // columns]), int(b.ids[at % columns])))
            return
        i, j = torch.triu_indices(product.shape[0], product.shape[0], 1, device=product.device)
        self._bin(product[i, j], lambda at: (int(a.ids[int(i[at])]), int(a.ids[int(j[at])])))

    def _bin(self, scaled: torch.Tensor, name: Callable[[int], tuple[int, int]]) -> None:
        import torch

        self._extremes(scaled, name)
        # Truncation is floor for positive numbers; +1 makes room for the lower guard bin.
        index = self._work_space(scaled)
        index.copy_(scaled.add_(_HALF + 1.0))
        self.counts += torch.bincount(index, minlength=FINE_BINS + 2).cpu().numpy()

    def _work_space(self, scaled: torch.Tensor) -> torch.Tensor:
        import torch

        size = scaled.numel()
        if self._index is None or self._index.numel() < size:
            # int16 halves the traffic on the cpu; an accelerator's atomics want int32.
            dtype = torch.int16 if scaled.device.type == "cpu" else torch.int32
            self._index = torch.empty(size, dtype=dtype, device=scaled.device)
        return self._index[:size]

    def _extremes(self, scaled: torch.Tensor, name: Callable[[int], tuple[int, int]]) -> None:
        if not self.keep or not scaled.numel():
            return
        for sign, held in ((1.0, self.largest), (-1.0, self.smallest)):
            best = float(scaled.max() if sign > 0 else scaled.min()) / _HALF
            if len(held) == self.keep and sign * best <= sign * held[-1].cosine:
                continue
            top = scaled.topk(min(self.keep, scaled.numel()), largest=sign > 0)
            for value, flat in zip(top.values.tolist(), top.indices.tolist(), strict=True):
                i, j = name(flat)
                held.append(Extreme(max(-1.0, min(1.0, value / _HALF)), min(i, j), max(i, j)))
            held.sort(key=lambda e: (-sign * e.cosine, e.i, e.j))
            del held[self.keep :]

    def result(self) -> PairCounts:
        counts = self.counts[1:-1].copy()
        counts[0] += self.counts[0]
        counts[-1] += self.counts[-1]
        return PairCounts(counts, tuple(self.largest), tuple(self.smallest), self.keep)
