"""Cyclic symmetry: k lines as a = k/g orbits of one rotation of order g.

A random rotation with a balanced choice of frequencies (near a multiple of the regular representation) leaves room
for packings as good as those without symmetry, at 1/g of the work: only one line of each orbit is stored and moved,
and only its cosines with all others are formed. docs/packing.md has the measurements.
"""

from __future__ import annotations

import dataclasses
import math

import torch

AUTO_ORBITS = 100
"""Fewer orbits than this cost quality (docs/packing.md), so `automatic_order` keeps at least as many."""

AUTO_LARGEST = 20


@dataclasses.dataclass(frozen=True)
class Cyclic:
    """Rotation of R^d by 2 pi f_j / order in the j-th coordinate plane, f_j = frequencies[j].

    An odd last coordinate keeps its sign (`last` = 0) or changes it (`last` = order / 2). Half-integer frequencies are
    allowed for even orders and even d: the rotation to the power `order` is then -1, which fixes every line.
    """

    order: int
    frequencies: tuple[float, ...]
    last: float = 0.0

    def apply(self, rows: torch.Tensor, shift: int) -> torch.Tensor:
        """The rows (..., d) turned `shift` times, a new tensor."""
        if self.order == 1:
            return rows.clone()
        pairs = len(self.frequencies)
        angle = 2.0 * math.pi * shift / self.order * torch.tensor(self.frequencies, dtype=torch.float64)
        cos, sin = (f(angle).to(rows.dtype).to(rows.device) for f in (torch.cos, torch.sin))
        turned = torch.empty_like(rows)
        first, second = rows[..., :pairs], rows[..., pairs : 2 * pairs]
        turned[..., :pairs] = cos * first - sin * second
        turned[..., pairs : 2 * pairs] = sin * first + cos * second
        if rows.shape[-1] > 2 * pairs:
            turned[..., -1] = rows[..., -1] * math.cos(2.0 * math.pi * self.last * shift / self.order)
        return turned

    def expand(self, orbits: torch.Tensor) -> torch.Tensor:
        """All lines, (order * a, d), from one of each orbit, (a, d): all first ones, then all second ones, ..."""
        if self.order == 1:
            return orbits.clone()
        count = orbits.shape[-2]
        lines = orbits.new_empty((*orbits.shape[:-2], self.order * count, orbits.shape[-1]))
        for shift in range(self.order):
            lines[..., shift * count : (shift + 1) * count, :] = self.apply(orbits, shift)
        return lines

    def faithful(self, d: int) -> bool:
        """Whether no power below `order` is 1 or -1 on R^d, which fixes every line: else those of an orbit coincide."""
        frequencies = (*self.frequencies, self.last) if d % 2 else self.frequencies
        turns = ({f * shift / self.order % 1.0 for f in frequencies} for shift in range(1, self.order))
        return not any(turn in ({0.0}, {0.5}) for turn in turns)


TRIVIAL = Cyclic(1, ())

REDRAWN = 100
"""Draws of a rotation until one moves every line of an orbit."""


def random_cyclic(order: int, d: int, generator: torch.Generator, spread: int = 0) -> Cyclic:
    """A rotation of R^d of this order with balanced random frequencies.

    Every irreducible representation of the group gets its share d / order of coordinates (twice that for a plane), as
    nearly as parity allows; which of them get the rest is random. spread: by how many steps of 2 the share of the
    one-dimensional ones may differ at random, for searches that try many.

    Where there are few planes a draw can be of lower order than asked (frequencies 2 and 4 of order 10), which would
    put lines of an orbit on one another: it is drawn again.
    """
    if order == 1:
        return TRIVIAL
    for _ in range(REDRAWN):
        drawn = _draw(order, d, generator, spread)
        if drawn.faithful(d):
            break
    return drawn


def _draw(order: int, d: int, generator: torch.Generator, spread: int) -> Cyclic:

    def below(n: int) -> int:
        return int(torch.randint(n, (1,), generator=generator).item())

    even = order % 2 == 0
    if even and d % 2 == 0 and below(2):
        return Cyclic(order, tuple(_deal([j + 0.5 for j in range(order // 2)], d // 2, generator)))
    last = 0.0
    fixed: list[float] = []
    rest = d - d % 2
    if d % 2:
        last = order / 2 if even and below(2) else 0.0
    for single in [0.0, order / 2] if even else [0.0]:
        # An odd last coordinate is part of one of the two shares.
        share = d / order - (1 if d % 2 and single == last else 0)
        planes = round(share / 2) + (below(2 * spread + 1) - spread)
        fixed += [single] * min(max(planes, 0), rest // 2 - len(fixed))
    types = [float(j) for j in range(1, (order - 1) // 2 + 1)]
    if not types:
        types = [0.0, order / 2]
    return Cyclic(order, tuple(fixed + _deal(types, rest // 2 - len(fixed), generator)), last)


def _deal(types: list[float], count: int, generator: torch.Generator) -> list[float]:
    """`count` frequencies with each type as often as the others, up to one; who gets the rest is random."""
    dealt = types * (count // len(types))
    extra = torch.randperm(len(types), generator=generator).tolist()[: count % len(types)]
    return dealt + [types[i] for i in extra]


def automatic_order(k: int, d: int) -> int:
    """The largest order g >= 3, at most 20, that divides k and leaves at least 100 orbits; 1 if there is none."""
    if k <= d:
        return 1
    fits = [g for g in range(3, AUTO_LARGEST + 1) if k % g == 0 and k // g >= AUTO_ORBITS]
    return max(fits, default=1)
