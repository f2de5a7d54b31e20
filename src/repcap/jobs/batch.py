"""Many units of work into a store: skip what is there, go on past failures, lose nothing that is done."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Sequence
from typing import Any

from repcap.jobs.engine import Fault, Unit, check_engine, run
from repcap.jobs.store import Failure, Store, Stored

Landed = Callable[[Unit, Any], Sequence[Stored]]
"""Turns what a worker answered into the results to store."""

OnUnit = Callable[[int, int], None]


@dataclasses.dataclass(frozen=True)
class Batch:
    """What a run over many units did.

    units: keys of the units in the list, each once. asked: how many. skipped: stored already. done: worked out now.
    lost_workers: workers that died or hung on the way (their units were tried again). failures: units of the list
    without a result, with reasons.
    """

    kind: str
    store: str
    engine: str
    units: tuple[str, ...]
    asked: int
    skipped: int
    done: int
    lost_workers: int
    seconds: float
    failures: tuple[Failure, ...]

    @property
    def complete(self) -> bool:
        """Whether every unit of the list has a result now."""
        return not self.failures

    def to_dict(self) -> dict[str, Any]:
        return {**dataclasses.asdict(self), "failed": len(self.failures)}


@dataclasses.dataclass(frozen=True)
class EngineOptions:
    """How the units are run; see `repcap.jobs.engine.run`. Nothing here changes a result or its key."""

    engine: str = "local"
    retries: int = 2
    timeout: float | None = None
    gpus_per_unit: float = 0.0

    def __post_init__(self) -> None:
        check_engine(self.engine, self.retries, self.timeout, self.gpus_per_unit)  # before a store is made for it


def run_batch(
    store: Store,
    kind: str,
    units: Sequence[Unit],
    worker: Callable[[Any], Any],
    landed: Landed,
    options: EngineOptions,
    *,
    is_stored: Callable[[Unit], bool] | None = None,
    replace: bool = False,
    on_unit: OnUnit | None = None,
) -> Batch:
    """Run the units that are not stored and store each result as it ends, in one transaction a unit.

    is_stored: says which units to skip (default: those whose key the store has). With `replace` a unit's old results
    go when its new ones come, never before.
    on_unit: called with (units settled, units asked).

    A failing unit is noted in the store and tried again by the next run. This process alone writes.
    """
    began = time.monotonic()
    stored = is_stored or (lambda unit: store.has(unit.key))
    todo = [unit for unit in units if not stored(unit)]
    settled = len(units) - len(todo)
    failed: set[str] = set()

    def settle() -> None:
        nonlocal settled
        settled += 1
        if on_unit is not None:
            on_unit(settled, len(units))

    def on_result(unit: Unit, value: Any) -> None:
        store.put_all(landed(unit, value), replace=replace)
        settle()

    def on_failure(unit: Unit, fault: Fault) -> None:
        store.put_failure(unit.key, kind, unit.label, fault.error, fault.reason)
        failed.add(unit.key)
        settle()

    if on_unit is not None:
        on_unit(settled, len(units))
    report = run(todo, worker, on_result=on_result, on_failure=on_failure, **dataclasses.asdict(options))
    failures = tuple(failure for failure in store.failures(kind) if failure.key in failed)
    seconds = time.monotonic() - began
    skipped = len(units) - len(todo)
    keys = tuple(unit.key for unit in units)
    return Batch(
        kind, str(store.path), options.engine, keys, len(units), skipped, report.done, report.lost, seconds, failures
    )
