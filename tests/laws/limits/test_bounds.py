"""Welch, orthoplex, Levenshtein: against sets known to be optimal, closed forms and high precision."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from repcap.bracket.capacity import capacity
from repcap.constructions import direct_sum
from repcap.constructions.best import best_construction
from repcap.errors import DomainError
from repcap.laws.limits import bukh_cox, levenshtein, transfer, welch
from repcap.laws.limits.bounds import coherence_lower_bound, orthoplex, upper_bound, volume
from repcap.laws.limits.existence import gilbert_varshamov
from repcap.numerics import LN10

# Sets known to be optimal: k lines in R^d at this coherence.
OPTIMAL = [
    (6, 3, 1 / math.sqrt(5)),
    (16, 6, 1 / 3),
    (28, 7, 1 / 3),
    (36, 15, 1 / 5),
    (276, 23, 1 / 5),
    (12, 4, 1 / 2),
    (144, 16, 1 / 4),
    (2112, 64, 1 / 8),
    (33024, 256, 1 / 16),
    (36, 6, 1 / 2),
    (63, 7, 1 / 2),
    (120, 8, 1 / 2),
    (2300, 23, 1 / 3),
    (98280, 24, 1 / 2),
]


@pytest.mark.parametrize(("k", "d", "coherence"), OPTIMAL)
def test_bounds_meet_the_sets_known_to_be_optimal(k, d, coherence):
    assert coherence_lower_bound(k, d).value == pytest.approx(coherence, rel=1e-9)
    assert coherence_lower_bound(k, d).value <= coherence
    assert 10 ** upper_bound(d, coherence).log10_k == pytest.approx(k, rel=1e-9)


@pytest.mark.parametrize(("k", "d", "coherence"), [(28, 7, 1 / 3), (276, 23, 1 / 5), (6, 3, 1 / math.sqrt(5))])
def test_equiangular_sets_meet_welch(k, d, coherence):
    assert welch.coherence(k, d) == pytest.approx(coherence, rel=1e-14)
    assert coherence_lower_bound(k, d).name == "Welch (order 1)"


@pytest.mark.parametrize("d", [3, 28, 100, 999, 4096, 10**6, 10**9])
@pytest.mark.parametrize("more", [1, 2, 3, 10, 500])
def test_just_above_d_lines_the_bound_keeps_its_digits_and_stays_below(d, more):
    # d + 1 lines attain it (simplex, 1/d). From logarithms it was 3e-12 too high at (4097, 4096).
    k = d + more
    bound = coherence_lower_bound(k, d).value
    with mpmath.workdps(40):
        e = min(more, bukh_cox.few(d))
        few = mpmath.mpf(e * (e + 1)) / ((d + e) * (2 + (e - 1) * mpmath.sqrt(e + 2)) - e * (e + 1))
        exact = max(few, mpmath.sqrt(mpmath.mpf(more) / (mpmath.mpf(d) * (k - 1))))
        if k * 2 <= d * (d + 1):
            assert exact * (1 - 4e-15) <= bound <= exact
            assert coherence_lower_bound(None, d, log_k=math.log(k)).value <= exact
        else:
            assert bound > exact * (1 - 4e-15)


def test_integers_of_any_kind_give_one_bound():
    assert coherence_lower_bound(np.int32(70_000), 65_000) == coherence_lower_bound(70_000, 65_000)
    assert coherence_lower_bound(70_000.0, 65_000) == coherence_lower_bound(70_000, 65_000)


@pytest.mark.parametrize(("d", "eps", "log10_k"), [(4096, 0.0645, 23.32), (8192, 0.0996, 75.76), (2048, 0.0633, 14.50)])
def test_printed_upper_bounds(d, eps, log10_k):
    assert round(upper_bound(d, eps).log10_k, 2) == log10_k


@pytest.mark.parametrize(
    ("k", "d", "printed"),
    [
        (2000, 32, "0.2709"),
        (2000, 64, "0.1230"),
        (2000, 128, "0.0855"),
        (2000, 256, "0.0584"),
        (2000, 512, "0.0381"),
        (4000, 256, "0.0605"),
        (32000, 4096, "0.0146"),
    ],
)
def test_printed_lower_bounds_on_coherence(k, d, printed):
    assert f"{coherence_lower_bound(k, d).value:.4f}" == printed


def test_welch_against_its_defining_moments():
    # A_t is the mean of cos^(2t) over the sphere, by exact rational arithmetic.
    d, k, eps = 7, 200, Fraction(2, 5)
    for order in range(1, 8):
        moment = math.prod(Fraction(2 * i + 1, d + 2 * i) for i in range(order))
        least = float((k * moment - 1) / (k - 1)) ** (1 / (2 * order)) if k * moment > 1 else 0.0
        assert welch.coherence(k, d, order) == pytest.approx(least, rel=1e-13)
        power = eps ** (2 * order)
        most = math.log((1 - power) / (moment - power)) if power < moment else math.inf
        assert welch.log_upper(d, float(eps), order) == pytest.approx(most, rel=1e-12)


def test_welch_moment_is_that_of_random_directions():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((200_000, 6))
    cos = x[:, 0] / np.linalg.norm(x, axis=1)
    for order in (1, 2, 3):
        moment = math.exp(welch._log_moment(6, order))
        assert np.mean(cos ** (2 * order)) == pytest.approx(moment, rel=0.03)


@settings(max_examples=60)
@given(st.integers(3, 3000), st.floats(0.01, 0.9), st.integers(1, 60))
def test_levenshtein_is_never_above_welch(d, eps, order):
    found = levenshtein.log_upper(d, eps)
    assert found is not None
    assert found[0] <= welch.log_upper(d, eps, order) + 1e-9


@pytest.mark.parametrize("d", [3, 5, 24, 100, 5000])
def test_levenshtein_closed_forms_of_low_degree(d):
    for share in (0.1, 0.5, 0.99):
        eps = math.sqrt(share / (d + 2))
        log_k, degree = levenshtein.log_upper(d, eps)
        assert degree == 2
        assert math.exp(log_k) == pytest.approx(d * (1 - eps**2) / (1 - d * eps**2), rel=1e-12)
        square = 1 / (d + 2) + share * (3 / (d + 4) - 1 / (d + 2))
        log_k, degree = levenshtein.log_upper(d, math.sqrt(square))
        assert degree == 3
        assert math.exp(log_k) == pytest.approx(d * (d + 2) * (1 - square) / (3 - (d + 2) * square), rel=1e-11)


def largest_zero(n, dimension):
    """Of the Gegenbauer polynomial of degree n: the largest eigenvalue of its Jacobi matrix (Golub and Welsch)."""
    lam = dimension / 2 - 1
    m = np.arange(1, n)
    off = np.sqrt(m * (m + 2 * lam - 1) / (4 * (m + lam) * (m + lam - 1)))
    return float(np.linalg.eigvalsh(np.diag(off, 1) + np.diag(off, -1))[-1])


@pytest.mark.parametrize("d", [3, 8, 24, 300])
@pytest.mark.parametrize("n", [3, 4, 7, 20])
def test_levenshtein_at_the_end_of_a_piece_is_a_binomial(d, n):
    eps = largest_zero(n, d + 2) * (1 - 1e-12)
    log_k, _ = levenshtein.log_upper(d, eps)
    assert log_k == pytest.approx(math.log(math.comb(d + n - 1, n)), rel=1e-8)


def direct(d, eps):
    """Levenshtein's bound from its definition in 80 digits, hypergeometric Gegenbauer polynomials."""
    with mpmath.workdps(80):
        x = mpmath.mpf(eps)

        def polynomial(n, dimension):
            return mpmath.hyp2f1(-n, n + dimension - 2, mpmath.mpf(dimension - 1) / 2, (1 - x) / 2)

        n = 2
        while polynomial(n, d + 2) > 0:
            n += 1
        value = mpmath.binomial(d + n - 3, n - 2) * (1 - polynomial(n - 2, d + 2) / polynomial(n, d))
        return float(mpmath.log(value)), n


