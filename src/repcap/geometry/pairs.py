"""The exact distribution of all pairwise cosines, streamed in blocks.

Every unordered pair i < j is multiplied once, binned, and forgotten. The floor is the symmetric half of a full product,
n^2 d operations; binning a block that is still in the processor's cache costs about a tenth of multiplying it.

Work is cut into pairs of panels (ranges of rows), which do not depend on each other: `count_panels` of any share of
`panel_pairs` can run anywhere, and the resulting `PairCounts` add up.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from repcap.errors import InputError, VectorsError
from repcap.geometry.histogram import FINE_BINS, Extreme, PairCounts
from repcap.geometry.rows import Normaliser
from repcap.matrix import Matrix, ProgressFn
from repcap.numerics import resolve_device

if TYPE_CHECKING:
    import torch

BLOCK = 1024
"""Rows of a block on the cpu: 1024 x 1024 float32 is 4 MB, which stays in the shared cache while it is binned."""
CUDA_BLOCK = 8192
PANEL = 8192
MEMORY = 1 << 30
"""Bytes of unit rows that are kept between panels, at most."""

_HALF = FINE_BINS // 2


class PanelPair(NamedTuple):
    """Rows first..first_stop against rows second..second_stop; first <= second, equal on the diagonal."""

    first: int
    second: int


def panel_pairs(count: int, panel: int = PANEL) -> list[PanelPair]:
    """All pairs of panels of `count` rows, in an order in which neighbours share a panel."""
    if panel < 1:
        raise InputError(f"panel must be at least 1 row, got {panel}")
    starts = list(range(0, count, panel))
    order = []
    for position, first in enumerate(starts):
        row = [PanelPair(first, second) for second in starts[position:]]
        order += row[::-1] if position % 2 else row
    return order


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
    """Count the cosines of all pairs of rows of `matrix`, shape (n, d). See `count_panels`."""
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
        if `panel`, `keep` or `mask` is unusable.
    """
    if panel < 1 or keep < 0:
        raise InputError(f"panel must be at least 1 row and keep at least 0, got {panel} and {keep}")
    if mask is not None and mask.shape != (matrix.count,):
        raise InputError(f"mask must have shape ({matrix.count},), got {mask.shape}")
    where = resolve_device(device)
    panels = _Panels(matrix, mask, panel, where, memory)
    counter = _CpuCounter(keep) if where.type == "cpu" else _DeviceCounter(keep)
    total = sum(_pairs_in(pair, matrix.count, panel) for pair in chosen)
    done = 0
    for pair in chosen:
        counter.add(panels.get(pair.first), panels.get(pair.second), pair.first == pair.second)
        done += _pairs_in(pair, matrix.count, panel)
        if on_progress is not None:
            on_progress(done, total)
    return counter.result()


def _pairs_in(pair: PanelPair, count: int, panel: int) -> int:
    a = min(panel, count - pair.first)
    return a * (a - 1) // 2 if pair.first == pair.second else a * min(panel, count - pair.second)


class _Panel(NamedTuple):
    unit: torch.Tensor  # (rows with a direction, d), float32
    ids: np.ndarray  # their row numbers in the matrix


