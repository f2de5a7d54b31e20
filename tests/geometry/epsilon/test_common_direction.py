"""The sentence on a common direction: what it may claim, and that its numbers are possible."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import repcap
from repcap.geometry.epsilon.common_direction import common_part
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
    assert "nothing is left" in common_part(spread(1.0, 0.0, 50), None, None, 1.0).reading


@settings(max_examples=200)
@given(
    st.integers(2, 3000),
    st.tuples(st.floats(-0.1, 1.0), st.floats(0.0, 0.5)),
    st.tuples(st.floats(-0.1, 0.9), st.floats(0.0, 0.5)),
    st.tuples(st.floats(-0.1, 0.9), st.floats(0.0, 0.5)),
)
def test_no_share_is_beyond_a_hundred_percent(dim, whole, centred, without_top):
    found = common_part(spread(*whole, dim), spread(*centred, dim), spread(*without_top, dim), 0.5).reading
    gone = re.search(r"takes away (\S+) %", found)
    assert gone is None or 0 <= int(gone[1]) <= 100


def test_the_share_that_is_removed_decides_not_the_ratio_that_is_left():
    """101 of 400 columns are used, one of them 1.7 times as wide: without it epsilon falls from .2020 to .2000."""
    x = np.zeros((20000, 400))
    x[:, :101] = np.random.default_rng(0).standard_normal((20000, 101))
    x[:, 0] *= 1.7
    found = repcap.measure(x)
    assert found.epsilon == pytest.approx(0.2020, abs=5e-4)
    assert found.common.startswith("One common direction accounts for little of the crowding")
    unit = x[::4] / np.linalg.norm(x[::4], axis=1, keepdims=True)
    without = unit - np.outer(unit @ np.eye(400)[0], np.eye(400)[0])  # the strongest direction is the wide column
    without /= np.linalg.norm(without, axis=1, keepdims=True)
    epsilons = []
    for rows_ in (unit, without):
        cosines = (rows_ @ rows_.T)[np.triu_indices(len(rows_), 1)]
        epsilons.append(cosines.mean() + 2 * cosines.std())
    assert found.common_share == pytest.approx((epsilons[0] - epsilons[1]) / (epsilons[0] - 0.1), abs=5e-3)
    assert 0.01 < found.common_share < 0.04