def linear_program(d, eps, k, degree=14, points=1500):
    """Delsarte's bound of that degree in cos^2 on a grid of cosines, by its dual: the largest 1 + sum A(x) over A >= 0
    with 1 + sum A(x) P_2i(x) >= 0. `k` only sets the scale."""
    x = np.sqrt(np.linspace(0.0, eps * eps, points))
    p = [np.ones(points), x]
    for n in range(1, 2 * degree):
        p.append(((2 * n + d - 2) * x * p[n] - n * p[n - 1]) / (n + d - 2))
    rows = [-(k - 1) * p[2 * i] for i in range(1, degree + 1)]
    scale = [np.abs(row).max() for row in rows]
    rows = [row / s for row, s in zip(rows, scale, strict=True)]
    found = linprog(-np.ones(points), A_ub=rows, b_ub=[1 / s for s in scale], bounds=(0, None), method="highs-ds")
    assert found.status == 0
    return 1 - (k - 1) * found.fun


@pytest.mark.parametrize(("d", "eps", "degree"), [(23, 0.2, 2), (50, 0.2, 3), (24, 0.4, 4), (100, 0.25, 5)])
def test_levenshtein_is_what_linear_programming_gives(d, eps, degree):
    log_k, found = levenshtein.log_upper(d, eps)
    k = math.exp(log_k)
    assert found == degree
    # A grid of cosines can only lower the value.
    assert k * (1 - 1e-5) <= linear_program(d, eps, k) <= k * (1 + 1e-9)


