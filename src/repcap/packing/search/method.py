"""What an optimiser (`repcap.packing.search.Method`) is handed and gives back, and when a descent ends."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable
from typing import Any

import torch

from repcap.errors import InputError
from repcap.numerics import whole

Report = Callable[[int, float, float, float], None]
"""(step, fraction of the work that is done, coherence now, best so far)."""


def unheard(step: int, fraction: float, now: float, best: float) -> None:
    """The `Report` of who does not listen."""


@dataclasses.dataclass(frozen=True)
class Task:
    """What every optimiser is asked for, whatever its own parameters are."""

    k: int
    d: int
    seed: int = 0
    device: torch.device = dataclasses.field(default_factory=lambda: torch.device("cpu"))
    bound: float = 0.0
    """Proven lower bound on the coherence, where a search may stop."""
    report: Report = unheard
    checkpoint: str | os.PathLike[str] | None = None
    keep_on_interrupt: bool = False


@dataclasses.dataclass
class Found:
    """What a method came to."""

    rows: torch.Tensor
    """(k, d), float32 or float64, on the cpu."""
    label: str
    """What gave the rows, in words."""
    steps: int = 0
    interrupted: bool = False
    details: dict[str, Any] = dataclasses.field(default_factory=dict)
    """What this method alone knows."""


@dataclasses.dataclass(frozen=True)
class Budget:
    """When a descent ends: steps, seconds (either may be None, not both), or a coherence that is reached."""

    steps: int | None = 400
    seconds: float | None = None
    target: float | None = None

    def __post_init__(self) -> None:
        if self.steps is None and self.seconds is None:
            raise InputError("a search needs an end: give steps, seconds or both")
        if self.steps is not None and whole("steps", self.steps) < 1:
            raise InputError(f"steps must be at least 1, got {self.steps}")
        if self.seconds is not None and not self.seconds > 0:
            raise InputError(f"seconds must be positive, got {self.seconds}")
        if self.target is not None and not 0.0 < self.target < 1.0:
            raise InputError(f"the target is a coherence between 0 and 1, got {self.target}")

    @classmethod
    def of(cls, how: Any) -> Budget:
        """Of an optimiser that has these three parameters."""
        return cls(how.steps, how.seconds, how.target)

    def fraction(self, step: int, seconds: float) -> float:
        """Used share of the budget after `step` steps and `seconds`, 0 to 1."""
        used = [0.0]
        if self.steps is not None:
            used.append(step / self.steps)
        if self.seconds is not None:
            used.append(seconds / self.seconds)
        return min(max(used), 1.0)


def at_least_one(what: str, value: Any) -> int:
    """`value` as a whole number of at least 1; InputError otherwise."""
    number = whole(what, value)
    if number < 1:
        raise InputError(f"{what} must be at least 1, got {number}")
    return number


def one_of(what: str, given: str, allowed: tuple[str, ...]) -> str:
    """`given`, if it is one of the words `allowed`; InputError otherwise."""
    if given not in allowed:
        raise InputError(f"unknown {what} {given!r}: use {', '.join(allowed)}")
    return given
