"""The optimiser over restarts: one large descent after another, or many small ones at once; stop, save, go on."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterator

import torch

from repcap.packing.search.batch import ENTRIES, AffineGroup, BatchDescent, CyclicGroup, Group, NoGroup
from repcap.packing.search.optimise import Budget, Descent, Schedule
from repcap.packing.search.polish import LARGEST, MOST_LINES, polish
from repcap.packing.search.resume import Checkpoint, SearchState
from repcap.packing.search.symmetry import TRIVIAL, Cyclic, automatic_order, random_cyclic

SMALL = 512
"""Lines up to which several restarts run as one batch."""

BATCH = 256
"""Most starts in a batch."""

LARGEST_ORDER = 24
"""Largest rotation that small symmetric starts try."""

REACHED = 1e-9
"""A coherence this near to the proven lower bound is optimal."""

WARM = Schedule(c_first=300.0)
"""For a start that is a packing already: the soft first part of the path would forget it."""

Report = Callable[[int, float, float, float], None]
"""(step, fraction, coherence, best)."""


@dataclasses.dataclass(frozen=True)
class SearchOptions:
    """What a search does; see `repcap.packing.solve.pack`."""

    k: int
    d: int
    seed: int
    restarts: int
    precision: str
    symmetry: int | None
    """Order of the rotation of a large descent; None: chosen here."""
    bound: float
    """Proven lower bound, where a search may stop."""


@dataclasses.dataclass
class Found:
    """What a search came to."""

    rows: torch.Tensor
    """(k, d), float32 or float64."""
    coherence: float
    label: str
    steps: int
    seconds: float
    interrupted: bool = False


def random_start(k: int, d: int, generator: torch.Generator) -> torch.Tensor:
    """k random directions (k, d), float32, the same on every device."""
    return torch.nn.functional.normalize(torch.randn(k, d, generator=generator), dim=1)


def generator_for(seed: int, restart: int) -> torch.Generator:
    """The random numbers of one restart."""
    return torch.Generator().manual_seed((seed * 1_000_003 + restart) % (1 << 63))


def polished(rows: torch.Tensor) -> tuple[torch.Tensor, float]:
    """`rows` and their coherence after a polish in float64; unchanged where that does not pay."""
    result = polish(rows.to(torch.float64).cpu().numpy())
    return (torch.from_numpy(result.rows), result.coherence) if result.active else (rows, result.coherence)


class Search:
    """One search: `run` returns what was found, also after Ctrl-C if `keep` is set."""

    def __init__(
        self,
        options: SearchOptions,
        budget: Budget,
        device: torch.device,
        start: torch.Tensor | None = None,
        checkpoint: Checkpoint | None = None,
        report: Report | None = None,
        keep: bool = False,
    ) -> None:
        self.options, self.budget, self.device = options, budget, device
        self.start, self.checkpoint, self.report, self.keep = start, checkpoint, report, keep
        self.state = (checkpoint.load() if checkpoint else None) or SearchState()
        self._began = time.perf_counter() - self.state.seconds
        self._descent: Descent | None = None

    def run(self) -> Found:
        """Search until the budget of every restart is used, the target or the proven bound is reached."""
        o = self.options
        small = o.k <= SMALL and o.restarts > 1 and self.start is None and self.budget.seconds is None
        interrupted = False
        try:
            (self._run_batches if small else self._run_descents)()
        except KeyboardInterrupt:
            if not self.keep:
                raise
            interrupted = True
        if self._descent is not None:
            self._take(self._descent)
        if self.state.rows is None:
            raise KeyboardInterrupt  # stopped before the first pass: there is nothing to keep
        if not interrupted and o.k * o.d <= LARGEST and o.k <= MOST_LINES:
            self.state.rows, self.state.coherence = polished(self.state.rows)
        seconds = time.perf_counter() - self._began
        s = self.state
        assert s.rows is not None
        return Found(s.rows, s.coherence, s.label, s.steps, seconds, interrupted)

    def _done(self) -> bool:
        best = self.state.coherence
        target = self.budget.target
        return best <= self.options.bound + REACHED or (target is not None and best <= target)

    def _run_descents(self) -> None:
        while self.state.restart < self.options.restarts and not self._done():
            self._descent = descent = self._new_descent(self.state.restart)
            if self.state.tensors:
                descent.restore(self.state.tensors, self.state.numbers)
                self.state.tensors = {}
            descent.run(self.budget, self._each)
            self._take(descent)
            self._descent = None

    def _new_descent(self, restart: int) -> Descent:
        o = self.options
        generator = generator_for(o.seed, restart)
        if self.start is not None:
            noise = torch.randn(self.start.shape, generator=generator) * (1e-3 / o.d**0.5)
            return Descent(self.start + noise, self.device, WARM.near(o.bound), precision=o.precision)
        order = automatic_order(o.k, o.d) if o.symmetry is None else o.symmetry
        symmetry: Cyclic = random_cyclic(order, o.d, generator) if order > 1 else TRIVIAL
        rows = random_start(o.k // order, o.d, generator)
        return Descent(rows, self.device, Schedule().near(o.bound), symmetry, o.precision)

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
        if self.report is not None:
            whole = (self.state.restart + fraction) / self.options.restarts
            best = min(self.state.coherence, descent.best.coherence)
            self.report(self.state.steps + descent.step_count, whole, descent.maximum, best)
        if self.checkpoint is not None:
            self.checkpoint.maybe(self.snapshot)

    def snapshot(self) -> SearchState:
        """The state of the search as it stands, for a checkpoint."""
        tensors, numbers = self._descent.state() if self._descent is not None else ({}, {})
        seconds = time.perf_counter() - self._began
        return dataclasses.replace(self.state, seconds=seconds, tensors=tensors, numbers=numbers)

    def _run_batches(self) -> None:
        assert self.budget.steps is not None
        for first, count, group_of in self._batches():
            if first < self.state.restart:
                continue  # done before the checkpoint
            if self._done():
                return
            generator = generator_for(self.options.seed, first)
            group = group_of(count, generator)
            starts = torch.randn(count, len(group.own()), self.options.d, generator=generator)
            batch = BatchDescent(starts.to(self.device), group, Schedule().near(self.options.bound))
            for step in range(self.budget.steps):
                least = batch.step(step / self.budget.steps)
                if self.report is not None:
                    whole = (first + count * (step + 1) / self.budget.steps) / self.options.restarts
                    best = min(self.state.coherence, least)
                    self.report(self.state.steps + count * (step + 1), whole, float(batch.maximum.min()), best)
            self._take_batch(batch, first + count)
            if self.checkpoint is not None:
                self.checkpoint.maybe(self.snapshot)

    def _take_batch(self, batch: BatchDescent, restarts: int) -> None:
        assert self.budget.steps is not None
        result = batch.finish()
        self.state.steps += (restarts - self.state.restart) * self.budget.steps
        self.state.restart = restarts
        winner = int(result.coherence.argmin())
        rows, value = polished(result.lines(winner).cpu())
        if value < self.state.coherence:
            label = result.group.label
            self.state.label = "optimise" if label == "none" else f"optimise, {label}"
            self.state.rows, self.state.coherence = rows, value

    def _batches(self) -> Iterator[tuple[int, int, Callable[[int, torch.Generator], Group]]]:
        """(first restart, starts, group) of each batch: the groups take turns, no symmetry first."""
        kinds = small_groups(self.options.k, self.options.d, self.options.symmetry)
        first, turn = 0, 0
        share = max(1, -(-self.options.restarts // len(kinds)))
        while first < self.options.restarts:
            orbits, group_of = kinds[turn % len(kinds)]
            room = max(1, ENTRIES // (orbits * self.options.k))
            count = min(share, BATCH, room, self.options.restarts - first)
            yield first, count, group_of
            first, turn = first + count, turn + 1


Kind = tuple[int, Callable[[int, torch.Generator], Group]]
"""Orbits of a kind of symmetry, and how to draw `count` groups of it."""


def small_groups(k: int, d: int, symmetry: int | None) -> list[Kind]:
    """The kinds of symmetry that small starts of k lines in R^d can have; `symmetry` = 1: none, g: that order alone."""

    def cyclic(order: int) -> Kind:
        def draw(count: int, generator: torch.Generator) -> Group:
            drawn = [random_cyclic(order, d, generator, spread=1) for _ in range(count)]
            frequencies = torch.tensor([c.frequencies for c in drawn]).view(count, d // 2)
            return CyclicGroup(order, k // order, frequencies, torch.tensor([c.last for c in drawn]))

        return k // order, draw

    if symmetry is not None and symmetry > 1:
        return [cyclic(symmetry)]

    def whole(group: Group) -> Kind:
        return len(group.own()), lambda count, generator: group

    kinds = [whole(NoGroup(k))]
    if symmetry == 1 or d < 3:
        return kinds
    kinds += [whole(group) for group in affine_groups(k, d)]
    orders = [g for g in range(3, min(k // 2, LARGEST_ORDER) + 1) if k % g == 0]
    return kinds + [cyclic(order) for order in reversed(orders)]


def affine_groups(k: int, d: int) -> list[AffineGroup]:
    """The affine symmetries of R^d, d prime, under which k lines have few orbits."""
    if d < 5 or any(d % f == 0 for f in range(2, int(d**0.5) + 1)) or k % d:
        return []
    groups = []
    for s in range(2, d):
        long, short = divmod(k // d, s)
        if (d - 1) % s == 0 and long >= 1 and short <= 2:
            groups.append(AffineGroup(d, s, long, short))
    return groups