@pytest.mark.parametrize(
    ("d", "eps"),
    [(3, 0.9), (4, 0.55), (8, 0.7), (24, 0.49), (64, 0.3), (100, 0.95), (1000, 0.15), (4096, 0.0645), (16384, 0.05)],
)
def test_levenshtein_against_high_precision(d, eps):
    log_k, degree = levenshtein.log_upper(d, eps)
    expected, n = direct(d, eps)
    assert degree == n
    assert log_k == pytest.approx(expected, rel=1e-10)


@settings(max_examples=60)
@given(st.integers(2, 20_000), st.floats(0.005, 0.97), st.floats(1e-4, 0.02))
def test_upper_bound_rises_with_eps_and_d_and_never_meets_random_coding(d, eps, more):
    here = upper_bound(d, eps).log10_k
    assert upper_bound(d, min(eps + more, 0.99)).log10_k >= here - 1e-9
    assert upper_bound(d + 1, eps).log10_k >= here - 1e-9
    assert gilbert_varshamov(d, eps) <= here + 1e-9


@settings(max_examples=60)
@given(st.integers(3, 5000), st.floats(0.01, 0.9))
def test_coherence_bound_is_the_inverse_of_levenshtein(d, eps):
    found = levenshtein.log_upper(d, eps)
    assert found is not None
    if found[0] > math.log(d) + 1e-3:  # nearer to k = d the coherence hangs on the last digits of k
        bound = coherence_lower_bound(None, d, log_k=found[0])
        if bound.name in ("Bukh-Cox", transfer.NAME):
            assert bound.value >= eps * (1 - 1e-9)
        elif bound.name == "orthoplex (Rankin)":
            assert bound.value == pytest.approx(d**-0.5, rel=1e-12)
            assert eps <= bound.value * (1 + 1e-9)
        else:
            assert levenshtein.log_upper(d, bound.value)[0] == pytest.approx(found[0], rel=1e-9)
            assert bound.value == pytest.approx(eps, rel=1e-6)


def test_orthoplex():
    assert math.exp(orthoplex(4, 0.4999)) == pytest.approx(10.0)
    assert orthoplex(4, 0.5) is None
    assert orthoplex(64, 0.125) is None
    # At 0.3535 < 1/sqrt(8) Levenshtein allows more than 36 lines; Rankin does not.
    bound = upper_bound(8, 0.3535)
    assert bound.name == "orthoplex (Rankin)"
    assert 10**bound.log10_k == pytest.approx(36.0)
    assert levenshtein.log_upper(8, 0.3535)[0] > math.log(36.0)
    assert coherence_lower_bound(37, 8).value == pytest.approx(8**-0.5, rel=1e-12)


