"""What `measure` says of linear readouts from G alone, against leverages row by row and `repcap readout`."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

import repcap
from repcap.geometry.readout.leverage import readout_limits


def rows_of(n: int, d: int, rank: int, seed: int, shared: float) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return (rng.standard_normal((n, rank)) + shared) @ rng.standard_normal((rank, d))


@settings(max_examples=15, deadline=None)
@given(
    st.integers(3, 40), st.integers(2, 9), st.integers(1, 9), st.integers(0, 5), st.sampled_from([0.0, 3.0]),
    st.sampled_from(["float32", "float64"]),
)  # fmt: skip
def test_limits_are_those_of_the_leverages_by_brute_force(n, d, rank, seed, shared, dtype):
    rows = rows_of(n, d, min(rank, d), seed, shared)
    found = repcap.measure(rows, dtype=dtype).readout
    units = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    leverage = np.diag(units @ np.linalg.pinv(units, rtol=1e-6))
    rank = np.linalg.matrix_rank(units, 1e-6 * np.sqrt(n))
    if dtype == "float32" and found.rank > rank:  # rounding counts as a direction; the limits are looser, and hold
        assert found.linear_limit is None or found.linear_limit > rank * (n - 1) / (n - rank)
        return
    assert found.rank == rank
    assert found.mean_leverage == pytest.approx(leverage.mean(), rel=1e-6)
    cosines = units @ units.T
    second = (np.square(cosines).sum() - n) / (n * (n - 1))
    assert found.direct_dim == pytest.approx(1 / second, rel=1e-4)
    interference = ((1 / np.minimum(leverage, 1.0) - 1) / (n - 1)).mean()
    if n == rank:
        assert (found.linear_limit, found.s_limit) == (None, n)
        assert interference == pytest.approx(0.0, abs=1e-9)
        return
    assert found.linear_limit == pytest.approx(rank * (n - 1) / (n - rank), rel=1e-12)
    assert 1 / interference <= found.linear_limit * (1 + 1e-9)
    assert found.direct_dim <= found.linear_limit * (1 + 1e-4)
    # at s_limit a normal curve of variance s / linear_limit passes theta in the share delta
    if found.s_limit < n:
        assert 2 * norm.sf(0.5 / np.sqrt(found.s_limit / found.linear_limit)) == pytest.approx(1e-3, rel=1e-9)


@pytest.mark.parametrize("shared", [0.0, 2.0])
def test_limits_hold_for_what_readout_finds_on_the_same_rows(shared):
    rows = rows_of(300, 100, 100, 0, shared)
    found, read = repcap.measure(rows).readout, repcap.readout(rows)
    assert found.rank == read.rank == 100
    assert found.direct_dim == pytest.approx(read.direct.effective_dim, rel=1e-5)
    assert found.linear_limit == pytest.approx(read.welch_dim, rel=1e-12)
    assert read.best.effective_dim <= found.linear_limit
    assert read.direct.most <= read.best.most <= found.s_limit


def test_a_tight_frame_attains_the_limit():
    """Of a union of orthonormal bases every leverage is d/n."""
    bases = [np.linalg.qr(np.random.default_rng(i).standard_normal((16, 16)))[0] for i in range(6)]
    read = repcap.readout(np.concatenate(bases))
    limits = repcap.measure(np.concatenate(bases)).readout
    assert read.best.effective_dim == pytest.approx(limits.linear_limit, rel=1e-6)
    assert limits.direct_dim == pytest.approx(limits.linear_limit, rel=1e-4)


def test_s_limit_is_of_a_normal_curve_and_lines_of_one_angle_can_be_read_at_more():
    """28 lines at 1/3 in R^7: two active ones read at most 2/3 of an idle one, and one active one never alarms."""
    rows = np.array([[-3.0 if k in (i, j) else 1.0 for k in range(8)] for i in range(8) for j in range(i)])
    limits, read = repcap.measure(rows).readout, repcap.readout(rows)
    assert (limits.rank, limits.linear_limit) == (7, pytest.approx(9.0))
    assert limits.s_limit < 1 == read.best.most


def test_orthogonal_rows_and_an_estimate():
    found = repcap.measure(np.eye(5)).readout
    assert (found.rank, found.mean_leverage, found.direct_dim, found.linear_limit, found.s_limit) == (
        5,
        1,
        None,
        None,
        5,
    )
    sampled = repcap.measure(np.random.default_rng(0).standard_normal((500, 8)), rows=100)
    assert (sampled.readout, sampled.to_dict()["readout"]) == (None, None)


def test_a_wide_matrix_takes_the_most_that_the_rank_can_be():
    wide = repcap.measure(torch.randn(1700, 1540, generator=torch.Generator().manual_seed(0)))
    assert (wide.readout.rank, wide.spectrum.eigenvalues) == (1540, ())
    assert readout_limits(1700, 1500, 0.1).linear_limit < wide.readout.linear_limit
