"""epsilon of a weight in place, against all pairs in float64."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from repcap.errors import VectorsError
from repcap.geometry.measurement.live import live_spread


def all_pairs(rows):
    units = torch.nn.functional.normalize(rows.detach().double(), dim=1)
    cosines = (units @ units.T)[~torch.eye(len(rows), dtype=torch.bool)]
    return float(cosines.mean()), float(cosines.std(correction=0))


@given(
    st.integers(2, 60),
    st.integers(2, 20),
    st.integers(1, 70),
    st.sampled_from([torch.float32, torch.float64, torch.bfloat16, torch.float16]),
    st.integers(0, 5),
)
def test_agrees_with_all_pairs(rows, dim, block, dtype, seed):
    generator = torch.Generator().manual_seed(seed)
    weight = (torch.randn(rows, dim, generator=generator) + 0.3).to(dtype)
    found = live_spread(weight, block_rows=block)
    mean, std = all_pairs(weight)
    assert found.mean == pytest.approx(mean, abs=2e-6)
    assert found.std == pytest.approx(std, abs=1e-5)
    assert found.count == rows


def test_wide_rows_keep_six_digits():
    weight = torch.randn(600, 1500, generator=torch.Generator().manual_seed(0)) + 0.05
    mean, std = all_pairs(weight)
    found = live_spread(weight)
    assert found.epsilon == pytest.approx(mean + 2 * std, abs=1e-6)


def test_parameters_keep_their_gradients_and_zero_rows_are_left_out():
    weight = torch.nn.Parameter(torch.randn(10, 4))
    weight.data[3] = 0.0
    weight.data[5] = float("nan")
    found = live_spread(weight)
    assert (found.count, found.dropped) == (8, 2)
    assert weight.requires_grad
    assert weight.grad is None
    keep = [i for i in range(10) if i not in (3, 5)]
    assert found.mean == pytest.approx(all_pairs(weight[keep])[0], abs=1e-6)


def test_refusals():
    with pytest.raises(VectorsError, match="at least two"):
        live_spread(torch.zeros(5, 3))
    with pytest.raises(VectorsError, match="3 dimensions"):
        live_spread(torch.zeros(2, 3, 4))
