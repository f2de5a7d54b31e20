"""Sets in any dimension that need no field: axes, a simplex, equal angles in the plane, the root system D_d."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import Any

import numpy as np

from repcap.constructions.family import Block, Family, Params, at_least, fits, small
from repcap.constructions.lines import Array, Basis, Lines, Table, in_subspace
from repcap.errors import InputError
from repcap.laws.limits.plane import lines_in_plane


def _orthonormal(d: int, eps: float) -> Iterator[Block]:
    """d axes, coherence 0."""
    yield Block("orthonormal", "orthonormal basis", d, d, 0.0, True)


def _simplex(d: int, eps: float) -> Iterator[Block]:
    """d + 1 lines through the corners of a regular simplex, coherence 1/d; in the plane they are a `polygon`."""
    if d >= 3 and fits(1.0 / d, eps):
        yield Block("simplex", "simplex", d, d + 1, 1.0 / d, True)


def _polygon(d: int, eps: float) -> Iterator[Block]:
    """k lines in the plane at equal angles, coherence cos(pi/k): the optimum for d = 2."""
    k = lines_in_plane(eps)
    if d >= 2 and k >= 3:
        yield Block("polygon", f"{k} equal angles in the plane", 2, k, math.cos(math.pi / k), True, {"k": k})


def _root_d(d: int, eps: float) -> Iterator[Block]:
    """d(d-1) lines of the root system D_d: e_i +- e_j, coherence 1/2."""
    if d >= 3 and fits(0.5, eps):
        yield Block("root_d", f"root system D{d}", d, d * (d - 1), 0.5, True)


def _simplex_lines(d: int, params: Params) -> Lines:
    return Table("simplex", in_subspace(np.eye(d + 1) - 1.0 / (d + 1), np.ones((1, d + 1))), 1.0 / d)


def _polygon_lines(d: int, params: Params) -> Lines:
    k = int(params["k"])
    angles = np.pi * np.arange(k) / k
    name = f"{k} equal angles in the plane"
    return Table(name, np.stack([np.cos(angles), np.sin(angles)], axis=1), float(np.cos(np.pi / k)))


def _choose_polygon(d: int, given: Mapping[str, int]) -> dict[str, Any]:
    k = given.get("k", 3)
    if d != 2 or k < 3:
        raise InputError(f"equal angles need d = 2 and k >= 3, got d = {d}, k = {k}")
    return {"k": k}


def roots_d(d: int) -> Array:
    """d(d-1) lines in R^d at 1/2: e_i +- e_j."""
    table = np.zeros((d * (d - 1), d))
    for row, (i, j) in enumerate(combinations(range(d), 2)):
        table[2 * row : 2 * row + 2, i], table[2 * row, j], table[2 * row + 1, j] = 1.0, 1.0, -1.0
    return table


ORTHONORMAL = Family(
    "orthonormal",
    "d axes of R^d are orthogonal.",
    _orthonormal,
    lambda d, params: Basis(d, d),
    command="orthonormal",
    choose=at_least(1),
)
SIMPLEX = Family(
    "simplex",
    "d + 1 corners of a regular simplex, seen from its centre, have cosine -1/d.",
    _simplex,
    _simplex_lines,
    built=small,
    command="simplex",
    choose=at_least(2),
    summed=True,
)
POLYGON = Family(
    "polygon",
    "k lines in the plane at equal angles pi/k have coherence cos(pi/k).",
    _polygon,
    _polygon_lines,
    command="polygon",
    options=("k",),
    choose=_choose_polygon,
)
ROOT_D = Family(
    "root_d",
    "The d(d-1) lines e_i +- e_j are at 60 or 90 degrees.",
    _root_d,
    lambda d, params: Table(f"root system D{d}", roots_d(d), 0.5),
    built=small,
    command="root-d",
    choose=at_least(3),
    summed=True,
)
