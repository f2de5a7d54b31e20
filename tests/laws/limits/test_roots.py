from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from repcap.laws.limits.roots import root


@given(st.floats(0.01, 100.0))
def test_roots_of_smooth_functions(target):
    assert root(lambda x: x**3 - target, 0.0, 10.0) == pytest.approx(target ** (1 / 3), rel=1e-14)
    assert root(lambda x: target - math.exp(x), -10.0, 10.0) == pytest.approx(math.log(target), rel=1e-13, abs=1e-15)


@given(st.floats(1e-6, 1.0))
def test_a_jump_is_found_too(at):
    assert root(lambda x: -1.0 if x < at else 1.0, 0.0, 1.0) == pytest.approx(at, abs=1e-15)


def test_few_calls_for_a_smooth_function():
    calls = []
    root(lambda x: calls.append(x) or math.cos(x), 0.0, 3.0)
    assert len(calls) <= 15


def test_ends_that_are_roots_and_brackets_that_are_none():
    assert root(lambda x: x, 0.0, 1.0) == 0.0
    assert root(lambda x: x - 1.0, 0.0, 1.0) == 1.0
    with pytest.raises(ValueError, match="no sign change"):
        root(lambda x: 1.0, 0.0, 1.0)
