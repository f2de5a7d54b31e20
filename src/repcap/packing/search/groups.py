"""The symmetries of small starts: how a few representatives grow into k lines, many starts at once.

Starts under a random symmetry (rotations of order g, or the affine maps of a prime field acting on coordinates) reach
optima that unrestricted starts do not: (36, 15), (144, 16), (276, 23) (docs/packing.md).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Protocol

import torch

from repcap.packing.search.symmetry import random_cyclic

LARGEST_ORDER = 24
"""Largest rotation that small symmetric starts try."""


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


Kind = tuple[int, Callable[[int, torch.Generator], Group]]
"""Orbits of a kind of symmetry, and how to draw `count` groups of it."""


def small_groups(k: int, d: int, symmetry: int | None) -> list[Kind]:
    """The kinds of symmetry that small starts of k lines in R^d can have; `symmetry` = 1: none, g: that order alone."""

    def cyclic(order: int) -> Kind:
        def draw(count: int, generator: torch.Generator) -> Group:
            drawn = [random_cyclic(order, d, generator, spread=1) for _ in range(count)]
            frequencies = torch.tensor([c.frequencies for c in drawn]).view(count, d // 2)
            return CyclicGroup(order, k // order, frequencies, torch.tensor([c.last for c in drawn]))

        return k // order, draw

    if symmetry is not None and symmetry > 1:
        return [cyclic(symmetry)]

    def whole(group: Group) -> Kind:
        return len(group.own()), lambda count, generator: group

    kinds = [whole(NoGroup(k))]
    if symmetry == 1 or d < 3:
        return kinds
    kinds += [whole(group) for group in affine_groups(k, d)]
    orders = [g for g in range(3, min(k // 2, LARGEST_ORDER) + 1) if k % g == 0]
    return kinds + [cyclic(order) for order in reversed(orders)]


def affine_groups(k: int, d: int) -> list[AffineGroup]:
    """The affine symmetries of R^d, d prime, under which k lines have few orbits."""
    if d < 5 or any(d % f == 0 for f in range(2, int(d**0.5) + 1)) or k % d:
        return []
    groups = []
    for s in range(2, d):
        long, short = divmod(k // d, s)
        if (d - 1) % s == 0 and long >= 1 and short <= 2:
            groups.append(AffineGroup(d, s, long, short))
    return groups