def test_lines_in_the_plane_and_on_a_line():
    for k in (2, 3, 5, 1000):
        exact = mpmath.cos(mpmath.pi / k) if k > 2 else 0
        assert exact - 3e-15 <= coherence_lower_bound(k, 2).value <= exact
        if k > 2:
            assert 10 ** upper_bound(2, math.cos(math.pi / k)).log10_k == pytest.approx(k, rel=1e-9)
    assert coherence_lower_bound(2, 1).value == 1.0
    assert upper_bound(1, 0.5).log10_k == 0.0


def test_few_lines_can_be_orthogonal():
    assert coherence_lower_bound(64, 64).value == 0.0
    assert coherence_lower_bound(65, 64).value == pytest.approx(1 / 64)  # the simplex


def test_beyond_the_degrees_that_are_computed_the_bound_is_by_volume():
    bound = upper_bound(10**6, 0.99)
    assert bound.name == "volume of caps"
    assert bound.log10_k >= gilbert_varshamov(10**6, 0.99)
    # In space, caps of half the angle: k (1 - cos(angle/2)) <= 1.
    assert math.exp(volume(3, 0.5)) == pytest.approx(1 / (1 - math.cos(math.pi / 6)), rel=1e-9)
    found = coherence_lower_bound(10**400, 64)
    assert found.name == "volume of caps"
    assert 0.999 < found.value <= 1.0
    for d, eps in ((3, 0.9), (64, 0.5), (1000, 0.3)):
        assert volume(d, eps) >= levenshtein.log_upper(d, eps)[0]


def test_extremes_stay_finite():
    with np.errstate(all="raise"):
        for d in (2, 3, 16384, 10**6):
            for eps in (1e-9, 0.5, 0.99):
                assert 0 <= upper_bound(d, eps).log10_k < math.inf
        assert upper_bound(16384, 0.99).log10_k * LN10 > 30_000


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: upper_bound(64, 0.0), "epsilon = 0"),
        (lambda: upper_bound(64, 1.0), "epsilon = 1"),
        (lambda: upper_bound(0, 0.5), "d = 0"),
        (lambda: upper_bound(2.5, 0.5), "d = 2.5"),
        (lambda: coherence_lower_bound(1, 64), "k = 1"),
        (lambda: coherence_lower_bound(float("nan"), 64), "k = nan"),
        (lambda: welch.log_upper(64, 0.1, order=0), "order 0"),
    ],
)
def test_domains(call, words):
    with pytest.raises(DomainError, match=words):
        call()


# --- Bukh and Cox, the transfer to caps, whole numbers


@pytest.mark.parametrize(("d", "e", "value"), [(3, 3, 1 / math.sqrt(5)), (21, 7, 1 / 9), (5, 1, 1 / 5)])
def test_bukh_cox_at_sets_that_attain_it(d, e, value):
    assert bukh_cox.coherence(d, e) == pytest.approx(value, rel=1e-14)


def test_bukh_cox_is_the_best_for_few_lines_more_than_dimensions():
    for d, last in ((100, 14), (4096, 91)):
        better = [e for e in range(2, 120) if bukh_cox.coherence(d, e) > levenshtein.coherence(d, math.log(d + e))[0]]
        assert better == list(range(2, last + 1))
        gain = max(bukh_cox.coherence(d, e) / levenshtein.coherence(d, math.log(d + e))[0] for e in better)
        assert 1.06 < gain < 1.08
        found = coherence_lower_bound(d + 5, d)
        assert (found.name, found.value) == ("Bukh-Cox", pytest.approx(bukh_cox.coherence(d, 5), rel=1e-12))
        assert upper_bound(d, found.value * 0.9999).log10_k == pytest.approx(math.log10(d + 4))
        assert upper_bound(d, found.value * 1.0001).log10_k == pytest.approx(math.log10(d + 5))


