"""What a careless caller gives to the Python API: one clear line each, before any row is read."""

from __future__ import annotations

import math

import numpy as np
import pytest

import repcap
from repcap.errors import RepcapError

ROWS = np.random.default_rng(0).standard_normal((40, 8))


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("z", "2"),
        ("z", None),
        ("rows", 25.5),
        ("rows", "30"),
        ("rows", True),
        ("seed", -1),
        ("seed", 1.5),
        ("seed", 2**70),
        ("influence", 1.5),
        ("influence", "3"),
        ("remove_top", 1.5),
        ("vocab_size", 2.5),
        ("vocab_size", "a"),
        ("block_rows", 1.5),
        ("exclude_ids", "abc"),
        ("exclude_ids", [None]),
        ("exclude_ids", [1.5]),
        ("exclude_ids", [True]),
        ("only_ids", [math.nan]),
        ("only_ids", [math.inf]),
        ("only_ids", [40]),
    ],
)
def test_measure_names_the_option(option, value):
    with pytest.raises(RepcapError) as caught:
        repcap.measure(ROWS, **{option: value})
    message = str(caught.value)
    assert "\n" not in message
    assert option in message or option.replace("_", "-") in message or option.replace("_size", "ulary size") in message


def test_numpy_numbers_are_numbers():
    plain = repcap.measure(ROWS, rows=25, seed=3, exclude_ids=[1, 2], z=1.5, block_rows=7)
    numpy = repcap.measure(
        ROWS,
        rows=np.int64(25),
        seed=np.int32(3),
        exclude_ids=np.array([1, 2]),
        z=np.float64(1.5),
        block_rows=np.int8(7),
    )
    assert numpy.epsilon == plain.epsilon


def test_pairs_check_the_seed():
    for seed in (-1, 2**70, 0.5):
        with pytest.raises(RepcapError, match="seed = "):
            repcap.pairs(ROWS, sample=50, seed=seed)


def test_masked_values_are_no_numbers():
    masked = np.ma.array(ROWS, mask=ROWS > 2)
    with pytest.raises(RepcapError, match="masked"):
        repcap.measure(masked)
    assert repcap.measure(np.ma.array(ROWS)).epsilon == repcap.measure(ROWS).epsilon


@pytest.mark.parametrize("numbers", [{"features": 10**400}, {"features": 1e7, "params": 10**400}])
def test_design_beyond_float64(numbers):
    with pytest.raises(RepcapError, match="give a finite number"):
        repcap.design(eps=0.07, **numbers)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_equal_rows_leave_nothing_without_their_mean(dtype):
    rows = np.tile(np.random.default_rng(1).standard_normal(8), (30, 1))
    found = repcap.measure(rows, centre=True, dtype=dtype)
    assert [spread.rows for spread in found.variants] == []
    assert any("the rows are equal" in note for note in found.notes)
    assert "nothing is left" in found.common
