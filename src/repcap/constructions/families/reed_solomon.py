"""Reed-Solomon codes over sets of lines: each symbol of a word becomes a line of an inner set."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from repcap.constructions.family import Block, Family, Params
from repcap.constructions.galois import Elements, field
from repcap.constructions.lines import Array, Lines
from repcap.constructions.signs import hadamard_rows
from repcap.domain import loosened
from repcap.errors import InputError

MOST_FIELD = 1 << 22
"""Largest field over which words are made."""


def evaluate(p: int, m: int, coefficients: Elements, points: int) -> Elements:
    """Values of polynomials at the elements 0 .. points-1 of the field of p^m, by Horner's rule.

    coefficients: (words, K), the constant first. Returns (words, points).
    """
    f = field(p, m)
    x = f.elements()[:points]
    total = np.broadcast_to(coefficients[:, -1:], (len(coefficients), points)).astype(np.int64)
    for j in range(coefficients.shape[1] - 2, -1, -1):
        total = f.add(f.mul(total, x[None, :]), coefficients[:, j : j + 1])
    return total


class SignedLines(Lines):
    """Words of RS[N, K] over GF(2^(m+1)), each symbol s a row of the Hadamard matrix of R^(2^m) with a sign.

    The low m digits of s name the row, the highest is the sign. That is linear over F_2, so adding the constant 2^m to
    a polynomial turns every sign: of each such pair the one with that digit 0 in its constant is taken.
    """

    def __init__(self, m: int, length: int, k: int) -> None:
        if m < 1 or not 2 <= length <= 2 << m or not 1 <= k <= length:
            raise InputError(
                f"Reed-Solomon codes over RM(1,{m}) need 2 <= N <= 2^{m + 1} and 1 <= K <= N, got N = {length}, K = {k}"
            )
        self._m, self._length, self._k = m, length, k
        name = f"RS[{length},{k}] over GF({2 << m}) with RM(1,{m})"
        super().__init__(name, 1 << ((m + 1) * k - 1), length << m, (k - 1) / length, False)

    def rows(self, start: int, stop: int) -> Array:
        m, mask = self._m, (2 << self._m) - 1
        table = np.zeros((stop - start, self._k), dtype=np.int64)
        for row, index in enumerate(range(start, stop)):
            table[row, 0] = index & (mask >> 1)
            for j in range(1, self._k):
                table[row, j] = index >> ((m + 1) * j - 1) & mask
        symbols = evaluate(2, m + 1, table, self._length)
        signs = 1.0 - 2.0 * (symbols >> m)
        lines = hadamard_rows((symbols & (mask >> 1)).ravel(), m).reshape(stop - start, self._length, 1 << m)
        return np.asarray((lines * signs[:, :, None]).reshape(stop - start, self.dim) / np.sqrt(self.dim))


def _members(d: int, eps: float) -> Iterator[Block]:
    """2^((m+1)K - 1) lines of R^(N 2^m) at <= (K-1)/N, N <= 2^(m+1)."""
    for m in range(1, min(d.bit_length() - 1, 30)):
        length = min(2 << m, d >> m)
        k = int(loosened(eps) * length) + 1
        if not 2 <= k <= length:
            continue
        # As many lines in fewer dimensions leave room for others.
        for points in sorted({length, math.ceil((k - 1) / loosened(eps))}, reverse=True):
            name = f"RS[{points},{k}] over GF({2 << m}) with RM(1,{m})"
            params = {"m": m, "N": points, "K": k}
            lines = 1 << ((m + 1) * k - 1)
            yield Block("reed_solomon_signs", name, points << m, lines, (k - 1) / points, False, params)


def _choose(d: int, given: Mapping[str, int]) -> dict[str, Any]:
    if "m" in given:
        m = given["m"]
    else:  # the shortest rows whose code is long enough
        m = next((m for m in range(1, 30) if d % (1 << m) == 0 and d >> m <= 2 << m), 1)
    if m < 1 or d % (1 << m) or not 2 <= d >> m <= 2 << m:
        raise InputError(f"Reed-Solomon codes over RM(1,m) need d = N 2^m with 2 <= N <= 2^(m+1), got d = {d}, m = {m}")
    length = d >> m
    return {"m": m, "N": length, "K": given.get("K", 2)}


def _build(d: int, params: Params) -> Lines:
    return SignedLines(int(params["m"]), int(params["N"]), int(params["K"]))


SIGNS = Family(
    "reed_solomon_signs",
    "Two polynomials of degree < K agree in at most K - 1 places, and so do f and g + 2^m; rows of a Hadamard matrix "
    "have cosines 1, -1 and 0 (I. S. Reed and G. Solomon 1960; G. D. Forney 1966).",
    _members,
    _build,
    built=lambda d, params: 2 << params["m"] <= MOST_FIELD,
    command="reed-solomon",
    options=("m", "K"),
    choose=_choose,
)
