"""Filling R^d with blocks in orthogonal coordinate subspaces: numbers add up, the coherence is that of the worst part.

Up to `EXACT` dimensions the best sum of the blocks at hand is found by dynamic programming. Beyond, the largest block
comes first (or the one with the most lines per dimension, or of equals the one with the fewest dimensions, or the best
sum in R^`EXACT` again and again, whichever gives more in the end), then the largest that fits into what is left, until
so few dimensions are left that they are filled exactly. Numbers do not fall as d or epsilon rises (by test).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

from repcap.constructions import CONSTRUCTIONS
from repcap.constructions.family import Block

Parts = tuple[tuple[Block, int], ...]
"""Blocks and how many copies of each."""

GAIN = 10**15
"""One line in so many more is a gain: what float64 tells apart."""

EXACT = 128
"""Dimensions up to which sums are found by dynamic programming: beyond, sets grow so fast with d that sums of small
ones do not matter."""


@lru_cache(maxsize=4096)
def best_parts(d: int, eps: float, families: tuple[str, ...], built: bool) -> tuple[int, Parts]:
    """(k, parts) of the best filling of R^d found, from these families; `built`: blocks whose vectors are made here."""
    filling = _filling(eps, families, built)
    best, *others = (filling.greedy(d, worth) for worth in (_by_size, _by_thrift, _by_density))
    if d <= EXACT:
        others.append(filling.exact(d))
    for other in others:
        # A gain of a few lines among very many is no reason for a coherence that is higher, or for more parts.
        if other[0] * GAIN > best[0] * (GAIN + 1) or (other[0] == best[0] and len(other[1]) < len(best[1])):
            best = other
    return best


Worth = tuple[float, ...]


def _by_size(block: Block) -> Worth:
    return block.k, -block.coherence, -block.d


def _by_thrift(block: Block) -> Worth:
    return block.k, -block.d


def _by_density(block: Block) -> Worth:
    return math.log(block.k) - math.log(block.d), -block.coherence, -block.d


@lru_cache(maxsize=8)
def _filling(eps: float, families: tuple[str, ...], built: bool) -> _Filling:
    return _Filling(eps, families, built)


class _Filling:
    def __init__(self, eps: float, families: tuple[str, ...], built: bool) -> None:
        self._eps, self._built = eps, built
        self._families = [CONSTRUCTIONS[name] for name in families]
        self._held: dict[int, list[Block]] = {}
        self._sums: dict[int, tuple[int, Parts]] = {}
        self._smaller: list[list[Block]] = []
        """Of the summed families, by the dimension that they were asked for."""

    def _blocks(self, d: int, summed: bool = False) -> list[Block]:
        """Blocks of all families, or of those that are summed, with at most d dimensions."""
        found = []
        for family in self._families:
            if family.summed or not summed:
                members = family.members(d, self._eps)
                found += [block for block in members if not self._built or family.has(block.d, block.params)]
        return found

    def _largest(self, d: int) -> list[Block]:
        if d not in self._held:
            if len(self._held) > 2 * EXACT:  # numbers of lines have up to d digits
                self._held.clear()
            self._held[d] = self._blocks(d)
        return self._held[d]

    def greedy(self, d: int, worth: Callable[[Block], Worth]) -> tuple[int, Parts]:
        """The block of the greatest worth first, then again; from whichever remainder on the tiles are better."""
        parts: Parts = ()
        left, k = d, 0
        best = (0, parts)
        while left:
            block = max(self._largest(left), key=worth)
            copies = left // block.d
            if left <= EXACT < d or (left > EXACT and self._most_tiled(left) > copies * block.k):
                more, rest = self.tiled(left)
                best = max(best, (k + more, (*parts, *rest)), key=lambda one: one[0])
                if left <= EXACT:
                    return best
            parts = (*parts, (block, copies))
            left -= copies * block.d
            k += copies * block.k
        return max((k, parts), best, key=lambda one: one[0])

    def _most_tiled(self, d: int) -> int:
        """No fewer lines than `tiled` has: every dimension is worth at most the largest block of R^EXACT."""
        return d * max(block.k for block in self._largest(EXACT))

    def tiled(self, d: int) -> tuple[int, Parts]:
        """Best sums in R^EXACT side by side, and the best sum in what is left."""
        copies, left = divmod(d, EXACT)
        k, parts = self.exact(left) if left else (0, ())
        if copies:
            each, tile = self.exact(EXACT)
            k, parts = k + copies * each, (*((block, copies * count) for block, count in tile), *parts)
        return k, parts

    def exact(self, d: int) -> tuple[int, Parts]:
        """The best sum of the largest blocks for R^d and of the summed families' members of every dimension."""
        if d not in self._sums:
            self._sums[d] = self._exact(d)
        return self._sums[d]

    def _exact(self, d: int) -> tuple[int, Parts]:
        single: dict[int, Block] = {}
        for size in range(len(self._smaller), d):
            self._smaller.append(self._blocks(size, summed=True) if size > 1 else [])
        smaller = (block for blocks in self._smaller[:d] for block in blocks)
        for block in (*self._axis(1), *self._largest(d), *smaller):
            held = single.get(block.d)
            if held is None or (block.k, -block.coherence) > (held.k, -held.coherence):
                single[block.d] = block
        most, last, useful = [0], [0], list[int]()  # of R^size: lines, dimensions of the last part; parts worth a try
        for size in range(1, d + 1):
            k, part = max(((single[used].k + most[size - used], used) for used in useful), default=(0, 0))
            if size in single and single[size].k > k:
                k, part = single[size].k, size
                useful.append(size)
            most.append(k)
            last.append(part)
        return most[d], self._named(d, last, single)

    def _axis(self, d: int) -> list[Block]:
        return list(CONSTRUCTIONS["orthonormal"].members(d, self._eps))

    def _named(self, d: int, last: list[int], single: dict[int, Block]) -> Parts:
        copies: dict[int, int] = {}
        while d:
            copies[last[d]] = copies.get(last[d], 0) + 1
            d -= last[d]
        parts: list[tuple[Block, int]] = []
        for size in sorted(copies, key=lambda size: (-single[size].k, size)):
            block, count = single[size], copies[size]
            if block.coherence == 0.0:  # axes are one part
                block, count = self._axis(size * count)[0], 1
            parts.append((block, count))
        return tuple(parts)
