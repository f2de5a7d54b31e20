"""Many small descents at once: R starts as one (R, a, d) tensor, each with its own symmetry or none.

Small problems have many local optima, so they need many starts, and one start is far too little work to fill a
processor. Starts under a random symmetry (rotations of order g, or the affine maps of a prime field acting on
coordinates) reach optima that unrestricted starts do not: (36, 15), (144, 16), (276, 23) (docs/packing.md).
"""

from __future__ import annotations

import dataclasses
import math
from typing import Protocol

import torch
from torch.nn.functional import normalize

from repcap.packing.search.optimise import Schedule

CLAMP = 60.0
ENTRIES = 2_000_000
"""Cosines that a batch holds at once (three float32 tensors of this many)."""


class Group(Protocol):
    """How R starts of a representatives each grow into R times k lines."""

    @property
    def label(self) -> str:
        """What the symmetry is, in words."""

    def expand(self, orbits: torch.Tensor) -> torch.Tensor:
        """(R, a, d) -> (R, k, d)."""

    def project(self, orbits: torch.Tensor) -> torch.Tensor:
        """(R, a, d) -> (R, a, d): representatives of short orbits brought into their fixed subspaces."""

    def own(self) -> list[int]:
        """For each of the a representatives its own row among the k lines."""


@dataclasses.dataclass(frozen=True)
class NoGroup:
    """Every line for itself: a = k."""

    k: int
    label: str = "none"

    def expand(self, orbits: torch.Tensor) -> torch.Tensor:
        return orbits

    def project(self, orbits: torch.Tensor) -> torch.Tensor:
        return orbits

    def own(self) -> list[int]:
        return list(range(self.k))


@dataclasses.dataclass(frozen=True)
class CyclicGroup:
    """Rotations of order g, one choice of frequencies for each start; k = g a."""

    order: int
    orbits: int
    frequencies: torch.Tensor
    """(R, d // 2)."""
    last: torch.Tensor
    """(R,), the frequency of an odd last coordinate: 0 or g / 2."""

    @property
    def label(self) -> str:
        return f"cyclic of order {self.order}"

    def expand(self, orbits: torch.Tensor) -> torch.Tensor:
        starts, count, d = orbits.shape
        shifts = 2.0 * math.pi / self.order * torch.arange(self.order, dtype=orbits.dtype, device=orbits.device)
        angle = shifts[None, :, None] * self.frequencies.to(orbits)[:, None, :]  # (R, g, d // 2)
        cos, sin = torch.cos(angle)[:, :, None], torch.sin(angle)[:, :, None]
        pairs = d // 2
        first, second = orbits[:, None, :, :pairs], orbits[:, None, :, pairs : 2 * pairs]
        lines = torch.empty(starts, self.order, count, d, dtype=orbits.dtype, device=orbits.device)
        lines[..., :pairs] = cos * first - sin * second
        lines[..., pairs : 2 * pairs] = sin * first + cos * second
        if d % 2:
            sign = torch.cos(shifts[None, :] * self.last.to(orbits)[:, None])
            lines[..., -1] = sign[:, :, None] * orbits[:, None, :, -1]
        return lines.view(starts, self.order * count, d)

    def project(self, orbits: torch.Tensor) -> torch.Tensor:
        return orbits

    def own(self) -> list[int]:
        return list(range(self.orbits))


@dataclasses.dataclass(frozen=True)
class AffineGroup:
    """x -> u x + t on the coordinates of R^p, p prime, u in the multipliers of order s.

    `long` orbits of p s lines, `short` ones of p lines, whose representatives the multipliers fix;
    k = p (s long + short).
    """

    p: int
    s: int
    long: int
    short: int

    @property
    def label(self) -> str:
        return f"affine {self.p}:{self.s}"

    def _maps(self) -> torch.Tensor:
        order = self.p - 1
        root = next(g for g in range(2, self.p + 1) if len({pow(g, i, self.p) for i in range(order)}) == order)
        multipliers = [pow(root, order // self.s * i, self.p) for i in range(self.s)]
        return torch.tensor([[(u * x + t) % self.p for x in range(self.p)] for u in multipliers for t in range(self.p)])

    def expand(self, orbits: torch.Tensor) -> torch.Tensor:
        maps = self._maps().to(orbits.device)
        parts = [orbits[:, o][:, maps] for o in range(self.long)]
        parts += [orbits[:, self.long + o][:, maps[: self.p]] for o in range(self.short)]
        return torch.cat(parts, dim=1)

    def project(self, orbits: torch.Tensor) -> torch.Tensor:
        multipliers = self._maps()[:: self.p].to(orbits.device)
        fixed = orbits[:, self.long :][:, :, multipliers].mean(dim=2)
        return torch.cat([orbits[:, : self.long], fixed], dim=1)

    def own(self) -> list[int]:
        width = self.p * self.s
        return [o * width for o in range(self.long)] + [self.long * width + o * self.p for o in range(self.short)]


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
        weight = size.sub_(self.maximum[:, None, None]).mul_(beta).clamp_(max=CLAMP).exp_()
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
