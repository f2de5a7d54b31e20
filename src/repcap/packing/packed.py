"""What a packing is once it is found: the vectors, their coherence in float64, and what they must be judged against."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any, ClassVar

import torch

from repcap.result import Result

OPTIMAL = 1e-9
"""A coherence this near to the proven lower bound is optimal."""


@dataclasses.dataclass(frozen=True)
class PackProgress:
    """Where a search stands; handed to `on_progress` about once a step."""

    step: int
    steps: int | None
    """Steps of the whole schedule, or None where only time ends it."""
    fraction: float
    """How much of the budget of steps and time is used, 0 to 1."""
    coherence: float
    """max |cos| of the current iterate, in the working precision."""
    best: float
    lower_bound: float
    """No packing of this size can be below it (proven)."""
    seconds: float
    stage: str = "optimise"
    """`optimise`, `polish`, `construct`, `random` or `verify`."""


ProgressHook = Callable[[PackProgress], None]


@dataclasses.dataclass(frozen=True, repr=False)
class Packing(Result):
    """k unit vectors in R^d and how near to orthogonal they are.

    Every number of it is in `to_dict()`; the vectors are not, they are written with `repcap.packing.vector_files.save`.
    """

    kind: ClassVar[str] = "pack"
    k: int
    d: int
    seed: int
    coherence: float
    """max |u_i . u_j| over all pairs i < j, float64 arithmetic on the vectors as they stand."""
    lower_bound: float
    """Proven lower bound on the coherence of any k vectors in R^d."""
    lower_bound_name: str
    steps: int
    """Optimiser steps done (all restarts together); 0 where a construction alone gave the answer."""
    method: str
    """What gave the vectors: `optimise`, `optimise+polish`, `random`, `adam-pnorm`, `construction: NAME` ..."""
    vectors: torch.Tensor = dataclasses.field(repr=False, compare=False)
    """Shape (k, d), float32 or float64, unit rows, on the cpu."""
    optimised: float | None = None
    """The best coherence that the search alone reached, or None where none ran."""
    constructed: float | None = None
    """The coherence of the best explicit construction that was built, or None where none was."""
    interrupted: bool = False
    """True where the search was stopped by hand: the vectors are the best until then."""
    details: dict[str, Any] = dataclasses.field(default_factory=dict)
    """What one method alone knows (minimum over draws and its prediction, exponent, restarts ...)."""
    path: str | None = None
    """File that holds the vectors, or None."""

    @property
    def title(self) -> str:
        return f"{self.k} lines in R^{self.d}"

    @property
    def numbers(self) -> str:
        return f"coherence {self.coherence:.6g}, proven to be at least {self.lower_bound:.6g}; {self.method}"

    @property
    def reading(self) -> str:
        angle = math.degrees(math.acos(min(self.coherence, 1.0)))
        said = f"No two of the {self.k} lines are closer than {angle:.5g} degrees."
        if self.coherence <= self.lower_bound + OPTIMAL:
            return f"{said} That is optimal: {self.lower_bound_name}."
        limit = math.degrees(math.acos(self.lower_bound))
        return f"{said} No {self.k} lines in R^{self.d} can all be further apart than {limit:.5g}."

    def values(self) -> dict[str, Any]:
        """Everything but the vectors."""
        call = {field.name for field in dataclasses.fields(Result)}
        names = [field.name for field in dataclasses.fields(self) if field.name not in call | {"vectors"}]
        return {
            **{name: getattr(self, name) for name in names},
            "dtype": str(self.vectors.dtype).removeprefix("torch."),
        }
