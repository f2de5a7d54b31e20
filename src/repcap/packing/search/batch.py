"""Many small descents at once: R starts as one (R, a, d) tensor, each with its own symmetry or none.

Small problems have many local optima, so they need many starts, and one start is far too little work to fill a
processor. Starts under a random symmetry (rotations of order g, or the affine maps of a prime field acting on
coordinates) reach optima that unrestricted starts do not: (36, 15), (144, 16), (276, 23) (docs/packing.md).
"""

from __future__ import annotations

import dataclasses
import math

import torch
from torch.nn.functional import normalize

from repcap.packing.search.descent import Schedule
from repcap.packing.search.gradient import CLAMP, LEAST
from repcap.packing.search.groups import CyclicGroup, Group

ENTRIES = 2_000_000
"""Cosines that a batch holds at once (three float32 tensors of this many)."""


@dataclasses.dataclass(frozen=True)
class BatchResult:
    """The best rows of each start."""

    coherence: torch.Tensor
    """(R,) float32."""
    orbits: torch.Tensor
    """(R, a, d)."""
    group: Group

    def lines(self, start: int) -> torch.Tensor:
        """All k lines of one start, (k, d) float32."""
        group = self.group
        if isinstance(group, CyclicGroup):
            one = slice(start, start + 1)
            group = dataclasses.replace(group, frequencies=group.frequencies[one], last=group.last[one])
        return normalize(group.expand(self.orbits[start : start + 1])[0], dim=1)


class BatchDescent:
    """State of R descents of the same size; `step` moves all of them.

    Time for a step: 4 R a k d flops and R a k exponentials; memory: 4 R a k + 5 R k d numbers.
    """

    def __init__(self, starts: torch.Tensor, group: Group, schedule: Schedule | None = None) -> None:
        self.schedule = schedule or Schedule()
        self.group = group
        self.rows = normalize(group.project(starts), dim=2)
        self.velocity = torch.zeros_like(self.rows)
        self._own = (
            torch.arange(starts.shape[1], device=starts.device),
            torch.tensor(group.own(), device=starts.device),
        )
        self.best = torch.full((starts.shape[0],), math.inf, device=starts.device)
        self.best_rows = self.rows.clone()
        self.maximum = self._cosines()[1].amax(dim=(1, 2))

    def _cosines(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        lines = self.group.expand(self.rows)
        signed = self.rows @ lines.mT  # (R, a, k)
        signed[:, self._own[0], self._own[1]] = 0.0
        return signed, signed.abs(), lines

    def _keep(self, top: torch.Tensor) -> None:
        better = top < self.best
        self.best = torch.where(better, top, self.best)
        self.best_rows[better] = self.rows[better]

    def step(self, fraction: float) -> float:
        """One step of every descent at this fraction of the budget; the least coherence so far."""
        s = self.schedule
        signed, size, lines = self._cosines()
        top = size.amax(dim=(1, 2))
        self._keep(top)
        beta = (s.sharpness(fraction) / self.maximum.clamp(min=1e-6))[:, None, None]
        weight = size.sub_(self.maximum[:, None, None]).mul_(beta).clamp_(LEAST, CLAMP).exp_()
        weight[:, self._own[0], self._own[1]] = 0.0
        total = weight.sum(dim=2, keepdim=True).clamp_(min=torch.finfo(weight.dtype).tiny)
        gradient = self.group.project(torch.copysign(weight, signed) @ lines / total)
        gradient -= (gradient * self.rows).sum(dim=2, keepdim=True) * self.rows
        moved = self.rows - s.momentum * self.velocity
        self.velocity = s.momentum * self.velocity - s.step * self.rows.shape[2] / beta * gradient
        self.rows = normalize(moved + (1.0 + s.momentum) * self.velocity, dim=2)
        self.maximum = top
        return float(self.best.min())

    def finish(self) -> BatchResult:
        """Measure the last rows and hand out the best of each start."""
        self._keep(self._cosines()[1].amax(dim=(1, 2)))
        return BatchResult(self.best, self.best_rows, self.group)