@pytest.mark.parametrize(
    ("n", "s", "most"), [(3, 0.0, 6), (8, 0.5, 240), (24, 0.5, 196560), (3, 5**-0.5, 12), (4, 0.5, 26)]
)
def test_levenshtein_for_points_of_the_sphere(n, s, most):
    assert math.exp(transfer.log_points(n, s)) == pytest.approx(most, rel=1e-9)


@pytest.mark.parametrize(
    ("d", "eps", "before", "most"),
    [(576, 0.7287, 156.67, 155.42), (576, 0.9, 284.34, 280.13), (3072, 0.9, 1488.2, 1461.3)],
)
def test_the_transfer_to_caps_where_it_is_better(d, eps, before, most):
    assert levenshtein.log_upper(d, eps)[0] / LN10 == pytest.approx(before, abs=0.05)
    found = upper_bound(d, eps)
    assert found.name == transfer.NAME
    assert most - 0.2 < found.log10_k <= most + 0.005
    assert coherence_lower_bound(None, d, log_k=found.log10_k * LN10 * (1 - 1e-9)).value == pytest.approx(eps, rel=1e-6)


def test_what_a_cap_holds_is_seen_at_the_angle_that_is_claimed():
    """Pairs of points in a cap of radius rho <= theta, at an angle >= theta: from its centre they are >= phi apart."""
    rng = np.random.default_rng(0)
    theta = math.acos(0.7)
    rho = 0.95 * theta
    least = 2 * math.asin(math.sin(theta / 2) / math.sin(rho))
    a, b = rho * np.sqrt(rng.random((2, 200_000)))
    angle = math.pi * rng.random(200_000)
    between = np.cos(a) * np.cos(b) + np.sin(a) * np.sin(b) * np.cos(angle)
    seen = angle[between <= math.cos(theta)]
    assert len(seen) > 1000
    assert seen.min() >= least
    assert seen.min() < least * 1.05


def test_a_bound_on_lines_is_a_whole_number_and_says_where_it_is_exact():
    for d in range(3, 40):
        for eps in np.linspace(0.05, 0.6, 12):
            most = 10 ** upper_bound(d, float(eps)).log10_k
            if most < 1e6:
                assert most == pytest.approx(round(most), rel=1e-9)
    assert upper_bound(3, 3**-0.5).log10_k == pytest.approx(math.log10(7))
    assert capacity(3, 3**-0.5).reading.count("exactly 7 lines")


def test_a_thousand_points_from_both_sides_and_rising():
    """No explicit set and no existence bound passes an upper bound; every bound rises with epsilon and with d."""
    dims = [3, 4, 5, 7, 8, 11, 16, 23, 24, 31, 47, 64, 100, 127, 128]
    dims += [200, 276, 400, 576, 768, 1024, 1536, 2048, 3072, 4096]
    for place, d in enumerate(dims):
        null = 2.0 / math.sqrt(d)
        grid = np.unique(np.concatenate([np.geomspace(0.3 * null, 0.98, 36), [d**-0.5, 1 / 3, 0.45, 0.5]]))
        grid = grid[grid < 0.99]
        rows = []
        for eps in grid.tolist():
            row = (best_construction(d, eps).log10_k, gilbert_varshamov(d, eps), upper_bound(d, eps).log10_k)
            assert max(row[:2]) <= row[2] + 1e-9, (d, eps)
            if place + 1 < len(dims):
                assert upper_bound(dims[place + 1], eps).log10_k >= row[2] - 1e-9, (d, eps)
                # Beyond 128 dimensions sums are filled by the largest block first, which may lose a few in a thousand.
                slack = 1e-9 if dims[place + 1] <= direct_sum.EXACT else 2e-3
                assert best_construction(dims[place + 1], eps).log10_k >= row[0] - slack, (d, eps)
            rows.append(row)
        for before, after in pairwise(rows):
            assert all(x <= y + 1e-9 for x, y in zip(before, after, strict=True)), d
