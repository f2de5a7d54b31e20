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
        return torch.cat([self.apply(orbits, shift) for shift in range(self.order)], dim=-2)


TRIVIAL = Cyclic(1, ())


def random_cyclic(order: int, d: int, generator: torch.Generator) -> Cyclic:
    """A rotation of R^d of this order with balanced random frequencies.

    The irreducible representations of the group are dealt like shuffled decks of cards: trivial (1 coordinate), sign
    (1, even orders), and the planes 1 .. (order - 1)/2, until d coordinates are filled.
    """
    if order == 1:
        return TRIVIAL

    def coin() -> bool:
        return bool(torch.rand(1, generator=generator).item() < 0.5)

    if order % 2 == 0 and d % 2 == 0 and coin():
        deck: list[float] = [j + 0.5 for j in range(order // 2)]
    else:
        deck = [float(j) for j in range(1, (order - 1) // 2 + 1)]
        # Two one-dimensional cards make a plane: on average each is dealt half as often as a plane's card.
        deck += [extra for extra in ([0.0, order / 2] if order % 2 == 0 else [0.0]) if coin()]
    deck = deck or [0.0, order / 2]
    dealt: list[float] = []
    while len(dealt) < d // 2:
        dealt += [deck[i] for i in torch.randperm(len(deck), generator=generator).tolist()]
    return Cyclic(order, tuple(dealt[: d // 2]), order / 2 if order % 2 == 0 and coin() else 0.0)


def automatic_order(k: int, d: int) -> int:
    """The largest order g >= 3, at most 20, that divides k and leaves at least 100 orbits; 1 if there is none."""
    if k <= d:
        return 1
    fits = [g for g in range(3, AUTO_LARGEST + 1) if k % g == 0 and k // g >= AUTO_ORBITS]
    return max(fits, default=1)
