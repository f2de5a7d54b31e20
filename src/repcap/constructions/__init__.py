"""Explicit sets of lines: proven lower bounds on how many fit, and their vectors. See README.md in this directory.

`CONSTRUCTIONS` is the one list of families. A new family is a file in `families/` that makes a `Family`, and one line
here: then every choice is made from it too, and it is built by its name.
"""

from __future__ import annotations

from repcap.constructions.families import (
    bch,
    concatenated,
    equiangular,
    lattices,
    quadratic,
    reed_solomon,
    simple,
    sporadic,
    weil,
)
from repcap.constructions.family import Family

PLAIN = (
    simple.ORTHONORMAL,
    simple.SIMPLEX,
    simple.POLYGON,
    sporadic.FAMILY,
    simple.ROOT_D,
    quadratic.HADAMARD,
    equiangular.CONFERENCE,
    equiangular.STEINER,
    quadratic.KERDOCK,
    quadratic.DELSARTE_GOETHALS,
    quadratic.QUADRATIC_FORMS,
    weil.DUAL_BCH,
    weil.EXPONENTIAL_SUMS,
    lattices.BARNES_WALL,
    lattices.REED_MULLER,
    bch.FAMILY,
    reed_solomon.SIGNS,
)
"""The families themselves; the last one, words over their lines, is made of them."""

CONSTRUCTIONS: dict[str, Family] = {family.key: family for family in (*PLAIN, concatenated.over(PLAIN))}
"""Every family, by key."""


def by_command() -> dict[str, Family]:
    """The families that are built by name, by their name on the command line."""
    return {family.command: family for family in CONSTRUCTIONS.values() if family.command is not None}
