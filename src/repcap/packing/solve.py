"""`pack`: the best k lines in R^d that the search and the explicit constructions give together."""

from __future__ import annotations

import dataclasses
import os
import time
from typing import Any

import torch

from repcap.errors import InputError
from repcap.numerics import resolve_device
from repcap.packing.coherence import coherence
from repcap.packing.optimise import Budget, Descent
from repcap.packing.result import Packing, PackProgress, ProgressHook


def check_size(k: int, d: int) -> None:
    """Raise InputError unless k >= 2 and d >= 1."""
    if k < 2:
        raise InputError(f"a packing needs at least 2 vectors, got k = {k}")
    if d < 1:
        raise InputError(f"the dimension must be at least 1, got d = {d}")


def lower_bound(k: int, d: int) -> tuple[float, str]:
    """Proven lower bound on the coherence of k vectors in R^d, and its name."""
    from repcap.laws.bounds import coherence_lower_bound

    bound = coherence_lower_bound(k, d)
    return float(bound.value), str(bound.name)


def random_start(k: int, d: int, seed: int, restart: int = 0) -> torch.Tensor:
    """k random directions (k, d), float32, the same on every device."""
    generator = torch.Generator().manual_seed(seed + 1_000_003 * restart)
    return torch.nn.functional.normalize(torch.randn(k, d, generator=generator), dim=1)


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
    constructions: bool = True,
    on_progress: ProgressHook | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
) -> Packing:
    """k unit vectors in R^d with small coherence (thin path: the optimiser alone)."""
    check_size(k, d)
    began = time.perf_counter()
    bound, bound_name = lower_bound(k, d)
    budget = Budget(steps, seconds, target)
    where = resolve_device(device)
    best: torch.Tensor | None = None
    best_value, total = 2.0, 0
    for restart in range(restarts):
        descent = Descent(random_start(k, d, seed, restart), where)

        def each(state: Descent, fraction: float) -> None:
            if on_progress is not None:
                on_progress(
                    PackProgress(
                        state.step_count,
                        steps,
                        fraction,
                        state.maximum,
                        state.best.coherence,
                        bound,
                        time.perf_counter() - began,
                    )
                )

        descent.run(budget, each)
        total += descent.step_count
        if descent.best.coherence < best_value:
            best_value, best = descent.best.coherence, descent.best.rows()
    assert best is not None
    value = coherence(best).value
    options: dict[str, Any] = {"steps": steps, "restarts": restarts, "init": init, "precision": precision}
    return Packing(
        k, d, seed, value, bound, bound_name, time.perf_counter() - began, total, method, best, value, None, options
    )


__all__ = ["Packing", "dataclasses", "pack"]
