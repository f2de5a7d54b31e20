"""Row against row, against torch's own cosine in float64."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from repcap.errors import VectorsError
from repcap.geometry.nearest.corresponding import corresponding
from repcap.matrix import TensorMatrix


@given(st.integers(1, 40), st.integers(1, 6), st.integers(1, 50), st.integers(0, 5))
def test_agrees_with_float64(rows, dim, block, seed):
    generator = torch.Generator().manual_seed(seed)
    a, b = (torch.randn(rows, dim, generator=generator, dtype=torch.float64) for _ in range(2))
    found = corresponding(TensorMatrix(a), TensorMatrix(b), block=block)
    np.testing.assert_allclose(found.cosine, torch.cosine_similarity(a, b, dim=1).numpy(), atol=1e-12)
    np.testing.assert_allclose(found.norm_a, a.norm(dim=1).numpy(), rtol=1e-12)
    np.testing.assert_allclose(found.norm_b, b.norm(dim=1).numpy(), rtol=1e-12)


def test_rows_without_a_direction_have_no_cosine():
    a = torch.tensor([[1.0, 0.0], [0.0, 0.0], [1.0, 1.0], [float("nan"), 1.0]])
    b = torch.tensor([[0.0, 0.0], [1.0, 0.0], [-2.0, -2.0], [1.0, 0.0]])
    found = corresponding(TensorMatrix(a), TensorMatrix(b), block=3)
    assert np.isnan(found.cosine).tolist() == [True, True, False, True]
    assert found.cosine[2] == pytest.approx(-1.0, abs=1e-15)


def test_half_precision_against_itself_is_one():
    a = torch.randn(50, 64).to(torch.bfloat16)
    found = corresponding(TensorMatrix(a), TensorMatrix(a.float()))
    np.testing.assert_allclose(found.cosine, 1.0, atol=1e-12)


def test_unequal_shapes_are_refused():
    with pytest.raises(VectorsError, match="3 x 2 and 4 x 2"):
        corresponding(TensorMatrix(torch.randn(3, 2)), TensorMatrix(torch.randn(4, 2)))
