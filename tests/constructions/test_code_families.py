"""Families that come from codes, built here from their definitions: number of lines and coherence by brute force."""

from __future__ import annotations

import math
from itertools import combinations, product
from typing import ClassVar

import numpy as np
import pytest

from line_sets import ABOVE, agrees, member
from repcap.constructions.families.quadratic import DelsarteGoethals


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
