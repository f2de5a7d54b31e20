"""Tail shares against scipy's distributions and drawn directions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from repcap.geometry.pairs.tail import normal_tail, random_moments, random_tail


@given(mean=st.floats(-0.9, 0.9), std=st.floats(1e-3, 1), epsilon=st.floats(0, 1))
def test_normal(mean, std, epsilon):
    tail = normal_tail(mean, std, epsilon)
    assert tail.above == pytest.approx(stats.norm.sf(epsilon, mean, std), rel=1e-9, abs=1e-300)
    assert tail.below == pytest.approx(stats.norm.cdf(-epsilon, mean, std), rel=1e-9, abs=1e-300)
    assert tail.both == tail.above + tail.below


@given(dim=st.integers(2, 3000), epsilon=st.floats(-0.999, 0.999))
def test_random_is_the_beta_distribution(dim, epsilon):
    beta = stats.beta((dim - 1) / 2, (dim - 1) / 2)
    tail = random_tail(dim, epsilon)
    assert tail.above == pytest.approx(beta.sf((1 + epsilon) / 2), rel=1e-6, abs=1e-280)
    assert tail.below == pytest.approx(beta.cdf((1 - epsilon) / 2), rel=1e-6, abs=1e-280)


@given(dim=st.integers(2, 2000))
def test_random_moments_are_those_of_the_beta_distribution(dim):
    mean, variance, skewness, kurtosis = stats.beta.stats((dim - 1) / 2, (dim - 1) / 2, loc=-1, scale=2, moments="mvsk")
    assert random_moments(dim) == pytest.approx(
        {"mean": mean, "std": variance**0.5, "skewness": skewness, "excess_kurtosis": kurtosis}, abs=1e-9
    )


def test_random_against_drawn_directions():
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((200_000, 8))
    cosine = rows[:, 0] / np.linalg.norm(rows, axis=1)
    assert random_tail(8, 0.5).above == pytest.approx((cosine > 0.5).mean(), rel=0.02)


@pytest.mark.parametrize(("dim", "epsilon", "both"), [(1, 0.5, 1.0), (5, 0.0, 1.0), (5, -0.1, 1.0), (5, 1.0, 0.0)])
def test_ends(dim, epsilon, both):
    assert random_tail(dim, epsilon).both == both


def test_no_spread():
    assert normal_tail(0.5, 0.0, 0.4).above == 1.0
    assert normal_tail(0.5, 0.0, 0.6).both == 0.0
