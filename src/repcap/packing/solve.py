"""`pack`: the best k lines in R^d that the search and the explicit constructions give together."""

from __future__ import annotations

import dataclasses
import os
import time
from typing import Any

import torch

from repcap.constructions.best import best_coherence
from repcap.devices import resolve_device
from repcap.errors import InputError
from repcap.laws.limits.bounds import coherence_lower_bound
from repcap.numerics import check_seed, whole
from repcap.packing.coherence import coherence
from repcap.packing.packed import Packing, PackProgress, ProgressHook
from repcap.packing.search import METHODS
from repcap.packing.search.method import Found, Method, Report, Task, method_of, unheard
from repcap.packing.search.optimise import REACHED
from repcap.packing.search.starts import constructed


def pack(
    k: int,
    d: int,
    *,
    steps: int | None = 400,
    seconds: float | None = None,
    restarts: int | None = None,
    seed: int = 0,
    target: float | None = None,
    init: str = "random",
    device: str = "auto",
    precision: str = "float32",
    method: str | Method = "optimise",
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
        Independent starts; for k <= 512 they run together, slow and brisk, with and without symmetry. None: 1024 where
        k d <= 120, which takes seconds and reaches the best known packings there, else 1.
    target
        Stop as soon as a coherence at or below this is reached.
    init
        `random`, `construction` (the best explicit set, slightly disturbed) or the path of a file of vectors.
    precision
        `float32`, `float64`, or `bfloat16` (weighted sums alone). The final coherence is float64 in any case.
    method
        Name of an optimiser in `repcap.packing.search.METHODS`, which takes those of the options here that are
        parameters of it: `optimise`; `random`: the best of `trials` draws; `adam-pnorm`: the published loop with
        exponent min(int(multiplier / ln d), 20). Or such an object, which carries its parameters itself.
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
    began = time.perf_counter()
    options = {
        "steps": None if steps is None else whole("steps", steps), "seconds": seconds,
        "restarts": None if restarts is None else whole("restarts", restarts), "target": target, "init": init,
        "method": method if isinstance(method, str) else method.name, "precision": precision, "symmetry": symmetry,
        "constructions": constructions, "device": resolve_device(device).type,
    }  # fmt: skip
    of_some = {"trials": whole("trials", trials), "multiplier": whole("multiplier", multiplier)}
    how = method_of(METHODS, method, {**options, **of_some})
    k, d, seed = whole("k", k), whole("d", d), check_seed(whole("seed", seed))
    check_size(k, d)
    bound, bound_name = lower_bound(k, d)
    report = _reporting(on_progress, getattr(how, "steps", None), bound, began)
    task = Task(k, d, seed, resolve_device(device), bound, report, checkpoint, keep_on_interrupt)
    best = _best(task, how, constructed(k, d) if constructions and not how.baseline else None)
    return Packing(
        k=k, d=d, seed=seed, coherence=best.coherence, lower_bound=bound, lower_bound_name=bound_name,
        seconds=time.perf_counter() - began, steps=best.found.steps, method=best.found.label, vectors=best.found.rows,
        optimised=best.optimised, constructed=best.constructed, options=options, interrupted=best.found.interrupted,
        details={**best.found.details, **_better_known(k, d, best.coherence)},
    )  # fmt: skip


def check_size(k: int, d: int) -> None:
    """Raise InputError unless k >= 2 and d >= 1."""
    if k < 2:
        raise InputError(f"a packing needs at least 2 vectors, got k = {k}")
    if d < 1:
        raise InputError(f"the dimension must be at least 1, got d = {d}")


def lower_bound(k: int, d: int) -> tuple[float, str]:
    """Proven lower bound on the coherence of k vectors in R^d, and its name."""
    bound = coherence_lower_bound(k, d)
    return float(bound.value), str(bound.name)


def _reporting(hook: ProgressHook | None, steps: int | None, bound: float, began: float) -> Report:
    if hook is None:
        return unheard

    def report(step: int, fraction: float, now: float, best: float) -> None:
        hook(PackProgress(step, steps, fraction, now, best, bound, time.perf_counter() - began))

    return report


@dataclasses.dataclass(frozen=True)
class _Best:
    """The better of a search and an explicit construction. optimised, constructed: what each alone came to."""

    found: Found
    coherence: float
    optimised: float | None
    constructed: float | None


def _best(task: Task, how: Method, built: tuple[torch.Tensor, str] | None) -> _Best:
    value = coherence(built[0]).value if built is not None else None
    found, optimised = Found(torch.empty(0), ""), None
    if value is None or value > task.bound + REACHED:
        found = how.run(task)
        optimised = coherence(found.rows, device=task.device).value
    if built is not None and value is not None and (optimised is None or value <= optimised):
        return _Best(
            dataclasses.replace(found, rows=built[0], label=f"construction: {built[1]}"), value, optimised, value
        )
    assert optimised is not None
    return _Best(found, optimised, optimised, value)


def _better_known(k: int, d: int, value: float) -> dict[str, Any]:
    """Which explicit set is known to be better, where its vectors are not built here."""
    known = best_coherence(k, d)
    if known.coherence < value * (1 - 1e-9):
        return {"better_known": {"coherence": known.coherence, "name": known.name}}
    return {}
