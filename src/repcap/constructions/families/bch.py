"""Extended narrow-sense BCH codes as lines: words of a binary code of length d = 2^M up to complement."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from repcap.constructions.family import Block, Family, Params, exponent_of_two, fits, powers_of_two
from repcap.constructions.galois import field
from repcap.constructions.lines import Array, Lines
from repcap.domain import loosened
from repcap.errors import InputError

MOST_BITS = 20
"""Codes of length up to 2^20: the table of leaders of a longer one takes seconds."""


@lru_cache(maxsize=MOST_BITS)
def leaders(bits: int) -> npt.NDArray[np.int32]:
    """Ascending, for i = 1 .. 2^bits - 2: the least element of the cyclotomic coset {i 2^j mod 2^bits - 1}.

    Time O(bits 2^bits): 3 ms for 2^16, 60 ms for 2^20.
    """
    n = (1 << bits) - 1
    turned = np.arange(1, n, dtype=np.int32)
    least = turned.copy()
    for _ in range(bits - 1):
        turned = ((turned << 1) & n) | (turned >> (bits - 1))
        np.minimum(least, turned, out=least)
    return np.sort(least)


def dimension(bits: int, delta: int) -> tuple[int, int]:
    """(K, least distance that is proven) of the extended code of length 2^bits with designed distance delta.

    The zeros are the cosets of 1 .. delta - 1; the next leader is the true designed distance.
    """
    found = leaders(bits)
    first = int(np.searchsorted(found, delta))
    if first == len(found):
        return 1, 1 << bits  # the all-one word alone
    return 1 + len(found) - first, int(found[first]) + 1


def _members(d: int, eps: float) -> Iterator[Block]:
    """2^(K-1) lines at <= 1 - 2(delta + 1)/d from a code [d, K, >= delta + 1] that holds the all-one word."""
    for bits in powers_of_two(min(d, 1 << MOST_BITS), 3):
        size = 1 << bits
        delta = max(1, math.ceil(0.5 * size * (1.0 - loosened(eps)) - 1e-6) - 1)
        if not fits(1.0 - 2.0 * (delta + 1) / size, eps):
            delta += 1
        k, distance = dimension(bits, delta)
        if k - 1 > bits:  # else no more than the rows of the Hadamard matrix
            name, params = f"extended BCH [{size},{k},{distance}]", {"bits": bits, "delta": distance - 1}
            yield Block("extended_bch", name, size, 1 << (k - 1), 1.0 - 2.0 * distance / size, False, params)


class BinaryWords(Lines):
    """Lines (-1)^c / sqrt(d) for the words c that the rows of `basis` span; (rows, d / 8) packed bits.

    Line i is the sum of the rows that the binary digits of i name, so the first rows make the first lines.
    """

    def __init__(self, name: str, basis: npt.NDArray[np.uint8], claimed: float, exact: bool = False) -> None:
        super().__init__(name, 1 << len(basis), 8 * basis.shape[1], claimed, exact)
        self._basis = basis

    def rows(self, start: int, stop: int) -> Array:
        words = np.zeros((stop - start, self._basis.shape[1]), dtype=np.uint8)
        for row, index in enumerate(range(start, stop)):
            chosen = [place for place in range(index.bit_length()) if index >> place & 1]
            words[row] = np.bitwise_xor.reduce(self._basis[chosen], axis=0)
        return np.asarray((1.0 - 2.0 * np.unpackbits(words, axis=1)) / math.sqrt(self.dim))


def bch_words(bits: int, delta: int) -> BinaryWords:
    """The words with f(0) = 0: f(x) = sum over cosets C of Tr(a_C x^(-C)), one of each pair c, 1 + c.

    The coset of the linear functions comes first: the first d lines are an orthonormal basis.
    """
    size = 1 << bits
    k, distance = dimension(bits, delta)
    f = field(2, bits)
    basis: list[npt.NDArray[np.uint8]] = []
    for leader in np.unique(leaders(bits))[::-1].tolist():
        if leader < distance - 1:
            break
        power = f.power(f.elements(), size - 1 - leader)
        words = [np.packbits(f.trace(f.mul(1 << j, power)).astype(np.uint8)) for j in range(bits)]
        basis += _independent(words)
    if len(basis) != k - 1:
        raise InputError(f"extended BCH codes need d = 2^M and delta below d/2, got d = {size}, delta = {delta}")
    name = f"extended BCH [{size},{k},{distance}]"
    return BinaryWords(name, np.array(basis), 1.0 - 2.0 * distance / size)


def _independent(words: list[npt.NDArray[np.uint8]]) -> list[npt.NDArray[np.uint8]]:
    """Those that are no sum of earlier ones: a coset shorter than M gives fewer than M functions."""
    pivots: dict[int, int] = {}
    kept = []
    for word in words:
        value = int.from_bytes(word.tobytes(), "big")
        while value and value.bit_length() in pivots:
            value ^= pivots[value.bit_length()]
        if value:
            pivots[value.bit_length()] = value
            kept.append(word)
    return kept


def _choose(d: int, given: Mapping[str, int]) -> dict[str, Any]:
    bits = exponent_of_two(d)
    delta = given.get("delta", d // 4 - 1)
    if not 3 <= bits <= MOST_BITS or not 1 <= delta < d // 2:
        raise InputError(
            f"extended BCH codes need d = 2^M, M from 3 to {MOST_BITS}, 0 < delta < d/2; got {d}, delta = {delta}"
        )
    return {"bits": bits, "delta": delta}


def _build(d: int, params: Params) -> Lines:
    return bch_words(int(params["bits"]), int(params["delta"]))


FAMILY = Family(
    "extended_bch",
    "The extended narrow-sense BCH code [2^M, K] of designed distance delta holds the all-one word, so the other words "
    "have weights from delta + 1 to d - delta - 1 (R. C. Bose and D. K. Ray-Chaudhuri 1960; A. Hocquenghem 1959).",
    _members,
    _build,
    built=lambda d, params: d <= 1 << 14,
    command="extended-bch",
    options=("delta",),
    choose=_choose,
)
