"""The work of `pack`: the best k lines in R^d that the search and the explicit constructions give together."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping
from typing import Any

import torch

from repcap.constructions.best import best_coherence
from repcap.devices import resolve_device
from repcap.errors import InputError
from repcap.laws.limits.bounds import coherence_lower_bound
from repcap.numerics import whole
from repcap.packing.coherence import coherence
from repcap.packing.packed import OPTIMAL, Packing, PackProgress, ProgressHook
from repcap.packing.search import Method, method_of
from repcap.packing.search.method import Found, Report, Task, unheard
from repcap.packing.search.starts import constructed


def best_packing(given: Mapping[str, Any]) -> Packing:
    """What `repcap.pack` gives, by its arguments."""
    began, how = time.perf_counter(), method_of(given["method"], given)
    k, d, seed = whole("k", given["k"]), whole("d", given["d"]), given["seed"]
    check_size(k, d)
    bound, bound_name = lower_bound(k, d)
    report = _reporting(given["on_progress"], getattr(how, "steps", None), bound, began)
    device = resolve_device(given["device"])
    task = Task(k, d, seed, device, bound, report, given["checkpoint"], given["keep_on_interrupt"])
    best = _best(task, how, constructed(k, d) if given["constructions"] and not how.baseline else None)
    return Packing(
        k=k, d=d, seed=seed, coherence=best.coherence, lower_bound=bound, lower_bound_name=bound_name,
        steps=best.found.steps, method=best.found.label, vectors=best.found.rows, optimised=best.optimised,
        constructed=best.constructed, interrupted=best.found.interrupted,
        details={**best.found.details, "device": device.type, **_better_known(k, d, best.coherence)},
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
    if value is None or value > task.bound + OPTIMAL:
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
