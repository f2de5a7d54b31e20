"""Members of each family built here from their definitions: number of lines and coherence by brute force."""

from __future__ import annotations

import math
from itertools import combinations, product
from typing import ClassVar

import numpy as np
import pytest

from repcap.laws import families
from repcap.laws.families import FAMILIES

ABOVE = 1 + 1e-9


def member(family, d, eps, **params):
    """The block of `family` in R^d with these parameters."""
    for block in FAMILIES[family](d, eps):
        if block.d == d and all(block.params[name] == value for name, value in params.items()):
            return block
    raise AssertionError(f"{family} has no member in R^{d} at {eps} with {params}")


def coherence(x):
    x = x / np.linalg.norm(x, axis=1, keepdims=True)
    gram = np.abs(x @ x.T)
    np.fill_diagonal(gram, 0.0)
    return gram.max()


def agrees(block, x):
    """The rows of x are the lines that `block` claims: their number, their dimension, their coherence."""
    assert len(x) == block.k
    assert x.shape[1] == block.d or np.linalg.matrix_rank(x) == block.d
    found = coherence(x)
    assert found <= block.coherence * ABOVE
    if block.exact:
        assert found == pytest.approx(block.coherence, rel=1e-9)


class BinaryField:
    """F_{2^m}: elements are ints, digit i the coefficient of x^i."""

    MODULUS: ClassVar = {2: 0b111, 3: 0b1011, 4: 0b10011, 5: 0b100101, 6: 0b1000011, 7: 0b10000011}

    def __init__(self, m):
        self.m, self.q = m, 1 << m

    def mul(self, a, b):
        total = 0
        while b:
            if b & 1:
                total ^= a
            a <<= 1
            if a & self.q:
                a ^= self.MODULUS[self.m]
            b >>= 1
        return total

    def power(self, a, n):
        total = 1
        for _ in range(n):
            total = self.mul(total, a)
        return total

    def trace(self, a):
        total = 0
        for _ in range(self.m):
            total ^= a
            a = self.mul(a, a)
        return total


def trace_words(m, exponents):
    """Truth tables of x -> Tr(sum_s a_s x^s) over F_{2^m} for all (a_s), and the words of Tr(l x)."""
    field = BinaryField(m)
    tables = []
    for s in exponents:
        powers = [field.power(x, s) for x in range(field.q)]
        tables.append(np.array([[field.trace(field.mul(a, p)) for p in powers] for a in range(field.q)]))
    words = tables[0]
    for table in tables[1:]:
        words = (words[:, None, :] ^ table[None, :, :]).reshape(-1, field.q)
    linear = np.array([[field.trace(field.mul(l, x)) for x in range(field.q)] for l in range(field.q)])
    return words, linear


def largest_sum(words, linear):
    """max over the words and all linear ones of |sum (-1)^(w + l)|, the linear ones themselves left out."""
    sums = np.abs((1 - 2 * words) @ (1 - 2 * linear).T)
    return sums[words.any(axis=1)].max()


