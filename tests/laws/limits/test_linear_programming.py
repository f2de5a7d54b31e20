"""Delsarte's bound by linear programs: proven in exact arithmetic, as low as on a fixed grid, never crossed."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.special import eval_gegenbauer

from repcap.bracket.known import at_epsilon
from repcap.laws.limits import levenshtein, linear_programming
from repcap.laws.limits.bounds import upper_bound
from tool_modules import load_tool


@pytest.fixture(scope="module")
def checker():
    return load_tool("check_certificate")


def by_degree(found):
    return {2 * j + 2: c for j, c in enumerate(found)}


@pytest.mark.parametrize(
    ("d", "eps", "share"), [(64, 0.5, 0.888), (24, 0.7, 0.848), (24, 0.8, 0.711), (8, 0.8, 0.888), (64, 0.55, 0.800)]
)
def test_of_what_levenshtein_allows(d, eps, share):
    least = linear_programming.log_upper(d, eps)
    assert math.exp(least - levenshtein.log_upper(d, eps)[0]) == pytest.approx(share, abs=1e-3)


@pytest.mark.parametrize(("d", "eps"), [(3, 0.6), (8, 0.8), (16, 0.7), (12, 0.55)])
def test_as_low_as_a_program_on_a_fixed_grid_with_polynomials_of_another_source(d, eps):
    found = linear_programming.coefficients(d, eps)
    t, alpha = np.append(np.linspace(0.0, eps, 3000), 1.0), d / 2 - 1
    rows = [eval_gegenbauer(2 * j + 2, alpha, t) for j in range(len(found))]
    rows = np.array([row / row[-1] for row in rows])[:, :-1]
    assert np.max(1.0 + rows.T @ np.array(found)) <= linear_programming.MARGIN
    assert min(found) >= 0.0
    grid = linprog(np.ones(len(found)), A_ub=rows.T, b_ub=-np.ones(3000), method="highs")
    ours = math.exp(linear_programming.log_upper(d, eps))
    assert (1.0 + grid.fun) * (1.0 - 1e-7) <= ours <= (1.0 + grid.fun) * (1.0 + 1e-3)


@pytest.mark.parametrize(("d", "eps", "k"), [(8, 0.5, 120), (24, 0.5, 98280), (7, 0.5, 63)])
def test_sets_known_to_be_optimal_are_allowed(d, eps, k):
    assert k <= math.exp(linear_programming.log_upper(d, eps)) < k * (1.0 + 3e-6)


def points(count, seed):
    """(d, epsilon) where there is a program."""
    chosen, found = random.Random(seed), []
    while len(found) < count:
        d, eps = int(math.exp(chosen.uniform(math.log(3), math.log(150)))), chosen.uniform(0.45, 0.97)
        degree = levenshtein.log_upper(d, eps, most=linear_programming.MOST_DEGREE)
        if degree is not None and degree[0] <= math.log(linear_programming.MOST_K):
            found.append((d, eps))
    return found


def proven_and_never_crossed(checker, cells):
    for d, eps in cells:
        held = linear_programming.coefficients(d, eps)
        assert held is not None, (d, eps)
        exact = checker.programmed(d, Fraction(eps), by_degree(held))
        assert float(exact.mid) == pytest.approx(math.exp(linear_programming.log_upper(d, eps)), rel=1e-12)
        row = at_epsilon(d, eps)
        assert max(row["explicit"]["log10_k"], row["exists"]["log10_k"]) <= row["upper"]["log10_k"] + 1e-12
        assert row["upper"]["log10_k"] <= upper_bound(d, eps).log10_k


def test_proven_in_exact_arithmetic_and_never_crossed(checker):
    proven_and_never_crossed(checker, points(60, seed=0))


@pytest.mark.dear
def test_proven_at_a_thousand_points(checker):
    proven_and_never_crossed(checker, points(1000, seed=1))


def test_it_rises_with_d_and_epsilon():
    for cells in ([(12, 0.45 + 0.02 * i) for i in range(16)], [(d, 0.6) for d in range(3, 50, 5)]):
        found = [at_epsilon(d, eps)["upper"]["log10_k"] for d, eps in cells]
        assert found == sorted(found)
        assert any(at_epsilon(d, eps)["upper"]["name"] == linear_programming.NAME for d, eps in cells)


def test_where_there_is_no_program():
    for d, eps in ((2, 0.9), (24, 0.44), (4096, 0.5), (24, 0.99)):
        assert linear_programming.log_upper(d, eps) is None


def test_a_polynomial_that_is_positive_somewhere_is_refused(checker):
    held = by_degree(linear_programming.coefficients(24, 0.7))
    checker.programmed(24, Fraction(0.7), held)
    for other in ({**held, 4: held[4] * 1.001}, {**held, 2: -held[2]}, {**held, 3: 1.0}, {}, {2: 1.0}):
        with pytest.raises(checker.Refused):
            checker.programmed(24, Fraction(0.7), other)
    with pytest.raises(checker.Refused, match="positive between 0 and epsilon"):
        checker.programmed(24, Fraction(0.72), held)
