"""Every pair of rows once, block by block, on all cores or on an accelerator: what the all-pairs scans share.

Work is cut into pairs of panels (ranges of rows) that do not depend on each other, and those into blocks that stay in
the processor's cache. A scan gives a `BlockWorker` for each thread; each is handed the products of whole blocks.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Generic, NamedTuple, Protocol, TypeVar

import numpy as np
import torch

from repcap.devices import resolve_device
from repcap.errors import InputError
from repcap.geometry.rows.unit_rows import Normaliser
from repcap.matrix import Matrix, ProgressFn

BLOCK = 1024
"""Rows of a block on the cpu: 1024 x 1024 float32 is 4 MB, which stays in the shared cache while it is worked on."""
DEVICE_BLOCK = 8192
PANEL = 8192
MEMORY = 1 << 30
"""Bytes of unit rows that are kept between panels, at most (two panels at least)."""


class PanelPair(NamedTuple):
    """Rows from `first` against rows from `second`; first <= second, equal on the diagonal."""

    first: int
    second: int


class Rows(NamedTuple):
    """Unit rows of a panel or a block, those with a direction only."""

    unit: torch.Tensor  # (m, d), float32
    ids: np.ndarray  # (m,), their row numbers in the matrix


class BlockWorker(Protocol):
    """Takes the products of blocks. One worker is only ever called from one thread at a time."""

    def take(self, a: Rows, b: Rows, same: bool, product: torch.Tensor) -> None:
        """product: (len(a), len(b)), `scale` times the cosines, contiguous, to use up at will.

        Every unordered pair of rows comes once, but for `same`, where b is a and all of a times a comes.
        """


W = TypeVar("W", bound=BlockWorker)


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


def count_above(values: torch.Tensor, limit: float, *, under: bool = False) -> int:
    """How many of the float32 `values` are above `limit`, or `under` it. Memory: a byte a value."""
    if values.device.type == "cpu":  # numpy compares and counts five times as fast
        array = values.numpy()
        return int(np.count_nonzero(array < np.float32(limit) if under else array > np.float32(limit)))
    return int((values < limit if under else values > limit).sum())


def where_beyond(values: torch.Tensor, limit: float, *, under: bool = False) -> np.ndarray:
    """Positions of the float32 `values`, (m,), that are at least `limit`, or with `under` at most."""
    if values.device.type == "cpu":
        array = values.numpy()
        return np.flatnonzero(array <= np.float32(limit) if under else array >= np.float32(limit))
    found: np.ndarray = (values <= limit if under else values >= limit).nonzero()[:, 0].cpu().numpy()
    return found


def scan(
    matrix: Matrix,
    chosen: Sequence[PanelPair],
    make_worker: Callable[[], W],
    *,
    scale: float = 1.0,
    mask: np.ndarray | None = None,
    panel: int = PANEL,
    device: str = "auto",
    memory: int = MEMORY,
    on_progress: ProgressFn | None = None,
) -> list[W]:
    """Hand the products of all pairs of rows in `chosen` to workers, one a thread, and return the workers.

    mask: shape (n,), bool, the rows to use; rows without a direction are left out in any case.

    Cost: n^2 d operations for all panels, and what the workers do. Memory: `memory` bytes of float32 unit rows and one
    block of products a thread; never n x n. on_progress counts pairs of rows, those left out included.
    """
    if mask is not None and mask.shape != (matrix.count,):
        raise InputError(f"mask must have shape ({matrix.count},), got {mask.shape}")
    where = resolve_device(device)
    panels = _Panels(matrix, mask, panel, where, memory)
    lanes: _Lanes[W] = _CpuLanes(make_worker, scale) if where.type == "cpu" else _DeviceLane(make_worker, scale)
    total = sum(_pairs_in(pair, matrix.count, panel) for pair in chosen)
    done = 0
    for pair in chosen:
        lanes.multiply(panels.get(pair.first), panels.get(pair.second), pair.first == pair.second)
        done += _pairs_in(pair, matrix.count, panel)
        if on_progress is not None:
            on_progress(done, total)
    return lanes.workers


def _pairs_in(pair: PanelPair, count: int, panel: int) -> int:
    a = min(panel, count - pair.first)
    return a * (a - 1) // 2 if pair.first == pair.second else a * min(panel, count - pair.second)


class _Panels:
    """Unit rows of panels, read again when they have been dropped to stay within the memory budget."""

    def __init__(self, matrix: Matrix, mask: np.ndarray | None, panel: int, where: torch.device, memory: int) -> None:
        self._matrix, self._mask, self._panel, self._where = matrix, mask, panel, where
        self._slots = max(2, memory // (4 * panel * matrix.dim))
        self._held: OrderedDict[int, Rows] = OrderedDict()

    def get(self, first: int) -> Rows:
        if first in self._held:
            self._held.move_to_end(first)
            return self._held[first]
        while len(self._held) >= self._slots:
            self._held.popitem(last=False)
        self._held[first] = self._load(first)
        return self._held[first]

    def _load(self, first: int) -> Rows:
        stop = min(first + self._panel, self._matrix.count)
        # A fresh normaliser: its buffer becomes the panel.
        rows = Normaliser(torch.float32)(self._matrix.read(first, stop), torch.arange(first, stop))
        unit, ids = rows.units, rows.indices.numpy()
        if self._mask is not None:
            wanted = self._mask[ids]
            unit, ids = unit[torch.from_numpy(wanted)], ids[wanted]
        return Rows(unit.to(self._where), ids)


class _Lanes(Protocol[W]):
    workers: list[W]

    def multiply(self, first: Rows, second: Rows, same: bool) -> None:
        """Multiply the blocks of two panels."""


def _split(rows: Rows, size: int) -> list[Rows]:
    return [Rows(rows.unit[at : at + size], rows.ids[at : at + size]) for at in range(0, rows.unit.shape[0], size)]


def _multiply(worker: BlockWorker, lifted: Rows, b: Rows, same: bool, space: torch.Tensor) -> None:
    shape = (lifted.unit.shape[0], b.unit.shape[0])
    product = space[: shape[0] * shape[1]].view(shape)
    torch.mm(lifted.unit, b.unit.mT, out=product)
    worker.take(lifted, b, same, product)


class _CpuLanes(Generic[W]):
    """A thread a core, each working on whole blocks with single-threaded torch operations.

    What a worker does with a block (torch.bincount, a reduction) often has no threads of its own, so splitting each
    operation over the cores, as torch does by itself, would leave all but one of them idle half the time.
    """

    def __init__(self, make_worker: Callable[[], W], scale: float) -> None:
        self.workers = [make_worker() for _ in range(torch.get_num_threads())]
        self._scale = scale

    def multiply(self, first: Rows, second: Rows, same: bool) -> None:
        left, right = _split(first, BLOCK), _split(second, BLOCK)
        tasks = [(i, j) for i in range(len(left)) for j in range(i if same else 0, len(right))]
        threads = len(self.workers)

        def lane(number: int) -> None:
            self._run(self.workers[number], tasks[number::threads], left, right, same)

        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(lane, range(threads)))

    def _run(
        self, worker: BlockWorker, tasks: list[tuple[int, int]], left: list[Rows], right: list[Rows], same: bool
    ) -> None:
        if not tasks:
            return
        torch.set_num_threads(1)  # of this thread: in torch's OpenMP builds it is the thread's own setting
        space = torch.empty(max(r.unit.shape[0] for r in left) * max(r.unit.shape[0] for r in right))
        at, lifted = -1, left[0]
        for i, j in tasks:
            if i != at:
                at, lifted = i, Rows(left[i].unit * self._scale, left[i].ids)
            _multiply(worker, lifted, right[j], same and i == j, space)


class _DeviceLane(Generic[W]):
    """One large block after another on an accelerator."""

    def __init__(self, make_worker: Callable[[], W], scale: float) -> None:
        self.workers = [make_worker()]
        self._scale = scale

    def multiply(self, first: Rows, second: Rows, same: bool) -> None:
        left, right = _split(first, DEVICE_BLOCK), _split(second, DEVICE_BLOCK)
        if not left or not right:
            return
        size = max(r.unit.shape[0] for r in left) * max(r.unit.shape[0] for r in right)
        space = torch.empty(size, device=first.unit.device)
        for i, a in enumerate(left):
            lifted = Rows(a.unit * self._scale, a.ids)
            for j in range(i if same else 0, len(right)):
                _multiply(self.workers[0], lifted, right[j], same and i == j, space)