@pytest.mark.parametrize(("m", "h"), [(3, 1), (5, 1), (5, 2), (7, 3), (7, 2)])
def test_quadratic_forms_as_whole_codes(m, h):
    # The code is linear: the coherence is the largest |sum| of a word other than a constant, over d.
    eps = 2.0**-h
    block = member("quadratic_forms", 1 << m, eps, h=h)
    words, linear = trace_words(m, [1 + 2**j for j in range(h, (m - 1) // 2 + 1)])
    assert block.k == len(words) * len(linear) + (1 << m)
    assert largest_sum(words, linear) / (1 << m) == block.coherence
    assert len(np.unique(words, axis=0)) == len(words)
    assert block.coherence >= 2 ** (-m / 2)  # so that the standard basis does no harm


@pytest.mark.parametrize(("m", "t"), [(5, 2), (5, 3), (6, 2), (6, 3), (7, 2), (7, 3)])
def test_dual_bch_as_whole_codes(m, t):
    eps = 2 * (t - 1) / 2 ** (m / 2)
    block = member("dual_bch", 1 << m, eps, t=t)
    words, linear = trace_words(m, range(3, 2 * t, 2))
    assert block.k == len(words) * len(linear) + (1 << m)
    assert len(np.unique(words, axis=0)) == len(words)
    assert largest_sum(words, linear) / (1 << m) <= block.coherence * ABOVE
    assert not block.exact


@pytest.mark.parametrize("m", [4, 6, 8])
def test_the_largest_delsarte_goethals_set_has_all_alternating_forms(m):
    # r = m/2 - 1: any two forms differ by rank >= 2, so all 2^(m(m-1)/2) of them are in it.
    block = member("delsarte_goethals", 1 << m, 0.5, r=m // 2 - 1)
    assert block.k == (1 << m) * 2 ** math.comb(m, 2) + (1 << m)


@pytest.mark.parametrize(("d", "bases"), [(4, 3), (16, 9), (64, 33), (256, 129)])
def test_kerdock_has_the_most_mutually_unbiased_bases(d, bases):
    assert member("kerdock", d, d**-0.5).k == bases * d


@pytest.mark.parametrize(("m", "r"), [(4, 0), (4, 1), (6, 0)])
def test_kerdock_and_delsarte_goethals_line_by_line(m, r):
    from repcap.packing.lines import DelsarteGoethals

    lines = DelsarteGoethals(m, r)
    name = "kerdock" if r == 0 else "delsarte_goethals"
    agrees(member(name, 1 << m, 2.0 ** (r - m / 2)), lines.rows(0, lines.count))


@pytest.mark.parametrize("m", [2, 3, 5])
def test_basis_and_hadamard(m):
    d = 1 << m
    signs = np.array([[(-1) ** bin(a & b).count("1") for a in range(d)] for b in range(d)])
    agrees(member("hadamard", d, 2 ** (-m / 2)), np.concatenate([np.eye(d), signs / math.sqrt(d)]))


def exponential_sums(p, n):
    """Real vectors of x -> {1, i} e(f(x)) / sqrt(p), f of degree <= n without exponents divisible by p."""
    exponents = [j for j in range(1, n + 1) if j % p]
    rows = []
    for coefficients in product(range(p), repeat=len(exponents)):
        phase = sum(
            c * np.array([pow(x, j, p) for x in range(p)]) for c, j in zip(coefficients, exponents, strict=True)
        )
        wave = np.exp(2j * np.pi * (phase % p) / p) / math.sqrt(p)
        rows += [np.concatenate([wave.real, wave.imag]), np.concatenate([-wave.imag, wave.real])]
    return np.array(rows)


@pytest.mark.parametrize(("p", "n"), [(3, 2), (5, 2), (5, 3), (7, 2), (7, 3), (11, 2), (11, 3), (13, 2)])
def test_exponential_sums(p, n):
    block = member("exponential_sums", 2 * p, (n - 1) / math.sqrt(p), n=n)
    x = exponential_sums(p, n)
    agrees(block, x)
    assert len(np.unique(np.round(x, 9), axis=0)) == block.k


def test_exponential_sums_over_a_field_that_is_no_prime():
    # F_9 = F_3(i): degree <= 4 without exponent 3 gives 2 * 9^3 lines in R^18, at 3/sqrt(9) = 1 at most, so not usable;
    # degree <= 2 gives 2 * 81 at 1/3.
    elements = [(a, b) for a in range(3) for b in range(3)]

    def mul(u, v):
        return ((u[0] * v[0] - u[1] * v[1]) % 3, (u[0] * v[1] + u[1] * v[0]) % 3)

    rows = []
    for a, b in product(elements, repeat=2):
        # The trace of u = (s, t) is 2s; f = a x + b x^2.
        phase = np.array([2 * (mul(a, x)[0] + mul(b, mul(x, x))[0]) for x in elements])
        wave = np.exp(2j * np.pi * phase / 3) / 3
        rows += [np.concatenate([wave.real, wave.imag]), np.concatenate([-wave.imag, wave.real])]
    agrees(member("exponential_sums", 18, 1 / 3, n=2), np.array(rows))


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
    from repcap.laws import welch

    for b, v, r, s in families._steiner_systems():
        assert v * r == b * s  # each point in r blocks, each block with s points
        assert v - 1 == r * (s - 1)  # each pair of points in one block
        assert welch.coherence(v * (r + 1), b) == pytest.approx(1 / r, rel=1e-9)


def stabilizer_lines(m, parity):
    """Real stabiliser vectors of R^(2^m): (-1)^Q on an affine subspace of dimension = parity mod 2."""
    d = 1 << m
    found = set()
    for size in range(parity % 2, m + 1, 2):
        for basis in combinations(range(1, d), size):
            span = {0}
            for b in basis:
                span |= {b ^ x for x in span}
            if len(span) != 1 << size:
                continue
            coordinates = list(product((0, 1), repeat=size))
            forms = [(i, j) for i in range(size) for j in range(i + 1)]  # i = j: linear
            for shift in range(d):
                for chosen in product((0, 1), repeat=len(forms)):
                    x = [0] * d
                    for digits in coordinates:
                        at = shift
                        for digit, b in zip(digits, basis, strict=True):
                            at ^= digit * b
                        sign = sum(c * digits[i] * digits[j] for c, (i, j) in zip(chosen, forms, strict=True))
                        x[at] = (-1) ** sign
                    first = next(value for value in x if value)
                    found.add(tuple(first * value for value in x))
    return np.array(sorted(found), dtype=float)


def test_barnes_wall_in_eight_dimensions_by_enumeration():
    x = stabilizer_lines(3, 1)
    agrees(member("barnes_wall", 8, 0.5), x)


def test_barnes_wall_counts_are_the_known_kissing_numbers():
    # Conway and Sloane, table 1.5: E8 240, BW16 4320, BW32 146880, BW64 9694080, half of each.
    for m, kissing in ((3, 240), (4, 4320), (5, 146880), (6, 9694080)):
        assert member("barnes_wall", 1 << m, 0.5).k == kissing // 2


@pytest.mark.parametrize(("m", "r"), [(4, 3), (5, 3)])
def test_reed_muller_distances(m, r):
    block = member("reed_muller", 1 << m, 1 - 2.0 ** (1 - r), order=r)
    points = np.array(list(product((0, 1), repeat=m)))
    monomials = [s for size in range(1, r + 1) for s in combinations(range(m), size)]
    table = np.array([points[:, list(s)].prod(axis=1) for s in monomials])
    assert block.k == 2 ** len(monomials)
    assert np.linalg.matrix_rank(table) == len(monomials)
    # Low weights are what counts: all words of the sum of at most three monomials, and a random sample.
    rng = np.random.default_rng(0)
    picks = [list(c) for size in (1, 2, 3) for c in combinations(range(len(monomials)), size)]
    words = [table[pick].sum(axis=0) % 2 for pick in picks]
    words += list(rng.integers(0, 2, (20_000, len(monomials))) @ table % 2)
    sums = np.array([abs(len(points) - 2 * int(word.sum())) for word in words if word.any()])
    assert sums.max() / (1 << m) == block.coherence


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
    from repcap.packing.exact import leech

    return leech()


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
    from repcap.packing.constructions import named_lines

    lines = named_lines("exact", d, k=k)
    agrees(sporadic(k, d), lines.rows(0, k))


def test_no_member_claims_more_than_is_possible():
    from repcap.laws.bounds import upper_bound

    for d in (3, 7, 8, 16, 24, 36, 64, 100, 200):
        for eps in (1 / d, d**-0.5, 0.2, 1 / 3, 0.5, 0.75, 0.9):
            for name, family in FAMILIES.items():
                for block in family(d, eps):
                    assert block.d <= d
                    assert block.coherence <= eps * ABOVE
                    if block.d > 1 and block.coherence > 0:
                        limit = upper_bound(block.d, block.coherence)
                        assert math.log10(block.k) <= limit.log10_k + 1e-9, (name, block, limit)
