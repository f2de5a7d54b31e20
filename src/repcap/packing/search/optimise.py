"""The optimiser over restarts: one large descent after another, or many small ones at once; stop, save, go on."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import ClassVar

import numpy as np
import torch

from repcap.errors import InputError
from repcap.numerics import whole
from repcap.packing.coherence import coherence
from repcap.packing.packed import OPTIMAL
from repcap.packing.search.batch import ENTRIES, BatchDescent
from repcap.packing.search.descent import Descent, Schedule
from repcap.packing.search.gradient import WORKING
from repcap.packing.search.groups import Group, small_groups
from repcap.packing.search.method import Budget, Found, Task, at_least_one, one_of
from repcap.packing.search.polish import LARGEST, MOST_LINES, polish
from repcap.packing.search.resume import Checkpoint, SearchState
from repcap.packing.search.settle import settle
from repcap.packing.search.starts import generator_for, random_start, start_from
from repcap.packing.search.symmetry import TRIVIAL, Cyclic, automatic_order, random_cyclic

ENDED = "ended"
"""Stands among the numbers of a search that has ended."""
SMALL = 512
"""Lines up to which several restarts run as one batch."""

BATCH = 256
"""Most starts in a batch."""

SMALL_ENTRIES = 120
"""k d up to which many starts cost seconds, and all that look promising are settled, not the best alone."""

SMALL_STARTS = 1024
PROMISING = 8
"""Starts of a batch that are settled: which of two local optima is better shows only there."""

BRISK, HASTE = Schedule(c_first=30.0), 4
"""A path that starts sharp and is run in a quarter of the steps. The slow one ends in the same few optima from most
starts, where the brisk one finds the best of (14, 3) and (14, 4) (docs/packing.md)."""

WARM = Schedule(c_first=300.0)
"""For a start that is a packing already: the soft first part of the path would forget it."""


@dataclasses.dataclass(frozen=True)
class Optimise:
    """Path-following descent on the smoothed coherence, from one start or many; `repcap.packing.pack` has the options.

    Time 3 k^2 d / g flops a step; memory 3 k d numbers and the blocks of the pass.
    """

    name: ClassVar[str] = "optimise"
    about: ClassVar[str] = "descent on the smoothed coherence"
    baseline: ClassVar[bool] = False
    steps: int | None = 400
    seconds: float | None = None
    target: float | None = None
    restarts: int | None = None
    """None: `SMALL_STARTS` where k d is at most `SMALL_ENTRIES`, else 1."""
    init: str = "random"
    precision: str = "float32"
    symmetry: int | str = "auto"

    def __post_init__(self) -> None:
        one_of("precision", self.precision, tuple(WORKING))
        if self.restarts is not None:
            at_least_one("restarts", self.restarts)
        _order(self.symmetry)
        Budget.of(self)

    def starts(self, task: Task) -> int:
        """How many starts this task is worth."""
        if self.restarts is not None:
            return self.restarts
        small = task.k * task.d <= SMALL_ENTRIES and self.init == "random" and self.seconds is None
        return SMALL_STARTS if small else 1

    def order(self, task: Task) -> int:
        """Order of the rotation that a large descent of this task keeps."""
        return _order(self.symmetry) or automatic_order(task.k, task.d)

    def run(self, task: Task) -> Found:
        """The best of all restarts, polished where it is small."""
        order = _order(self.symmetry)
        if order is not None and task.k % order:
            raise InputError(f"{_NEEDS.format(order)}, got k = {task.k}; use 1 or auto")
        if self.precision == "float64" and task.device.type == "mps":
            raise InputError("mps has no float64: use --precision float32 or --device cpu")
        start = start_from(self.init, task.k, task.d)
        saver = None
        if task.checkpoint is not None:
            identity = {"k": task.k, "d": task.d, "seed": task.seed, **dataclasses.asdict(self)}
            saver = Checkpoint(task.checkpoint, {**identity, "target": None})
        found = Search(self, task, start, saver).run()
        found.details["restarts"] = self.starts(task)
        if start is None:
            found.details["symmetry_order"] = self.order(task)
        return found


_NEEDS = "a rotation of order {} needs k to be a multiple of it"


def _order(symmetry: int | str) -> int | None:
    """The order that is asked for, None for `auto`.

    Raises
    ------
    InputError
        for anything but `auto` and whole numbers of at least 1.
    """
    if symmetry == "auto":
        return None
    if isinstance(symmetry, str) and not symmetry.isdecimal():
        raise InputError(f"symmetry must be auto or a whole number, got {symmetry!r}")
    order = int(symmetry) if isinstance(symmetry, str) else whole("symmetry", symmetry)
    if order < 1:
        raise InputError(f"{_NEEDS.format(order)}; use 1 or auto")
    return order


def polished(rows: torch.Tensor) -> tuple[torch.Tensor, float]:
    """`rows` and their coherence after they were settled and polished in float64; unchanged where that does not pay."""
    exact = rows.to(torch.float64).cpu().numpy()
    settled = settle(exact / np.linalg.norm(exact, axis=1, keepdims=True))
    result = polish(settled)
    before = coherence(rows).value
    return (torch.from_numpy(result.rows), result.coherence) if result.coherence < before else (rows, before)


class Search:
    """One search: `run` returns what was found, also after Ctrl-C if the task says `keep_on_interrupt`."""

    def __init__(
        self, how: Optimise, task: Task, start: torch.Tensor | None = None, checkpoint: Checkpoint | None = None
    ) -> None:
        self.how, self.task, self.start, self.checkpoint = how, task, start, checkpoint
        self.budget, self.starts = Budget.of(how), how.starts(task)
        self.state = (checkpoint.load() if checkpoint else None) or SearchState()
        self._began = time.perf_counter() - self.state.seconds
        self._descent: Descent | None = None

    def run(self) -> Found:
        """Search until the budget of every restart is used, the target or the proven bound is reached."""
        k, d = self.task.k, self.task.d
        small = k <= SMALL and self.starts > 1 and self.start is None and self.budget.seconds is None
        interrupted = False
        s = self.state
        # The checkpoint of a search that had ended: its rows are polished, and would come out otherwise once more.
        ended = ENDED in s.numbers and (s.restart >= self.starts or self._done())
        try:
            (self._run_batches if small else self._run_descents)()
        except KeyboardInterrupt:
            if not self.task.keep_on_interrupt:
                raise
            interrupted = True
            if self.checkpoint is not None:
                self.checkpoint.write(self.snapshot())
        if self._descent is not None:
            self._take(self._descent)
        if s.rows is None:
            raise KeyboardInterrupt  # stopped before the first pass: there is nothing to keep
        if not interrupted and not ended and k * d <= LARGEST and k <= MOST_LINES:
            s.rows, s.coherence = polished(s.rows)
        if not interrupted and self.checkpoint is not None:
            with suppress(OSError, InputError):  # a full disk; there may be room for the vectors
                # Not removed: the vectors are in no other file yet.
                self.checkpoint.write(dataclasses.replace(self.snapshot(), numbers={ENDED: 1}))
        seconds = time.perf_counter() - self._began
        return Found(s.rows, s.label, s.steps, interrupted, {"search_seconds": seconds})

    def _done(self) -> bool:
        best = self.state.coherence
        target = self.budget.target
        return best <= self.task.bound + OPTIMAL or (target is not None and best <= target)

    def _run_descents(self) -> None:
        while self.state.restart < self.starts and not self._done():
            self._descent = descent = self._new_descent(self.state.restart)
            if self.state.tensors:
                descent.restore(self.state.tensors, self.state.numbers)
                self.state.tensors = {}
            descent.run(self.budget, self._each)
            self._take(descent)
            self._descent = None

    def _new_descent(self, restart: int) -> Descent:
        task = self.task
        generator = generator_for(task.seed, restart)
        if self.start is not None:
            noise = torch.randn(self.start.shape, generator=generator) * (1e-3 / task.d**0.5)
            return Descent(self.start + noise, task.device, WARM.near(task.bound), precision=self.how.precision)
        order = self.how.order(task)
        symmetry: Cyclic = random_cyclic(order, task.d, generator) if order > 1 else TRIVIAL
        rows = random_start(task.k // order, task.d, generator)
        return Descent(rows, task.device, Schedule().near(task.bound), symmetry, self.how.precision)

    def _take(self, descent: Descent) -> None:
        """Count a finished or stopped descent, and keep its rows if they are the best."""
        self._descent = None
        self.state.restart += 1
        self.state.steps += descent.step_count
        descent.release()
        if descent.best.coherence < self.state.coherence:
            self.state.rows, self.state.coherence = descent.lines(), descent.best.coherence
            order = descent.symmetry.order
            self.state.label = f"optimise, cyclic of order {order}" if order > 1 else "optimise"

    def _each(self, descent: Descent, fraction: float) -> None:
        done = (self.state.restart + fraction) / self.starts
        best = min(self.state.coherence, descent.best.coherence)
        self.task.report(self.state.steps + descent.step_count, done, descent.maximum, best)
        if self.checkpoint is not None:
            self.checkpoint.maybe(self.snapshot)

    def snapshot(self) -> SearchState:
        """The state of the search as it stands, for a checkpoint."""
        tensors, numbers = self._descent.state() if self._descent is not None else ({}, {})
        seconds = time.perf_counter() - self._began
        return dataclasses.replace(self.state, seconds=seconds, tensors=tensors, numbers=numbers)

    def _run_batches(self) -> None:
        assert self.budget.steps is not None
        for first, count, group_of, schedule, steps in self._batches(self.budget.steps):
            if first < self.state.restart:
                continue  # done before the checkpoint
            if self._done():
                return
            generator = generator_for(self.task.seed, first)
            group = group_of(count, generator)
            starts = torch.randn(count, len(group.own()), self.task.d, generator=generator)
            batch = BatchDescent(starts.to(self.task.device), group, schedule.near(self.task.bound))
            for step in range(steps):
                least = batch.step(step / steps)
                done = (first + count * (step + 1) / steps) / self.starts
                best = min(self.state.coherence, least)
                self.task.report(self.state.steps + count * (step + 1), done, float(batch.maximum.min()), best)
            self._take_batch(batch)
            self.state.restart = first + count
            self.state.steps += count * steps
            if self.checkpoint is not None:
                self.checkpoint.maybe(self.snapshot)

    def _take_batch(self, batch: BatchDescent) -> None:
        """Settle and polish the best starts of a batch that has ended, and keep the best of them."""
        result = batch.finish()
        number = PROMISING if self.task.k * self.task.d <= SMALL_ENTRIES else 1
        for winner in result.coherence.argsort(stable=True)[:number].tolist():
            rows, value = polished(result.lines(winner).cpu())
            if value < self.state.coherence:
                label = result.group.label
                self.state.label = "optimise" if label == "none" else f"optimise, {label}"
                self.state.rows, self.state.coherence = rows, value

    def _batches(self, steps: int) -> Iterator[Batch]:
        """The kinds of starts take turns: no symmetry slow and, where they cost little, brisk, then each symmetry."""
        symmetry = _order(self.how.symmetry)
        kinds = [(orbits, draw, Schedule(), steps) for orbits, draw in small_groups(self.task.k, self.task.d, symmetry)]
        if symmetry in (None, 1) and self.task.k * self.task.d <= SMALL_ENTRIES:
            kinds.insert(1, (*kinds[0][:2], BRISK, max(1, steps // HASTE)))
        first, turn = 0, 0
        share = max(1, -(-self.starts // len(kinds)))
        while first < self.starts:
            orbits, group_of, schedule, used = kinds[turn % len(kinds)]
            room = max(1, ENTRIES // (orbits * self.task.k))
            count = min(share, BATCH, room, self.starts - first)
            yield first, count, group_of, schedule, used
            first, turn = first + count, turn + 1


Batch = tuple[int, int, Callable[[int, torch.Generator], Group], Schedule, int]
"""(first restart, starts, group, path, steps) of one batch."""
