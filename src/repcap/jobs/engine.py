"""Runs independent units of work here or on a cluster, and hands each result to the caller exactly once.

Engines: `local[:N]` (N worker processes on this machine), `ray[:ADDRESS]` (a Ray cluster), `inline` (this process:
no isolation, for notebooks and debugging). Whatever the engine:

- the largest units start first, and no more are in flight than there are workers: a slow writer slows the run down
  instead of filling memory;
- a worker that dies (killed, out of memory, its node gone) or hangs costs only its unit, which is tried again;
- an error that the worker function raises is final for that unit and does not stop the others;
- `on_result` and `on_failure` are called in the caller's thread, one at a time, so the caller alone writes results;
- Ctrl-C, or an error from a callback, ends the workers and is passed on. What the callbacks stored stays stored.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib.util import find_spec

from repcap.errors import InputError, MissingExtraError
from repcap.jobs.local import run_local
from repcap.jobs.ray import run_ray
from repcap.jobs.units import (
    LOST,
    EngineSpec,
    Fault,
    Limits,
    OnFailure,
    OnResult,
    Report,
    Tally,
    Unit,
    WorkerFn,
    check_worker,
    fault_of,
    in_order,
    parse_engine,
)

__all__ = ["LOST", "EngineSpec", "Fault", "Report", "Unit", "check_engine", "parse_engine", "run"]


_FOR_EVER = 1e8
"""Seconds: three years. Clocks overflow not far beyond."""


def run(
    units: Iterable[Unit],
    worker: WorkerFn,
    engine: str = "local",
    *,
    on_result: OnResult,
    on_failure: OnFailure,
    retries: int = 2,
    timeout: float | None = None,
    gpus_per_unit: float = 0.0,
) -> Report:
    """Call `worker(unit.payload)` for every unit, and `on_result(unit, value)` or `on_failure(unit, fault)` once each.

    units: their payloads and results are pickled, except under `inline`.
    worker: a function of an importable module (not of `__main__`).
    retries: how often a unit is tried again after its worker was lost or hung.
    timeout: seconds after which a unit counts as hung; None waits for ever. `inline` cannot enforce it.
    gpus_per_unit: GPUs a unit holds (below 1, units share one); 0 asks for none. `inline` ignores it.

    Returns counts. Memory: one payload and one result for each worker, and the list of units.

    Raises
    ------
    InputError
        for an unknown engine, a worker that other processes cannot import, repeated keys, or GPUs that are not there.
    MissingExtraError
        for `ray` without the package.
    RepcapError
        if workers cannot be started, or the cluster is gone.
    """
    spec = check_engine(engine, retries, timeout, gpus_per_unit)
    limits = Limits(retries, timeout if timeout is None or timeout < _FOR_EVER else None, gpus_per_unit)
    ordered = in_order(units)
    if not ordered:
        return Report(0, 0, 0)
    if spec.kind == "inline":
        return _run_inline(ordered, worker, on_result, on_failure)
    check_worker(worker)
    if spec.kind == "local":
        return run_local(ordered, worker, spec.workers, limits, on_result, on_failure)
    return run_ray(ordered, worker, spec.address, limits, on_result, on_failure)


def check_engine(engine: str, retries: int = 2, timeout: float | None = None, gpus_per_unit: float = 0.0) -> EngineSpec:
    """What `engine` means, if `run` could start it here with these limits. Nothing is started.

    Raises
    ------
    InputError
        for an unknown engine or a limit that means nothing.
    MissingExtraError
        for `ray` without the package.
    """
    spec = parse_engine(engine)
    if retries < 0 or (timeout is not None and not timeout > 0):
        raise InputError(f"retries {retries} must not be negative, and timeout {timeout} must be positive or None")
    if gpus_per_unit < 0 or (gpus_per_unit > 1 and gpus_per_unit != int(gpus_per_unit)):
        raise InputError(f"GPUs per unit {gpus_per_unit:g} must be a fraction below 1 or a whole number")
    if spec.kind == "ray" and find_spec("ray") is None:
        raise MissingExtraError("--engine ray", "ray")
    return spec


def _run_inline(units: list[Unit], worker: WorkerFn, on_result: OnResult, on_failure: OnFailure) -> Report:
    tally = Tally()
    for unit in units:
        try:
            value = worker(unit.payload)
        except Exception as error:  # noqa: PERF203 - a failing unit must not stop the others
            tally.failed += 1
            on_failure(unit, fault_of(error))
        else:
            tally.done += 1
            on_result(unit, value)
    return tally.report()
