"""The sentence on a common direction: what it may claim, and that its numbers are possible."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import repcap
from repcap.geometry.epsilon.common_direction import common_sentence
from repcap.geometry.epsilon.epsilon import Spread


def spread(mean: float, std: float, dim: int, z: float = 2.0) -> Spread:
    return Spread("all", 1000, dim, mean, std, z)


def rows(count: int, dim: int, shift: float = 0.0, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((count, dim)) + shift


@pytest.mark.parametrize(("dim", "seed"), [(16, 0), (16, 1), (8, 0), (64, 2), (3, 0)])
def test_random_directions_in_few_dimensions_are_high_by_width_alone(dim, seed):
    found = repcap.measure(rows(1000, dim, seed=seed)).common
    assert found.startswith("No common direction makes epsilon high, the width does")
    assert "%" not in found
    assert f"{2 / math.sqrt(dim):.4f}" in found


def test_a_shift_of_narrow_rows_is_all_that_is_wrong_though_what_is_left_is_still_high():
    found = repcap.measure(rows(3000, 64, shift=0.5)).common
    assert found.startswith("One common direction accounts for all of the crowding")
    assert "What is left is class high, 1.0 times the epsilon of random directions" in found


def test_a_shift_of_wide_rows_leaves_class_low():
    found = repcap.measure(rows(800, 512, shift=1.0)).common
    assert found.startswith("One common direction accounts for all of the crowding")
    assert "What is left is class low" in found


def test_opposite_directions_left_over_are_not_called_a_multiple_of_random_ones():
    found = repcap.measure(rows(5, 100, shift=3.0)).common
    assert "epsilon is not above 0" in found
    assert "-0" not in found.rpartition("What is left")[2]


@pytest.mark.parametrize("z", [0.0, 1.0, 5.0])
def test_the_sentence_is_about_two_standard_deviations_whatever_z_is(z):
    x = rows(2000, 64, shift=0.5)
    assert repcap.measure(x, z=z).common == repcap.measure(x).common
    assert "nan" not in repcap.measure(x, z=z).common


def test_a_single_direction():
    assert "nothing is left" in common_sentence(spread(1.0, 0.0, 50), None, None, 1.0)


@settings(max_examples=200)
@given(
    st.integers(2, 3000),
    st.tuples(st.floats(-0.1, 1.0), st.floats(0.0, 0.5)),
    st.tuples(st.floats(-0.1, 0.9), st.floats(0.0, 0.5)),
    st.tuples(st.floats(-0.1, 0.9), st.floats(0.0, 0.5)),
)
def test_no_share_is_beyond_a_hundred_percent(dim, whole, centred, without_top):
    found = common_sentence(spread(*whole, dim), spread(*centred, dim), spread(*without_top, dim), 0.5)
    gone = re.search(r"takes away (\S+) %", found)
    assert gone is None or 0 <= int(gone[1]) <= 100
