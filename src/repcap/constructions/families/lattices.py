"""Shortest vectors of the Barnes-Wall lattices, and words of the Reed-Muller codes: known on paper, not built here."""

from __future__ import annotations

import math
from collections.abc import Iterator

from repcap.constructions.family import Block, Family, fits, powers_of_two


def _reed_muller(d: int, eps: float) -> Iterator[Block]:
    """Words of the Reed-Muller code RM(r, M) up to sign, d = 2^M, 3 <= r < M: coherence 1 - 2^(1-r).

    The code holds the all-one word and has minimum distance 2^(M-r), so weights lie between that and its complement
    (D. E. Muller, I. S. Reed 1954). r = 2 is `delsarte_goethals` or `quadratic_forms` with all forms.
    """
    for bits in powers_of_two(d, 4):
        usable = [r for r in range(3, bits) if fits(1.0 - 2.0 ** (1 - r), eps)]
        if usable:
            r = usable[-1]
            k = 1 << sum(math.comb(bits, i) for i in range(1, r + 1))
            name, params = f"Reed-Muller r={r}", {"bits": bits, "order": r}
            yield Block("reed_muller", name, 1 << bits, k, 1.0 - 2.0 ** (1 - r), True, params)


def _barnes_wall(d: int, eps: float) -> Iterator[Block]:
    """Shortest vectors of the Barnes-Wall lattice, d = 2^M: prod_{i=1..M} (2^i + 2) / 2 lines at 1/2.

    Shortest vectors of any lattice are at 60 degrees or more (E. S. Barnes and G. E. Wall 1959; J. H. Conway and
    N. J. A. Sloane, Sphere Packings, Lattices and Groups, chapter 1, for the number).
    """
    if fits(0.5, eps):
        for bits in powers_of_two(d, 3):
            k = math.prod((1 << i) + 2 for i in range(1, bits + 1)) // 2
            yield Block("barnes_wall", "Barnes-Wall lattice", 1 << bits, k, 0.5, True, {"bits": bits})


REED_MULLER = Family(
    "reed_muller",
    "RM(r, M) holds the all-one word and has minimum distance 2^(M-r) (D. E. Muller, I. S. Reed 1954).",
    _reed_muller,
)
BARNES_WALL = Family(
    "barnes_wall",
    "Shortest vectors of a lattice are at 60 degrees or more (E. S. Barnes and G. E. Wall 1959; J. H. Conway and "
    "N. J. A. Sloane, Sphere Packings, Lattices and Groups, chapter 1, for the number).",
    _barnes_wall,
)
