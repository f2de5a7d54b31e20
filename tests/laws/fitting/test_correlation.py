"""Trends against scipy, brute force over all orders, and planted exponents."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from repcap.errors import InputError
from repcap.laws.fitting import correlation as trend


@given(st.lists(st.tuples(st.integers(1, 8), st.integers(1, 8)), min_size=4, max_size=25))
def test_spearman_agrees_with_scipy_with_ties(pairs):
    x, y = map(np.array, zip(*pairs, strict=True))
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        with pytest.raises(InputError, match="constant"):
            trend.spearman(x, y)
        return
    found, expected = trend.spearman(x, y), stats.spearmanr(x, y)
    assert found.rho == pytest.approx(expected.statistic, abs=1e-12)
    assert found.p == pytest.approx(expected.pvalue, abs=1e-6)


def test_permutation_p_agrees_with_all_orders():
    x, y = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), np.array([2.0, 1.0, 4.0, 3.0, 6.0, 5.0])
    observed = abs(stats.spearmanr(x, y).statistic)
    every = [abs(stats.spearmanr(x, order).statistic) >= observed - 1e-12 for order in itertools.permutations(y)]
    found = trend.spearman(x, y, permutations=20000, seed=1)
    assert found.method == "permutation"
    assert found.p == pytest.approx(np.mean(every), abs=0.006)  # 3 standard errors of 20000 draws
    assert trend.spearman(x, y, permutations=500, seed=3) == trend.spearman(x, y, permutations=500, seed=3)


def test_perfect_order():
    assert trend.spearman([1, 2, 3, 4], [10, 20, 30, 45]).to_dict() == {"rho": 1.0, "p": 0.0, "n": 4, "method": "t"}
    assert trend.spearman([1, 2, 3], [3, 2, 1]).rho == -1.0


def test_power_law_finds_a_planted_exponent():
    rng = np.random.default_rng(0)
    x = np.geomspace(100, 10000, 400)
    found = trend.power_law(x, 2.0 / np.sqrt(x) * np.exp(0.05 * rng.standard_normal(400)))
    assert found.low < -0.5 < found.high
    assert found.slope == pytest.approx(-0.5, abs=0.01)
    assert found.intercept == pytest.approx(np.log(2.0), abs=0.1)


def test_power_law_agrees_with_scipy():
    rng = np.random.default_rng(1)
    x, y = rng.uniform(1, 9, 12), rng.uniform(1, 9, 12)
    found, expected = trend.power_law(x, y, confidence=0.9), stats.linregress(np.log(x), np.log(y))
    assert found.slope == pytest.approx(expected.slope, rel=1e-10)
    assert found.standard_error == pytest.approx(expected.stderr, rel=1e-10)
    assert found.r2 == pytest.approx(expected.rvalue**2, rel=1e-10)
    assert found.high - found.low == pytest.approx(2 * stats.t.ppf(0.95, 10) * expected.stderr, rel=1e-10)


def test_interval_covers_at_its_rate():
    rng = np.random.default_rng(2)
    x = np.geomspace(1, 100, 12)
    covers = 0
    for _ in range(400):
        found = trend.power_law(x, x**0.3 * np.exp(0.2 * rng.standard_normal(12)))
        covers += found.low <= 0.3 <= found.high
    assert 0.92 <= covers / 400 <= 0.98


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        ([1, 2], [1, 2], "at least 3"),
        ([1, 2, 3], [1, 2], "one length"),
        ([1, 1, 1], [1, 2, 3], "constant"),
        ([1, 2, float("nan")], [1, 2, 3], "finite"),
    ],
)
def test_unusable_lists(x, y, message):
    with pytest.raises(InputError, match=message):
        trend.spearman(x, y)


def test_power_law_refuses_zero_and_silly_confidence():
    with pytest.raises(InputError, match="positive"):
        trend.power_law([0, 1, 2], [1, 2, 3])
    with pytest.raises(InputError, match="confidence"):
        trend.power_law([1, 2, 3], [1, 2, 4], confidence=1.0)
