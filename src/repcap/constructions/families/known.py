"""Vectors of line sets that are known one by one: root systems, equiangular lines, the Leech lattice and
its sections.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import combinations, product

import numpy as np
import numpy.typing as npt

from repcap.constructions.families.simple import roots_d
from repcap.constructions.lines import Array, from_gram, in_subspace

Ints = npt.NDArray[np.int64]


def half(vectors: Array) -> Array:
    """One of each pair v, -v: those whose first non-zero entry is positive."""
    first = np.argmax(vectors != 0, axis=1)
    return np.asarray(vectors[vectors[np.arange(len(vectors)), first] > 0])


def icosahedron() -> Array:
    """6 diagonals of the icosahedron in R^3, at 1/sqrt(5)."""
    golden = (1 + np.sqrt(5)) / 2
    return np.array([[0, 1, golden], [0, 1, -golden], [1, golden, 0], [1, -golden, 0], [golden, 0, 1], [-golden, 0, 1]])


def petersen() -> Array:
    """10 lines in R^5 at 1/3: Seidel matrix of the Petersen graph."""
    pairs = list(combinations(range(5), 2))
    adjacent = np.array([[not set(a) & set(b) for b in pairs] for a in pairs])
    return from_gram(_seidel(adjacent), 1 / 3, 5)


def _seidel(adjacent: npt.NDArray[np.bool_]) -> Array:
    signs = np.where(adjacent, -1.0, 1.0)
    np.fill_diagonal(signs, 0.0)
    return signs


def clebsch() -> Array:
    """16 lines in R^6 at 1/3: Seidel matrix of the Clebsch graph (F_2^4, differences of weight 1 or 4)."""
    points = np.array(list(product((0, 1), repeat=4)))
    weight = (points[:, None] ^ points[None]).sum(axis=2)
    return from_gram(_seidel((weight == 1) | (weight == 4)), 1 / 3, 6)


def pairs_of_eight() -> Array:
    """28 lines in R^7 at 1/3: the permutations of (3, 3, -1^6) in the hyperplane of R^8 orthogonal to (1^8)."""
    table = np.full((28, 8), -1.0)
    for row, pair in enumerate(combinations(range(8), 2)):
        table[row, list(pair)] = 3.0
    return in_subspace(table, np.ones((1, 8)))


def latin_square_lines() -> Array:
    """36 lines in R^15 at 1/5: the cells of a Latin square of order 6, joined if they share row, column or symbol."""
    cells = [(a, b, (a + b) % 6) for a, b in product(range(6), repeat=2)]
    adjacent = np.array([[any(s == t for s, t in zip(u, v, strict=True)) for v in cells] for u in cells])
    return from_gram(-_seidel(adjacent), 1 / 5, 15)


def roots_e8() -> Array:
    """120 lines in R^8 at 1/2."""
    halves = np.array([signs for signs in product((0.5, -0.5), repeat=8) if np.prod(signs) > 0])
    return np.concatenate([roots_d(8), half(halves)])


def roots_e7() -> Array:
    """63 lines in R^7 at 1/2: the roots of E8 orthogonal to one of them."""
    roots, normal = roots_e8(), np.eye(8)[:1] + np.eye(8)[1:2]
    return in_subspace(roots[np.abs(roots @ normal.T).max(axis=1) < 1e-9], normal)


def roots_e6() -> Array:
    """36 lines in R^6 at 1/2: the roots of E8 orthogonal to two of them at 120 degrees."""
    roots, axes = roots_e8(), np.eye(8)
    normals = np.stack([axes[0] - axes[1], axes[1] - axes[2]])
    return in_subspace(roots[np.abs(roots @ normals.T).max(axis=1) < 1e-9], normals)


@lru_cache(maxsize=1)
def golay() -> Ints:
    """The 4096 words of the extended binary Golay code, (4096, 24): the cyclic [23, 12] code with a parity digit."""
    generator = np.zeros(23, dtype=np.int64)
    generator[[0, 2, 4, 5, 6, 10, 11]] = 1  # x^11 + x^10 + x^6 + x^5 + x^4 + x^2 + 1
    rows = np.stack([np.roll(generator, shift) for shift in range(12)])
    words = np.array(list(product((0, 1), repeat=12)), dtype=np.int64) @ rows % 2
    return np.concatenate([words, words.sum(axis=1, keepdims=True) % 2], axis=1)


@lru_cache(maxsize=1)
def leech() -> Array:
    """98280 lines in R^24 at 1/2: the shortest vectors of the Leech lattice, scaled to integers of norm^2 32."""
    code = golay()
    octads = code[code.sum(axis=1) == 8]
    even = np.array([s for s in product((1, -1), repeat=8) if np.prod(s) > 0], dtype=np.float64)
    twos = np.zeros((len(octads), len(even), 24))
    for word, table in zip(octads, twos, strict=True):
        table[:, np.flatnonzero(word)] = 2.0 * even
    odd = np.repeat((1.0 - 2.0 * code)[:, None, :], 24, axis=1)
    odd[:, np.arange(24), np.arange(24)] *= -3.0
    fours = 4.0 * roots_d(24)
    return np.concatenate([half(twos.reshape(-1, 24)), half(odd.reshape(-1, 24)), fours])


def leech_section() -> Array:
    """2300 lines in R^23 at 1/3: the shortest Leech vectors at 60 degrees from one of them, projected off it."""
    vectors = leech()
    pole = vectors[-1]
    near = vectors[np.abs(np.abs(vectors @ pole) - 16.0) < 1e-9]
    near = near * np.sign(near @ pole)[:, None]
    offset = near - pole / 2
    return in_subspace(half(np.round(offset * 2)), pole[None])


def leech_subsection() -> Array:
    """1408 lines in R^22 at 1/3: those of the 2300 that are orthogonal to one of them."""
    lines = leech_section()
    pole = lines[-1]
    return in_subspace(lines[np.abs(lines @ pole) < 1e-9], pole[None])


def laminated() -> Array:
    """46575 lines in R^23 at 1/2: the shortest Leech vectors orthogonal to one of them."""
    vectors = leech()
    pole = vectors[-1]
    return in_subspace(vectors[np.abs(vectors @ pole) < 1e-9], pole[None])


def witt_lines() -> Array:
    """276 lines in R^23 at 1/5: points and blocks of the Witt design S(4, 7, 23) as the vertices of a two-graph."""
    code = golay()
    blocks = code[(code.sum(axis=1) == 8) & (code[:, 23] == 1), :23]
    inside = blocks @ blocks.T
    signs = np.ones((276, 276))
    signs[23:, 23:] = np.where(inside == 3, 1.0, -1.0)
    signs[:23, 23:] = np.where(blocks.T == 1, 1.0, -1.0)
    signs[23:, :23] = signs[:23, 23:].T
    np.fill_diagonal(signs, 0.0)
    return from_gram(signs, 1 / 5, 23)


def cube() -> Array:
    """The 3 axes of a cube, then its 4 diagonals: 7 lines in R^3 at 1/sqrt(3)."""
    return np.concatenate([np.eye(3), [[1.0, 1, 1], [1, 1, -1], [1, -1, 1], [1, -1, -1]]])
