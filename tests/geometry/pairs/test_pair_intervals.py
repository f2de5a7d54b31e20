"""Intervals of a sample against scipy's, and by simulation."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from repcap.geometry.pairs.pair_intervals import wilson


@given(count=st.integers(1, 100_000), data=st.data())
def test_wilson(count, data):
    successes = data.draw(st.integers(0, count))
    exact = stats.binomtest(successes, count).proportion_ci(0.95, method="wilson")
    assert wilson(successes / count, count) == pytest.approx((exact.low, exact.high), abs=1e-9)
