"""Sets known one by one, in one table."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from repcap.constructions.families import known
from repcap.constructions.families.simple import roots_d
from repcap.constructions.family import Block, Family, Params, fits
from repcap.constructions.lines import Array, Lines, Table
from repcap.errors import InputError


class Known(NamedTuple):
    """k lines in R^d; `vectors` makes them, or is None where they are not built here."""

    k: int
    d: int
    coherence: float
    name: str
    vectors: Callable[[], Array] | None = None


SPORADIC: tuple[Known, ...] = (
    Known(4, 3, 1 / 3, "diagonals of the cube", lambda: known.cube()[3:]),
    Known(6, 3, 1 / math.sqrt(5.0), "icosahedron", known.icosahedron),
    Known(7, 3, 1 / math.sqrt(3.0), "axes and diagonals of the cube", known.cube),
    Known(10, 5, 1 / 3, "Petersen lines", known.petersen),
    Known(16, 6, 1 / 3, "Clebsch lines", known.clebsch),
    Known(28, 7, 1 / 3, "28 equiangular lines", known.pairs_of_eight),
    Known(36, 15, 1 / 5, "36 equiangular lines", known.latin_square_lines),
    Known(276, 23, 1 / 5, "276 equiangular lines", known.witt_lines),
    Known(1408, 22, 1 / 3, "Leech section", known.leech_subsection),
    Known(2300, 23, 1 / 3, "Leech section", known.leech_section),
    Known(12, 4, 1 / 2, "root system D4", lambda: roots_d(4)),
    Known(36, 6, 1 / 2, "root system E6", known.roots_e6),
    Known(63, 7, 1 / 2, "root system E7", known.roots_e7),
    Known(120, 8, 1 / 2, "root system E8", known.roots_e8),
    Known(378, 12, 1 / 2, "Coxeter-Todd lattice"),
    Known(46575, 23, 1 / 2, "laminated lattice", known.laminated),
    Known(98280, 24, 1 / 2, "Leech lattice", known.leech),
    Known(26208000, 48, 1 / 2, "extremal lattice P48"),
    Known(3109087800, 72, 1 / 2, "Nebe's lattice"),
)
"""Equiangular: P. W. H. Lemmens and J. J. Seidel 1973. Lattices: half the shortest vectors, as counted in Conway and
Sloane (d <= 48) and G. Nebe 2012 (d = 72). The coherences are exact; most attain a proven lower bound (Levenshtein)."""

BUILT: dict[tuple[int, int], Known] = {(row.k, row.d): row for row in SPORADIC if row.vectors is not None}
"""(k, d) -> the sets whose vectors are made here."""


def _members(d: int, eps: float) -> Iterator[Block]:
    """Equiangular lines, root systems, sections of the Leech lattice, extremal lattices."""
    for row in SPORADIC:
        if row.d <= d and fits(row.coherence, eps):
            yield Block("sporadic", row.name, row.d, row.k, row.coherence, True, {"k": row.k, "d": row.d})


def _lines(d: int, params: Params) -> Lines:
    row = BUILT[int(params["k"]), int(params["d"])]
    assert row.vectors is not None
    return Table(row.name, row.vectors(), row.coherence)


def _choose(d: int, given: Mapping[str, int]) -> dict[str, Any]:
    fitting = sorted(k for k, dim in BUILT if dim == d)
    k = given.get("k", fitting[-1] if fitting else 0)
    if k not in fitting:
        raise InputError(
            f"no exact set of {k or 'any'} lines in R^{d} is held; for this d there are {fitting or 'none'}"
        )
    return {"k": k, "d": d}


FAMILY = Family(
    "sporadic",
    "Each is known by itself: P. W. H. Lemmens and J. J. Seidel 1973; J. H. Conway and N. J. A. Sloane; G. Nebe 2012.",
    _members,
    _lines,
    built=lambda d, params: (params["k"], params["d"]) in BUILT,
    command="exact",
    options=("k",),
    choose=_choose,
)
