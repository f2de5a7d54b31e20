"""`pack_max`: how many lines in R^d with coherence at most eps can be shown, by an explicit set or by search."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable
from typing import Annotated, Any, ClassVar

from repcap.constructions.best import best_construction
from repcap.constructions.build import most_lines
from repcap.errors import InputError
from repcap.laws.limits.bounds import upper_bound
from repcap.matrix import Matrix, TensorMatrix
from repcap.numerics import format_power, whole
from repcap.options import Device, Option, Seed, verb
from repcap.packing.coherence import coherence
from repcap.packing.entry import pack
from repcap.result import Result

MOST = 20_000
"""Lines up to which the search tries; beyond, explicit sets answer alone."""

GROWTH = 1.3
FINE = 0.01
"""Between a k that was reached and one that was not, the search stops when they differ by 1 %."""

CHECKED = 5_000
"""Vectors up to which a construction is measured over all pairs; beyond, its proof is relied on."""

EXACT_SLACK = 1e-9
"""Relative slack on eps: 1/3 and 1/sqrt(d) have no exact float."""

MEASURED = "measured over all pairs"


@dataclasses.dataclass(frozen=True)
class Trial:
    """One search at k lines."""

    k: int
    coherence: float
    reached: bool
    seconds: float


@dataclasses.dataclass(frozen=True, repr=False)
class PackMax(Result):
    """The largest number of lines shown to fit."""

    kind: ClassVar[str] = "pack-max"
    d: int
    epsilon: float
    k: int
    coherence: float
    """Of these k lines: measured in float64, or the value (or bound) that the construction proves."""
    evidence: str
    """`measured over all pairs` or `proven`."""
    method: str
    known_k: int | None
    """Lines of the largest explicit set known on paper, built here or not; None beyond 10^300."""
    known_log10_k: float
    known_name: str
    upper_log10_k: float
    upper_name: str
    trials: tuple[Trial, ...]
    seed: int
    interrupted: bool = False
    path: str | None = None
    matrix: Matrix | None = dataclasses.field(default=None, repr=False, compare=False)
    """The vectors, as row blocks."""

    @property
    def title(self) -> str:
        return f"lines in R^{self.d} with |cos| <= {self.epsilon:g}"

    @property
    def numbers(self) -> str:
        shown = str(self.k) if self.k < 10**12 else f"{self.k:.6g}"
        return f"{shown} shown, proven limit {format_power(self.upper_log10_k)}"

    @property
    def reading(self) -> str:
        how = "measured" if self.evidence == MEASURED else "proven"
        return (
            f"{format_power(math.log10(self.k))} lines within {self.epsilon:g} are {how} ({self.method}); more than "
            f"{format_power(self.upper_log10_k)} are impossible ({self.upper_name})."
        )

    def values(self) -> dict[str, Any]:
        left_out = {field.name for field in dataclasses.fields(Result)} | {"matrix", "trials"}
        names = [field.name for field in dataclasses.fields(self) if field.name not in left_out]
        record = {name: getattr(self, name) for name in names}
        return {**record, "trials": [dataclasses.asdict(trial) for trial in self.trials]}


@verb
def pack_max(
    d: int,
    epsilon: float,
    *,
    seconds: Annotated[float, Option("Time for the whole search.", above=0.0)] = 60.0,
    steps: Annotated[int, Option("Steps of each search.", least=1)] = 400,
    restarts: Annotated[int, Option("Starts of each search.", least=1)] = 1,
    seed: Seed = 0,
    device: Device = "auto",
    search: Annotated[bool, Option("Search beyond explicit sets.", flags=("--search/--no-search",))] = True,
    on_progress: Callable[[Trial], None] | None = None,
    keep_on_interrupt: bool = False,
) -> PackMax:
    """The largest k for which k lines in R^d with coherence <= epsilon are shown, by construction or search.

    The search starts beyond the best explicit set and grows while it succeeds, then bisects, until `seconds` are used.
    What it reports was measured in float64 over all pairs; an explicit set rests on its theorem and, up to 5000 lines,
    on the same measurement. It is a lower bound on what is possible: `upper_log10_k` is the proven limit.

    Raises
    ------
    InputError
        if d < 1, epsilon is not in (0, 1), or seconds is not positive.
    """
    d = whole("d", d)
    if d < 1 or not 0 < epsilon < 1:
        raise InputError(f"pack-max needs d >= 1 and 0 < epsilon < 1, got d = {d}, epsilon = {epsilon}")
    began = time.perf_counter()
    known, upper = best_construction(d, epsilon), upper_bound(d, epsilon)
    hunt = _Hunt(d, epsilon, steps, restarts, seed, device, began + seconds, on_progress, _explicit(d, epsilon))
    interrupted = False
    # The proven limit, as a whole number: 10^log10 has rounding of its own.
    limit = MOST if upper.log10_k > math.log10(MOST) else math.floor(10**upper.log10_k * (1 + 1e-9))
    try:
        if search and d > 1 and hunt.best.k < limit:
            hunt.run(limit)
    except KeyboardInterrupt:
        if not keep_on_interrupt:
            raise
        interrupted = True
    best = hunt.best
    return PackMax(
        d=d, epsilon=epsilon, k=best.k, coherence=best.coherence, evidence=best.evidence, method=best.method,
        known_k=known.k, known_log10_k=known.log10_k, known_name=known.name, upper_log10_k=upper.log10_k,
        upper_name=upper.name, trials=tuple(hunt.trials), seed=seed, interrupted=interrupted, matrix=best.matrix,
    )  # fmt: skip


@dataclasses.dataclass(frozen=True)
class _Shown:
    """k lines within epsilon, and why that is believed."""

    k: int
    coherence: float
    evidence: str
    method: str
    matrix: Matrix


def _explicit(d: int, epsilon: float) -> _Shown:
    """The largest explicit set that is built here."""
    lines = most_lines(d, epsilon)
    measured = 2 <= lines.count <= CHECKED
    value = coherence(lines).value if measured else lines.claimed
    return _Shown(lines.count, value, MEASURED if measured else "proven", f"construction: {lines.name}", lines)


@dataclasses.dataclass
class _Hunt:
    """Searches at growing k, then between the last success and the first failure."""

    d: int
    epsilon: float
    steps: int
    restarts: int
    seed: int
    device: str
    deadline: float
    on_progress: Callable[[Trial], None] | None
    best: _Shown
    trials: list[Trial] = dataclasses.field(default_factory=list)

    def run(self, limit: int) -> None:
        """Try more lines than the best has, up to `limit`."""
        reached, failed = self.best.k, limit + 1
        k = max(reached + 1, min(self.d + 1, limit))
        while reached < k < failed and time.perf_counter() < self.deadline:
            if self._try(k):
                reached = k
            else:
                failed = k
            if failed > limit:
                k = min(_round(max(int(reached * GROWTH), reached + 1)), limit)
            elif failed - reached > max(1, FINE * reached):
                k = max(_round((reached + failed) // 2), reached + 1)
            else:
                return

    def _try(self, k: int) -> bool:
        began = time.perf_counter()
        left = max(self.deadline - began, 0.1)
        target = self.epsilon * (1 - 1e-6)  # the search works in float32
        packing = pack(
            k, self.d, steps=self.steps, seconds=left if self.restarts == 1 else None, restarts=self.restarts,
            seed=self.seed, target=target, device=self.device, constructions=False,
        )  # fmt: skip
        reached = packing.coherence <= self.epsilon * (1 + EXACT_SLACK)
        trial = Trial(k, packing.coherence, reached, time.perf_counter() - began)
        self.trials.append(trial)
        if reached:
            self.best = _Shown(k, packing.coherence, MEASURED, packing.method, TensorMatrix(packing.vectors))
        if self.on_progress is not None:
            self.on_progress(trial)
        return reached


def _round(k: int) -> int:
    """Multiples of 20 above 1000, so that a rotation symmetry divides k."""
    return k // 20 * 20 if k > 1000 else k
