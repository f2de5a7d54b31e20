"""Filling R^d with blocks in orthogonal coordinate subspaces: numbers add up, the coherence is that of the worst part.

Up to `EXACT` dimensions the best sum of the blocks at hand is found by dynamic programming. Beyond, the largest block
comes first (or the one with the most lines per dimension, or of equals the one with the fewest dimensions, whichever
gives more in the end), then the largest that fits into what is left, until so few dimensions are left that they are
filled exactly.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

from repcap.constructions import CONSTRUCTIONS
from repcap.constructions.family import Block

Parts = tuple[tuple[Block, int], ...]
"""Blocks and how many copies of each."""

GAIN = 10**9
"""One line in so many more is a gain."""

EXACT = 128
"""Dimensions up to which sums are found by dynamic programming: beyond, sets grow so fast with d that sums of small
ones do not matter."""


@lru_cache(maxsize=4096)
def best_parts(d: int, eps: float, families: tuple[str, ...], built: bool) -> tuple[int, Parts]:
    """(k, parts) of the best filling of R^d found, from these families; `built`: blocks whose vectors are made here."""
    filling = _Filling(eps, families, built)
    best = filling.greedy(d, _by_size)
    others = [filling.greedy(d, _by_thrift), filling.greedy(d, _by_density)]
    if d <= EXACT:
        others.append(filling.exact(d))
    for other in others:
        # A gain of a few lines among very many is no reason for a coherence that is higher, or for more parts.
        if other[0] * GAIN > best[0] * (GAIN + 1) or (other[0] == best[0] and len(other[1]) < len(best[1])):
            best = other
    return best


Worth = tuple[float, ...]


def _by_size(block: Block) -> Worth:
    return math.log(block.k), -block.coherence, -block.d


def _by_thrift(block: Block) -> Worth:
    return math.log(block.k), -block.d


def _by_density(block: Block) -> Worth:
    return math.log(block.k) - math.log(block.d), -block.coherence, -block.d


class _Filling:
    def __init__(self, eps: float, families: tuple[str, ...], built: bool) -> None:
        self._eps, self._built = eps, built
        self._families = [CONSTRUCTIONS[name] for name in families]
        self._held: dict[int, list[Block]] = {}

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
            self._held[d] = self._blocks(d)
        return self._held[d]

    def greedy(self, d: int, worth: Callable[[Block], Worth]) -> tuple[int, Parts]:
        parts: list[tuple[Block, int]] = []
        left, k = d, 0
        while left:
            if d > EXACT >= left:
                more, rest = self.exact(left)
                return k + more, (*parts, *rest)
            best = max(self._largest(left), key=worth)
            copies = left // best.d
            parts.append((best, copies))
            left -= copies * best.d
            k += copies * best.k
        return k, tuple(parts)

    def exact(self, d: int) -> tuple[int, Parts]:
        """The best sum of the largest blocks for R^d and of the summed families' members of every dimension."""
        single: dict[int, Block] = {}
        smaller = (block for size in range(2, d) for block in self._blocks(size, summed=True))
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
