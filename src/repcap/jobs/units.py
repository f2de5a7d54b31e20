"""Units of work, what can become of them, and how an engine is named."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Iterable
from typing import Any, Literal, NamedTuple

from repcap.errors import InputError, RepcapError
from repcap.numerics import cpu_count

LOCAL_WORKERS = 4
"""`local` without a number starts as many workers as there are processors, at most this many."""

WorkerFn = Callable[[Any], Any]


@dataclasses.dataclass(frozen=True)
class Unit:
    """One independent piece of work: `worker(payload)`, run where the engine says.

    key: unique in a run. payload: picklable. label: for people. size: any measure of cost; the largest go first.
    """

    key: str
    payload: Any
    label: str = ""
    size: float = 0.0


class Fault(NamedTuple):
    """Why a unit gave no result: class of the error (`WorkerLost` where the process died), and one line."""

    error: str
    reason: str


LOST = "WorkerLost"

OnResult = Callable[[Unit, Any], None]
OnFailure = Callable[[Unit, Fault], None]


@dataclasses.dataclass(frozen=True)
class Report:
    """What a run did: units that gave a result, units that failed, workers that were lost on the way."""

    done: int
    failed: int
    lost: int


@dataclasses.dataclass
class Tally:
    """Counts while a run goes on."""

    done: int = 0
    failed: int = 0
    lost: int = 0

    def report(self) -> Report:
        return Report(self.done, self.failed, self.lost)


class Limits(NamedTuple):
    """What a unit may use."""

    retries: int
    """How often a unit is tried again after its worker was lost. An error that the worker reports is final."""
    timeout: float | None
    """Seconds until a unit counts as hung and its worker is killed; None waits for ever."""
    gpus: float
    """GPUs a unit holds; below one, units share one."""


class EngineSpec(NamedTuple):
    """Where units run: `inline`, `local` with so many workers, or `ray` at an address (None: ray's own choice)."""

    kind: Literal["inline", "local", "ray"]
    workers: int = 1
    address: str | None = None


def parse_engine(text: str) -> EngineSpec:
    """`local`, `local:N`, `ray`, `ray:ADDRESS` or `inline`.

    >>> parse_engine("local:3").workers, parse_engine("ray:10.0.0.1:6379").address
    (3, '10.0.0.1:6379')
    """
    kind, _, rest = text.partition(":")
    if kind == "local" and not rest:
        return EngineSpec("local", min(cpu_count(), LOCAL_WORKERS))
    if kind == "local" and rest.isascii() and rest.isdigit() and int(rest) > 0:
        return EngineSpec("local", int(rest))
    if kind == "ray":
        return EngineSpec("ray", address=rest or None)
    if text == "inline":
        return EngineSpec("inline")
    raise InputError(f"unknown engine {text!r}: use local, local:N (N workers), ray, ray:ADDRESS or inline")


def in_order(units: Iterable[Unit]) -> list[Unit]:
    """Units, the largest first (the order given where sizes are equal).

    Raises
    ------
    InputError
        if two units have the same key.
    """
    ordered = sorted(units, key=lambda unit: -unit.size)
    seen: set[str] = set()
    for unit in ordered:
        if unit.key in seen:
            raise InputError(f"two units of work have the key {unit.key} ({unit.label or 'no label'})")
        seen.add(unit.key)
    return ordered


def check_worker(worker: WorkerFn) -> None:
    """A worker function travels to other processes by its name, so it must have one that they can import."""
    module, name = getattr(worker, "__module__", None), getattr(worker, "__qualname__", "")
    target: Any = sys.modules.get(module or "")
    for part in name.split("."):
        target = getattr(target, part, None)
    if module == "__main__" or target is not worker:
        raise InputError(
            f"the worker {name or worker!r} must be a function of a module that other processes can import"
        )


def fault_of(error: BaseException) -> Fault:
    """The fault that an exception of a worker stands for; where it is no error of ours, with the place it came from."""
    text = " ".join(str(error).split())
    if isinstance(error, RepcapError):
        return Fault(type(error).__name__, text)
    place, trace = "", error.__traceback__
    while trace is not None:
        place = f"{trace.tb_frame.f_globals.get('__name__', '?')}:{trace.tb_lineno}"
        trace = trace.tb_next
    return Fault(type(error).__name__, f"{type(error).__name__}: {text}" + (f" ({place})" if place else ""))
