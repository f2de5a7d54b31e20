"""Explicit sets of lines: proven lower bounds on how many fit, and their vectors. See README.md in this directory.

`CONSTRUCTIONS` is the one list of families. A new family is a file in `families/` that makes a `Family`, and one line
here: then every choice is made from it too, and it is built by its name.
"""

from __future__ import annotations

from repcap.constructions.families import equiangular, lattices, quadratic, simple, sporadic, weil
from repcap.constructions.family import Family

CONSTRUCTIONS: dict[str, Family] = {
    family.key: family
    for family in (
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
    )
}
"""Every family, by key."""


def by_command() -> dict[str, Family]:
    """The families that are built by name, by their name on the command line."""
    return {family.command: family for family in CONSTRUCTIONS.values() if family.command is not None}
