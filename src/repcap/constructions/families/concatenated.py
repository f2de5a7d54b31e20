"""Reed-Solomon codes over any set of lines: q of them, q a prime power, are the symbols of words over GF(q)."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from repcap.constructions.families.reed_solomon import evaluate
from repcap.constructions.family import Block, Family, Params
from repcap.constructions.lines import Array, Lines
from repcap.constructions.primes import prime_power
from repcap.domain import loosened
from repcap.errors import InputError

INNER = (8, 24, 64)
"""Dimensions at which the families are asked for inner sets: all their members up to R^64 that are the largest of their
kind there. Larger ones were tried up to R^256 and are never better."""

MOST_BUILT = 1 << 16
"""Largest field over which the words are made."""


class Inner(NamedTuple):
    """q lines of R^d at `coherence`, some of the lines of `block`."""

    block: Block
    q: int
    log_q: float


def _largest_prime_power(k: int) -> int | None:
    """The largest prime power <= k; beyond 2^20 the largest power of two."""
    if k > 1 << 20:
        return 1 << (k.bit_length() - 1)
    return next((q for q in range(k, 2, -1) if prime_power(q)), None)


def _all_members(family: Family, d: int) -> Iterator[Block]:
    """The members at every coherence below 0.99 that it takes at d."""
    eps = 0.99
    while eps > 0.0:
        found = list(family.members(d, eps))
        yield from found
        eps = max((block.coherence for block in found), default=0.0) * (1.0 - 1e-9)


def inner_sets(families: Sequence[Family]) -> tuple[Inner, ...]:
    """Inner sets of which none is worse than another in dimension, coherence and number at once. About 2 ms."""
    found: dict[tuple[int, float], Block] = {}
    for block in (block for d in INNER for family in families for block in _all_members(family, d)):
        held = found.get((block.d, block.coherence))
        if block.d > 1 and (held is None or held.k < block.k):
            found[block.d, block.coherence] = block
    kept: list[Inner] = []
    for _, block in sorted(found.items(), key=lambda entry: entry[0]):
        q = _largest_prime_power(block.k)
        if q is not None and not any(o.q >= q and o.block.coherence <= block.coherence for o in kept):
            kept.append(Inner(block, q, math.log(q)))
    return tuple(kept)


def field_name(q: int) -> str:
    return str(q) if q < 10**6 else f"2^{q.bit_length() - 1}"


def _name(inner: Inner, length: int, k: int) -> str:
    return f"RS[{length},{k}] over GF({field_name(inner.q)}) with {inner.block.name} in R^{inner.block.d}"


def _outer(inner: Inner, d: int, eps: float) -> tuple[int, int]:
    """(N, K): the length that fits into d, and the largest K whose words stay within eps; K = 0 where none does."""
    mu, length = inner.block.coherence, min(d // inner.block.d, inner.q)
    slack = eps - mu
    if slack < 0.0 or length < 2:
        return length, 0
    return length, min(length, int(length * slack / (1.0 - mu) * (1.0 + 1e-13)) + 1)


def _block(inner: Inner, length: int, k: int) -> Block:
    mu, part = inner.block.coherence, inner.block
    p, m = prime_power(inner.q) if inner.q < 1 << 21 else (2, inner.q.bit_length() - 1)  # type: ignore[misc]
    params = {"p": p, "m": m, "N": length, "K": k, "inner": dataclasses.asdict(part)}
    coherence = ((k - 1) + (length - k + 1) * mu) / length
    return Block("reed_solomon_lines", _name(inner, length, k), length * part.d, inner.q**k, coherence, False, params)


class WordsOfLines(Lines):
    """Words of RS[N, K] over GF(p^m), each symbol one of the first p^m lines of `inner`: q^K lines of R^(N d).

    The coherence is at most (a + (N - a) mu)/N with a = K - 1, mu that of the inner lines.
    """

    def __init__(self, inner: Lines, p: int, m: int, length: int, k: int) -> None:
        q = p**m
        if q > inner.count or not 2 <= length <= q or not 1 <= k <= length:
            raise InputError(
                f"words over {inner.name} need q <= {inner.count}, 2 <= N <= q, 1 <= K <= N; got {q}, {length}, {k}"
            )
        self._field, self._length, self._k, self._q = (p, m), length, k, q
        self._table = inner.rows(0, q)
        name = f"RS[{length},{k}] over GF({q}) with {inner.name} in R^{inner.dim}"
        claimed = ((k - 1) + (length - k + 1) * inner.claimed) / length
        super().__init__(name, q**k, length * inner.dim, claimed, False)

    def rows(self, start: int, stop: int) -> Array:
        digits = np.array(
            [[index // self._q**j % self._q for j in range(self._k)] for index in range(start, stop)], dtype=np.int64
        ).reshape(stop - start, self._k)
        symbols = evaluate(*self._field, digits, self._length)
        return np.asarray(self._table[symbols].reshape(stop - start, self.dim) / math.sqrt(self._length))


def over(families: Sequence[Family]) -> Family:
    """The family of words over the lines of `families`."""
    sets = {family.key: family for family in families}

    @lru_cache(maxsize=1)
    def inner() -> tuple[Inner, ...]:
        return inner_sets(families)

    def members(d: int, eps: float) -> Iterator[Block]:
        """q^K lines of R^(N m) at <= (a + (N - a) mu)/N, a = K - 1: the one with the most."""
        given = loosened(eps)
        fitted = ((part, *_outer(part, d, given)) for part in inner())
        part, length, k = max(fitted, key=lambda entry: entry[2] * entry[0].log_q)
        if k > 1:
            mu = part.block.coherence
            fewest = math.ceil((k - 1) * (1.0 - mu) / (given - mu) * (1.0 - 1e-13))  # leaves room for others
            for points in sorted({length, max(k, fewest)}, reverse=True):
                yield _block(part, points, k)

    def build(d: int, params: Params) -> Lines:
        part = params["inner"]
        make = sets[part["family"]].build
        assert make is not None
        lines = make(int(part["d"]), part["params"])
        return WordsOfLines(lines, int(params["p"]), int(params["m"]), int(params["N"]), int(params["K"]))

    def built(d: int, params: Params) -> bool:
        part = params["inner"]
        return params["p"] ** params["m"] <= MOST_BUILT and sets[part["family"]].has(part["d"], part["params"])

    def choose(d: int, given: Mapping[str, int]) -> dict[str, Any]:
        m, k = given.get("m", 8), given.get("K", 2)
        able = [part for part in inner() if part.block.d == m and part.q <= MOST_BUILT and 2 * m <= d <= part.q * m]
        able = [part for part in able if sets[part.block.family].has(m, part.block.params)]
        if d % m or not able or not 1 <= k <= d // m:
            raise InputError(
                f"words over lines of R^m need d = N m, 2 <= N <= q, 1 <= K <= N and a set of R^m; got d = {d}, m = {m}"
            )
        return _block(able[-1], d // m, k).params

    return Family(
        "reed_solomon_lines",
        "Two polynomials of degree < K agree in at most K - 1 places; elsewhere the cosine of two inner lines is at "
        "most mu (I. S. Reed and G. Solomon 1960; G. D. Forney 1966).",
        members,
        build,
        built=built,
        command="reed-solomon-lines",
        options=("m", "K"),
        choose=choose,
    )
