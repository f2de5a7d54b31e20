"""Equiangular lines from conference matrices and from Steiner systems."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from repcap.constructions.family import Block, Family, Params, fits, small
from repcap.constructions.galois import field
from repcap.constructions.lines import Array, Lines, Table, from_gram
from repcap.constructions.primes import is_hadamard_order, prime_power
from repcap.errors import InputError


def _conference(d: int, eps: float) -> Iterator[Block]:
    """q + 1 equiangular lines in R^((q+1)/2) at 1/sqrt(q), q = 1 mod 4 a prime power (Paley's conference matrices).

    (J. H. van Lint and J. J. Seidel 1966.)
    """
    for q in range(2 * d - 1 - (2 * d - 2) % 4, 4, -4):
        if not fits(1.0 / math.sqrt(q), eps):
            return
        if prime_power(q):
            name = f"conference matrix q={q}"
            yield Block("conference", name, (q + 1) // 2, q + 1, 1.0 / math.sqrt(q), True, {"q": q})
            return


def conference_lines(q: int) -> Array:
    """q + 1 lines in R^((q+1)/2) at 1/sqrt(q) from Paley's symmetric conference matrix, q = 1 mod 4 a prime power."""
    power = prime_power(q)
    if power is None or q % 4 != 1:
        raise InputError(f"conference lines need a prime power q = 1 mod 4, got q = {q}")
    f = field(*power)
    square = np.full(q, -1.0)
    square[f.power(f.elements(), 2)] = 1.0
    square[0] = 0.0
    signs = np.ones((q + 1, q + 1))
    negative = f.mul(f.elements(), f.minus_one())
    signs[1:, 1:] = square[f.add(f.elements()[:, None], negative[None, :])]
    signs[0, 0] = 0.0
    return from_gram(signs, q**-0.5, (q + 1) // 2)


def _conference_lines(d: int, params: Params) -> Lines:
    q = int(params["q"])
    return Table(f"conference matrix q={q}", conference_lines(q), q**-0.5)


def _choose_conference(d: int, given: Mapping[str, int]) -> dict[str, Any]:
    q = 2 * d - 1
    if q % 4 != 1 or prime_power(q) is None:
        raise InputError(f"conference lines need 2 d - 1 = {q} to be a prime power = 1 mod 4")
    return {"q": q}


@lru_cache(maxsize=1)
def steiner_systems(largest: int = 1_000_000) -> tuple[tuple[int, int, int, int], ...]:
    """(b, v, r, block size) of Steiner systems S(2, s, v) with a Hadamard matrix of order r + 1, b <= largest."""
    found = [(v * (v - 1) // 2, v, v - 1, 2) for v in range(4, math.isqrt(2 * largest) + 2, 4)]  # all pairs
    # Triples exist for v = 1 or 3 mod 6 (T. P. Kirkman 1847).
    triples = [v for v in range(7, math.isqrt(6 * largest) + 2, 8) if v % 6 in (1, 3)]
    found += [(v * (v - 1) // 6, v, (v - 1) // 2, 3) for v in triples]
    for q in (3, 4, 5, 7, 8, 9, 11, 13, 16, 17, 19, 23, 25, 27, 29, 31):  # lines of affine and projective spaces
        for n in range(2, 12):
            r = (q**n - 1) // (q - 1)
            found.append((q ** (n - 1) * r, q**n, r, q))
            v = (q ** (n + 1) - 1) // (q - 1)
            found.append((v * r // (q + 1), v, r, q + 1))
    return tuple(sorted(row for row in found if row[0] <= largest and is_hadamard_order(row[2] + 1)))


def _steiner(d: int, eps: float) -> Iterator[Block]:
    """v(r+1) equiangular lines in R^b at 1/r from a Steiner system of v points, b blocks, r blocks to a point.

    (M. Fickus, D. G. Mixon, J. C. Tremain, Linear Algebra and its Applications 436, 2012: a Hadamard matrix of order
    r + 1 spread over the incidence matrix.)
    """
    best = None
    for b, v, r, s in steiner_systems():
        if b > d:
            break
        if fits(1.0 / r, eps) and (best is None or v * (r + 1) > best.k):
            name = f"Steiner equiangular S(2,{s},{v})"
            best = Block("steiner", name, b, v * (r + 1), 1.0 / r, True, {"v": v, "block": s, "r": r})
    if best is not None:
        yield best


CONFERENCE = Family(
    "conference",
    "I + C/sqrt(q), C Paley's symmetric conference matrix of order q + 1, has rank (q + 1)/2 "
    "(J. H. van Lint and J. J. Seidel 1966).",
    _conference,
    _conference_lines,
    built=small,
    command="conference",
    choose=_choose_conference,
    summed=True,
)
STEINER = Family(
    "steiner",
    "A Hadamard matrix of order r + 1 spread over the incidence matrix of a Steiner system gives v(r+1) lines at 1/r "
    "(M. Fickus, D. G. Mixon, J. C. Tremain 2012).",
    _steiner,
    summed=True,
)
