"""`pack`: the best k lines in R^d that the search and the explicit constructions give together."""

from __future__ import annotations

import dataclasses
import os
import time
from typing import Any

import torch

from repcap.devices import resolve_device
from repcap.errors import InputError
from repcap.numerics import check_seed, whole
from repcap.packing.coherence import coherence
from repcap.packing.packed import Packing, PackProgress, ProgressHook
from repcap.packing.search.gradient import WORKING
from repcap.packing.search.optimise import Budget
from repcap.packing.search.resume import Checkpoint
from repcap.packing.search.search import REACHED, Found, Search, SearchOptions, generator_for, random_start
from repcap.packing.search.symmetry import automatic_order

METHODS = ("optimise", "random", "adam-pnorm")
CONSTRUCTED_ENTRIES = 1 << 28
"""k d up to which a construction is made in memory to stand beside the search (2 GB of float64)."""


@dataclasses.dataclass(frozen=True)
class _Task:
    """The arguments of one call of `pack`, checked."""

    k: int
    d: int
    seed: int
    restarts: int
    precision: str
    symmetry: int | None
    init: str
    method: str
    trials: int
    multiplier: int
    budget: Budget
    device: torch.device
    keep_on_interrupt: bool
    bound: float
    bound_name: str
    on_progress: ProgressHook | None
    began: float

    def report(self, step: int, fraction: float, now: float, best: float) -> None:
        if self.on_progress is not None:
            seconds = time.perf_counter() - self.began
            self.on_progress(PackProgress(step, self.budget.steps, fraction, now, best, self.bound, seconds))


def check_size(k: int, d: int) -> None:
    """Raise InputError unless k >= 2 and d >= 1."""
    if k < 2:
        raise InputError(f"a packing needs at least 2 vectors, got k = {k}")
    if d < 1:
        raise InputError(f"the dimension must be at least 1, got d = {d}")


def lower_bound(k: int, d: int) -> tuple[float, str]:
    """Proven lower bound on the coherence of k vectors in R^d, and its name."""
    from repcap.laws.limits.bounds import coherence_lower_bound

    bound = coherence_lower_bound(k, d)
    return float(bound.value), str(bound.name)


def pack(
    k: int,
    d: int,
    *,
    steps: int | None = 400,
    seconds: float | None = None,
    restarts: int = 1,
    seed: int = 0,
    target: float | None = None,
    init: str = "random",
    device: str = "auto",
    precision: str = "float32",
    method: str = "optimise",
    symmetry: int | str = "auto",
    constructions: bool = True,
    trials: int = 100,
    multiplier: int = 60,
    on_progress: ProgressHook | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    keep_on_interrupt: bool = False,
) -> Packing:
    """k unit vectors in R^d with small coherence: the best of a search and of the explicit constructions.

    Parameters
    ----------
    steps, seconds
        Budget of each restart; either may be None. The path of the search is spread over it.
    restarts
        Independent starts; for k <= 512 they run together, with and without symmetry.
    target
        Stop as soon as a coherence at or below this is reached.
    init
        `random`, `construction` (the best explicit set, slightly disturbed) or the path of a file of vectors.
    precision
        `float32`, `float64`, or `bfloat16` (weighted sums alone). The final coherence is float64 in any case.
    method
        `optimise`; `random`: the best of `trials` draws; `adam-pnorm`: the published loop with exponent
        min(int(multiplier / ln d), 20).
    symmetry
        Order g of the rotation that the packing is invariant under: 1 none, g must divide k; `auto` takes the largest
        g <= 20 that leaves 100 orbits. A search of order g costs 1/g.
    constructions
        Whether the answer of `optimise` may be an explicit construction (or a subset of one) if that is better.
        Where one attains the proven bound, no search is run.
    checkpoint
        File that the search writes its state to every 30 s and starts from if it exists; removed at the end.
    keep_on_interrupt
        Whether Ctrl-C returns the best so far (`interrupted` is set) instead of raising KeyboardInterrupt.

    Time 3 k^2 d / g flops a step. Memory 3 k d numbers and the blocks; never k x k (but for `adam-pnorm`, k <= 2000
    where a polish is tried, and batches of small starts).

    Raises
    ------
    InputError
        if an argument is out of range, or a file cannot be used.
    """
    task = _task(
        k, d, seed=seed, restarts=restarts, precision=precision, symmetry=symmetry, init=init, method=method,
        trials=trials, multiplier=multiplier, budget=Budget(_optional("steps", steps), seconds, target), device=device,
        keep_on_interrupt=keep_on_interrupt, on_progress=on_progress,
    )  # fmt: skip
    details: dict[str, Any] = {}
    # A baseline is asked for to be seen: a construction would hide it.
    built = _construct(task.k, task.d) if constructions and method == "optimise" else None
    best = _best(task, built, checkpoint, details)
    _better_known(task.k, task.d, best.coherence, details)
    options = {
        "steps": task.budget.steps, "seconds": seconds, "restarts": task.restarts, "target": target, "init": init,
        "method": method, "precision": precision, "symmetry": symmetry, "constructions": constructions,
        "device": task.device.type,
    }  # fmt: skip
    return Packing(
        task.k, task.d, task.seed, best.coherence, task.bound, task.bound_name, time.perf_counter() - task.began,
        best.steps, best.label, best.vectors, best.optimised, best.constructed, options, best.interrupted, details,
    )  # fmt: skip