class _Panels:
    """Unit rows of panels, read again when they have been dropped to stay within the memory budget."""

    def __init__(self, matrix: Matrix, mask: np.ndarray | None, panel: int, where: torch.device, memory: int) -> None:
        self._matrix, self._mask, self._panel, self._where = matrix, mask, panel, where
        self._slots = max(2, memory // (4 * panel * matrix.dim))
        self._held: OrderedDict[int, _Panel] = OrderedDict()

    def get(self, first: int) -> _Panel:
        if first in self._held:
            self._held.move_to_end(first)
            return self._held[first]
        while len(self._held) >= self._slots:
            self._held.popitem(last=False)
        self._held[first] = self._load(first)
        return self._held[first]

    def _load(self, first: int) -> _Panel:
        import torch

        stop = min(first + self._panel, self._matrix.count)
        # A fresh normaliser: its buffer becomes the panel.
        rows = Normaliser(torch.float32)(self._matrix.read(first, stop), torch.arange(first, stop))
        unit, ids = rows.units, rows.indices.numpy()
        if self._mask is not None:
            wanted = self._mask[ids]
            unit, ids = unit[torch.from_numpy(wanted)], ids[wanted]
        return _Panel(unit.to(self._where), ids)


class _Tally:
    """What one thread has counted so far."""

    def __init__(self, keep: int) -> None:
        self.keep = keep
        # Two guard bins: a float32 product may lie just outside [-1, 1].
        self.counts = np.zeros(FINE_BINS + 2, dtype=np.int64)
        self.largest: list[Extreme] = []
        self.smallest: list[Extreme] = []

    def extremes(self, cosines: torch.Tensor, name: Callable[[int], tuple[int, int]]) -> None:
        """Take the extreme pairs of a block of cosines, shape (p,), scaled by _HALF, into account."""
        if not self.keep or not cosines.numel():
            return
        for sign, held in ((1.0, self.largest), (-1.0, self.smallest)):
            best = float(cosines.max() if sign > 0 else cosines.min()) / _HALF
            if len(held) == self.keep and sign * best <= sign * held[-1].cosine:
                continue
            top = cosines.topk(min(self.keep, cosines.numel()), largest=sign > 0)
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


def _bin(tally: _Tally, scaled: torch.Tensor, index: torch.Tensor, name: Callable[[int], tuple[int, int]]) -> None:
    """Count a contiguous block of cosines times _HALF, shape (p,); it is destroyed."""
    import torch

    tally.extremes(scaled, name)
    # Truncation is floor for positive numbers; +1 makes room for the lower guard bin.
    index.copy_(scaled.add_(_HALF + 1.0))
    tally.counts += torch.bincount(index, minlength=FINE_BINS + 2).cpu().numpy()


def _count_block(tally: _Tally, a: _Panel, b: _Panel, same: bool, scaled: torch.Tensor, index: torch.Tensor) -> None:
    """Count the pairs of the rows of `a` with those of `b`, or of `a` with itself once each.

    a.unit is already times _HALF. scaled, index: work space of at least len(a) * len(b) elements.
    """
    import torch

    rows, columns = a.unit.shape[0], b.unit.shape[0]
    size = rows * columns
    block = scaled[:size].view(rows, columns)
    torch.mm(a.unit, b.unit.mT, out=block)
    if not same:
        _bin(tally, scaled[:size], index[:size], lambda at: (int(a.ids[at // columns]), int(b.ids[at % columns])))
        return
    upper = torch.triu_indices(rows, rows, 1, device=block.device)
    chosen = block[upper[0], upper[1]]
    names = upper.cpu().numpy()
    _bin(tally, chosen, index[: chosen.numel()], lambda at: (int(a.ids[names[0, at]]), int(a.ids[names[1, at]])))


def _blocks(panel: _Panel, size: int) -> list[_Panel]:
    return [_Panel(panel.unit[at : at + size], panel.ids[at : at + size]) for at in range(0, panel.unit.shape[0], size)]


class _CpuCounter:
    """A thread a core, each multiplying and binning whole blocks with single-threaded torch operations.

    Binning (torch.bincount) has no threads of its own, so splitting each operation over the cores, as torch does by
    itself, would leave all but one of them idle half the time.
    """

    def __init__(self, keep: int) -> None:
        import torch

        self._threads = torch.get_num_threads()
        self._tallies = [_Tally(keep) for _ in range(self._threads)]

    def add(self, first: _Panel, second: _Panel, same: bool) -> None:
        left, right = _blocks(first, BLOCK), _blocks(second, BLOCK)
        tasks = [(i, j) for i in range(len(left)) for j in range(i if same else 0, len(right))]
        lanes = [tasks[lane :: self._threads] for lane in range(self._threads)]
        with ThreadPoolExecutor(self._threads) as pool:
            list(
                pool.map(
                    self._run, self._tallies, lanes, [left] * len(lanes), [right] * len(lanes), [same] * len(lanes)
                )
            )

    @staticmethod
    def _run(tally: _Tally, tasks: list[tuple[int, int]], left: list[_Panel], right: list[_Panel], same: bool) -> None:
        import torch

        if not tasks:
            return
        torch.set_num_threads(1)  # of this thread: it is the thread's own setting in torch's OpenMP builds
        size = max(p.unit.shape[0] for p in left) * max(p.unit.shape[0] for p in right)
        scaled, index = torch.empty(size), torch.empty(size, dtype=torch.int16)
        at, lifted = -1, left[0]
        for i, j in tasks:
            if i != at:
                at, lifted = i, _Panel(left[i].unit * _HALF, left[i].ids)
            _count_block(tally, lifted, right[j], same and i == j, scaled, index)

    def result(self) -> PairCounts:
        total = self._tallies[0].result()
        for tally in self._tallies[1:]:
            total = total + tally.result()
        return total


class _DeviceCounter:
    """One large block after another on an accelerator."""

    def __init__(self, keep: int) -> None:
        self._tally = _Tally(keep)

    def add(self, first: _Panel, second: _Panel, same: bool) -> None:
        import torch

        left, right = _blocks(first, CUDA_BLOCK), _blocks(second, CUDA_BLOCK)
        if not left or not right:
            return
        size = max(p.unit.shape[0] for p in left) * max(p.unit.shape[0] for p in right)
        where = first.unit.device
        scaled, index = torch.empty(size, device=where), torch.empty(size, dtype=torch.int32, device=where)
        for i, a in enumerate(left):
            lifted = _Panel(a.unit * _HALF, a.ids)
            for j in range(i if same else 0, len(right)):
                _count_block(self._tally, lifted, right[j], same and i == j, scaled, index)

    def result(self) -> PairCounts:
        return self._tally.result()
