"""Families that come from designs, roots and lattices, built here from their definitions, and all families together."""

from __future__ import annotations

import math
from itertools import combinations, product

import numpy as np
import pytest

from line_sets import ABOVE, agrees, member
from repcap.constructions import CONSTRUCTIONS
from repcap.constructions.families.equiangular import steiner_systems
from repcap.constructions.families.known import leech as leech_lines


@pytest.mark.parametrize("q", [5, 13, 17, 29])
def test_conference_matrices(q):
    squares = {x * x % q for x in range(1, q)}
    chi = np.array([0] + [1 if x in squares else -1 for x in range(1, q)])
    matrix = np.ones((q + 1, q + 1))
    matrix[1:, 1:] = chi[(np.arange(q)[:, None] - np.arange(q)[None]) % q]
    np.fill_diagonal(matrix, 0.0)
    gram = np.eye(q + 1) + matrix / math.sqrt(q)
    values, axes = np.linalg.eigh(gram)
    block = member("conference", (q + 1) // 2, 1 / math.sqrt(q), q=q)
    assert values[: block.d] == pytest.approx(np.zeros(block.d), abs=1e-9)
    agrees(block, axes[:, block.d :] * np.sqrt(values[block.d :]))


def sylvester(order):
    return np.array([[(-1) ** bin(a & b).count("1") for a in range(order)] for b in range(order)])


def spread(blocks, points):
    """Fickus, Mixon and Tremain: each point's row of the incidence matrix, its ones replaced by Hadamard rows."""
    incidence = np.array([[point in block for block in blocks] for point in range(points)])
    r = int(incidence[0].sum())
    assert (incidence.sum(axis=1) == r).all()
    signs = sylvester(r + 1)[:, 1:]
    x = np.zeros((points * (r + 1), len(blocks)))
    for point in range(points):
        x[point * (r + 1) : (point + 1) * (r + 1), np.flatnonzero(incidence[point])] = signs
    return x


def affine_lines(q, n):
    """Lines of AG(n, q), q prime, as sets of point numbers."""
    points = list(product(range(q), repeat=n))
    number = {point: i for i, point in enumerate(points)}
    lines = set()
    for point in points:
        for direction in points:
            first = next((x for x in direction if x), 0)
            if first == 1:  # one of each direction's multiples
                line = (tuple((a + t * b) % q for a, b in zip(point, direction, strict=True)) for t in range(q))
                lines.add(frozenset(number[x] for x in line))
    return sorted(lines, key=sorted), len(points)


def projective_lines_over_2(n):
    """Lines of PG(n, 2): {a, b, a + b}."""
    size = 1 << (n + 1)
    return sorted(
        {frozenset((a - 1, b - 1, (a ^ b) - 1)) for a in range(1, size) for b in range(1, a)}, key=sorted
    ), size - 1


@pytest.mark.parametrize(
    ("system", "v", "s"),
    [
        (lambda: (list(combinations(range(4), 2)), 4), 4, 2),
        (lambda: (list(combinations(range(8), 2)), 8), 8, 2),
        (lambda: projective_lines_over_2(2), 7, 3),
        (lambda: projective_lines_over_2(3), 15, 3),
        (lambda: affine_lines(5, 3), 125, 5),
    ],
    ids=["pairs of 4", "pairs of 8", "Fano", "PG(3,2)", "AG(3,5)"],
)
def test_steiner_equiangular(system, v, s):
    blocks, points = system()
    assert points == v
    x = spread([set(block) for block in blocks], points)
    r = (v - 1) // (s - 1)
    block = member("steiner", x.shape[1], 1 / r, v=v, block=s)
    agrees(block, x)


def test_every_steiner_system_listed_meets_welch():
    from repcap.laws.limits import welch

    for b, v, r, s in steiner_systems():
        assert v * r == b * s  # each point in r blocks, each block with s points
        assert v - 1 == r * (s - 1)  # each pair of points in one block
        assert welch.coherence(v * (r + 1), b) == pytest.approx(1 / r, rel=1e-9)


@pytest.mark.parametrize("d", [3, 4, 5, 8])
def test_root_system_d(d):
    rows = [np.eye(d)[i] + s * np.eye(d)[j] for i, j in combinations(range(d), 2) for s in (1, -1)]
    agrees(member("root_d", d, 0.5), np.array(rows))


@pytest.mark.parametrize("d", [3, 4, 10])
def test_simplex(d):
    corners = np.eye(d + 1) - 1 / (d + 1)
    agrees(member("simplex", d, 1 / d), corners)


@pytest.mark.parametrize("k", [3, 4, 7, 50])
def test_polygon(k):
    angles = np.pi * np.arange(k) / k
    block = member("polygon", 2, math.cos(math.pi / k))
    agrees(block, np.stack([np.cos(angles), np.sin(angles)], axis=1))


def sporadic(k, d):
    return member("sporadic", d, 0.99, k=k)


def cube():
    axes = np.eye(3)
    diagonals = np.array([[1, a, b] for a in (1, -1) for b in (1, -1)]) / math.sqrt(3)
    return axes, diagonals


def test_lines_of_the_cube():
    axes, diagonals = cube()
    agrees(sporadic(4, 3), diagonals)
    agrees(sporadic(7, 3), np.concatenate([axes, diagonals]))


def test_coxeter_todd():
    # Eisenstein integers a + b w; x in E^6 with x_i = x_j mod theta and sum x_i = 0 mod 3, of norm 6.
    w = np.exp(2j * np.pi / 3)
    theta = w - w.conjugate()
    units = [w**a for a in range(3)]
    rows = []
    for i, j in combinations(range(6), 2):
        for a, b in product(units, repeat=2):
            x = np.zeros(6, dtype=complex)
            x[i], x[j] = theta * a, -theta * b
            rows.append(x)
    rows += [np.array([w**a for a in turns]) for turns in product(range(3), repeat=6) if sum(turns) % 3 == 0]
    x = np.array(rows)
    agrees(sporadic(378, 12), np.concatenate([x.real, x.imag], axis=1))


@pytest.fixture(scope="module")
def leech():
    return leech_lines()


def test_sections_of_the_leech_lattice(leech):
    assert len(leech) == sporadic(98280, 24).k
    pole = leech[-1]
    inner = leech @ pole / (pole @ pole)
    assert {float(x) for x in np.unique(np.abs(np.round(inner, 9)))} == {0.0, 0.25, 0.5, 1.0}
    flat = leech[np.abs(inner) < 1e-9]
    assert len(flat) == sporadic(46575, 23).k  # they are at 60 degrees or more, as all of the lattice
    near = leech[np.abs(np.abs(inner) - 0.5) < 1e-9]
    near = near * np.sign(near @ pole)[:, None] - pole / 2
    half = near[[x[np.flatnonzero(np.abs(x) > 1e-9)[0]] > 0 for x in near]]
    block = sporadic(2300, 23)
    agrees(block, half)
    section = half[np.abs(half @ half[0]) < 1e-9]
    agrees(sporadic(1408, 22), section)


@pytest.mark.parametrize(
    ("k", "d"), [(6, 3), (10, 5), (16, 6), (28, 7), (36, 15), (276, 23), (12, 4), (36, 6), (63, 7), (120, 8)]
)
def test_sporadic_sets_line_by_line(k, d):
    from repcap.constructions.build import named_lines

    lines = named_lines("exact", d, k=k)
    agrees(sporadic(k, d), lines.rows(0, k))


def test_no_member_claims_more_than_is_possible():
    from repcap.laws.limits.bounds import upper_bound

    for d in (3, 7, 8, 16, 24, 36, 64, 100, 200):
        for eps in (1 / d, d**-0.5, 0.2, 1 / 3, 0.5, 0.75, 0.9):
            for name, family in CONSTRUCTIONS.items():
                for block in family.members(d, eps):
                    assert block.d <= d
                    assert block.coherence <= eps * ABOVE
                    if block.d > 1 and block.coherence > 0:
                        limit = upper_bound(block.d, block.coherence)
                        assert math.log10(block.k) <= limit.log10_k + 1e-9, (name, block, limit)


def test_exponents_that_are_multiples_of_p_cost_no_coherence():
    # Degree 3 over 9 elements: x and x^2 alone, 162 lines at 1/3, measured over all pairs in tests/packing.
    block = member("exponential_sums", 18, 0.7)
    assert (block.k, block.coherence, block.params["n"]) == (162, pytest.approx(1 / 3), 2)