def _optional(what: str, value: Any) -> int | None:
    return None if value is None else whole(what, value)


def _task(
    k: int, d: int, *, seed: int, restarts: int, trials: int, symmetry: int | str, device: str, **others: Any
) -> _Task:
    """The arguments of `pack` as plain numbers within their bounds.

    Raises
    ------
    InputError
        if one is not.
    """
    k, d = whole("k", k), whole("d", d)
    check_size(k, d)
    _one_of("precision", others["precision"], tuple(WORKING))
    _one_of("method", others["method"], METHODS)
    bound, bound_name = lower_bound(k, d)
    task = _Task(
        k=k, d=d, seed=check_seed(whole("seed", seed)), restarts=whole("restarts", restarts),
        trials=whole("trials", trials), symmetry=_order(symmetry, k), device=resolve_device(device), bound=bound,
        bound_name=bound_name, began=time.perf_counter(), **others,
    )  # fmt: skip
    if task.restarts < 1:
        raise InputError(f"restarts must be at least 1, got {task.restarts}")
    if task.trials < 1:
        raise InputError(f"trials must be at least 1, got {task.trials}")
    target = task.budget.target
    if target is not None and not 0.0 < target < 1.0:
        raise InputError(f"the target is a coherence between 0 and 1, got {target}")
    if task.precision == "float64" and task.device.type == "mps":
        raise InputError("mps has no float64: use --precision float32 or --device cpu")
    return task


@dataclasses.dataclass(frozen=True)
class _Best:
    """The better of a search and an explicit construction. optimised, constructed: what each alone came to."""

    vectors: torch.Tensor
    coherence: float
    label: str
    optimised: float | None
    constructed: float | None
    steps: int
    interrupted: bool


def _best(
    task: _Task,
    built: tuple[torch.Tensor, str] | None,
    checkpoint: str | os.PathLike[str] | None,
    details: dict[str, Any],
) -> _Best:
    constructed = coherence(built[0]).value if built is not None else None
    if built is not None and constructed is not None and constructed <= task.bound + REACHED and task.init == "random":
        return _Best(built[0], constructed, f"construction: {built[1]}", None, constructed, 0, False)
    found = _found(task, checkpoint, details, built)
    optimised = coherence(found.rows, device=task.device).value
    steps, interrupted = found.steps, found.interrupted
    if built is not None and constructed is not None and constructed <= optimised:
        return _Best(built[0], constructed, f"construction: {built[1]}", optimised, constructed, steps, interrupted)
    return _Best(found.rows, optimised, found.label, optimised, constructed, steps, interrupted)


def _better_known(k: int, d: int, value: float, details: dict[str, Any]) -> None:
    """Say which explicit set is known to be better, where its vectors are not built here."""
    from repcap.constructions.best import best_coherence

    known = best_coherence(k, d)
    if known.coherence < value * (1 - 1e-9):
        details["better_known"] = {"coherence": known.coherence, "name": known.name}


def _one_of(what: str, given: str, allowed: tuple[str, ...]) -> str:
    if given not in allowed:
        raise InputError(f"unknown {what} {given!r}: use {', '.join(allowed)}")
    return given


def _order(symmetry: int | str, k: int) -> int | None:
    if symmetry == "auto":
        return None
    if isinstance(symmetry, str) and not symmetry.isdecimal():
        raise InputError(f"symmetry must be auto or a whole number, got {symmetry!r}")
    order = int(symmetry) if isinstance(symmetry, str) else whole("symmetry", symmetry)
    if order < 1 or k % order:
        raise InputError(f"a rotation of order {order} needs k to be a multiple of it, got k = {k}; use 1 or auto")
    return order


def _construct(k: int, d: int) -> tuple[torch.Tensor, str] | None:
    """Vectors and name of the best explicit set, or None where none is built (or it would not fit into memory)."""
    from repcap.constructions.build import best_lines

    if k * d > CONSTRUCTED_ENTRIES:
        return None
    lines = best_lines(k, d)
    return None if lines is None else (lines.read(0, k), lines.name)


def _found(
    task: _Task,
    checkpoint: str | os.PathLike[str] | None,
    details: dict[str, Any],
    built: tuple[torch.Tensor, str] | None,
) -> Found:
    if task.method == "random":
        return _random(task, details)
    if task.method == "adam-pnorm":
        return _adam(task, details)
    return _optimise(task, checkpoint, built, details)


def _optimise(
    task: _Task,
    checkpoint: str | os.PathLike[str] | None,
    built: tuple[torch.Tensor, str] | None,
    details: dict[str, Any],
) -> Found:
    start = _start(task, built)
    options = SearchOptions(task.k, task.d, task.seed, task.restarts, task.precision, task.symmetry, task.bound)
    saver = None
    if checkpoint is not None:
        budget = {"steps": task.budget.steps, "seconds": task.budget.seconds, "init": task.init}
        saver = Checkpoint(checkpoint, {**dataclasses.asdict(options), **budget})
    search = Search(options, task.budget, task.device, start, saver, task.report, task.keep_on_interrupt)
    found = search.run()
    if start is None:
        details["symmetry_order"] = automatic_order(task.k, task.d) if task.symmetry is None else task.symmetry
    details["search_seconds"] = found.seconds
    if saver is not None:
        saver.write(search.snapshot()) if found.interrupted else saver.remove()
    return found


def _start(task: _Task, built: tuple[torch.Tensor, str] | None) -> torch.Tensor | None:
    """The rows to start from, or None for random ones."""
    if task.init == "random":
        return None
    if task.init == "construction":
        made = built or _construct(task.k, task.d)
        if made is None:
            raise InputError(f"no construction of {task.k} lines in R^{task.d} is built here; use --init random")
        return made[0].to(torch.float32)
    from repcap.packing.coherence import unit_rows
    from repcap.packing.vector_files import open_vectors

    matrix, _ = open_vectors(task.init)
    if matrix.dim != task.d or matrix.count < task.k:
        raise InputError(
            f"{task.init} holds {matrix.count} vectors of R^{matrix.dim}; a start needs at least {task.k} of R^{task.d}"
        )
    return unit_rows(matrix.read(0, task.k)).to(torch.float32)


def _random(task: _Task, details: dict[str, Any]) -> Found:
    from repcap.laws.limits.existence import random_coherence
    from repcap.packing.search.random_lines import random_lines

    def hook(done: int, total: int) -> None:
        task.report(done, done / total, 1.0, 1.0)

    result = random_lines(task.k, task.d, task.trials, task.seed, task.device, hook)
    ordered = sorted(result.draws)
    details["trials"] = task.trials
    details["median_draw"] = ordered[len(ordered) // 2]
    details["predicted"] = float(random_coherence(task.k, task.d, trials=task.trials))
    seconds = time.perf_counter() - task.began
    return Found(result.rows, min(result.draws), f"random, best of {task.trials}", 0, seconds)


def _adam(task: _Task, details: dict[str, Any]) -> Found:
    from repcap.packing.search.adam_pnorm import adam_pnorm

    start = _start(task, None)
    if start is None:
        start = random_start(task.k, task.d, generator_for(task.seed, 0))
    result = adam_pnorm(start.to(task.device), task.budget, task.multiplier, each=task.report)
    details["exponent"], details["multiplier"] = result.p, task.multiplier
    return Found(result.rows.cpu(), result.coherence, f"adam-pnorm p={result.p}", result.steps, result.seconds)
