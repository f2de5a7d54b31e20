"""max |cos| against numpy on the whole Gram matrix, and what has no direction."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import settings as options
from hypothesis import strategies as st

from repcap.errors import VectorsError
from repcap.packing.coherence import coherence


def brute(rows: np.ndarray) -> float:
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return float(np.abs(unit @ unit.T)[np.triu_indices(len(rows), 1)].max())


@options(max_examples=30)
@given(k=st.integers(2, 40), d=st.integers(1, 9), block=st.integers(1, 50), seed=st.integers(0, 9999))
def test_equals_the_whole_gram_matrix(k, d, block, seed):
    rows = np.random.default_rng(seed).normal(size=(k, d)) * np.exp(np.random.default_rng(seed).normal(size=(k, 1)) * 5)
    found = coherence(rows, block_rows=block)
    assert found.value == pytest.approx(brute(rows), abs=1e-14)
    i, j = found.pair
    assert i < j
    assert abs(rows[i] @ rows[j]) / np.linalg.norm(rows[i]) / np.linalg.norm(rows[j]) == pytest.approx(found.value)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.int32])
def test_every_real_dtype(dtype):
    rows = torch.tensor([[3, 4], [4, 3], [-4, 3]]).to(dtype)
    assert coherence(rows).value == pytest.approx(24 / 25, abs=1e-15)


def test_norms_do_not_matter():
    rows = torch.tensor([[1e-300, 0.0], [1e300, 1e300], [0.0, -2.0]], dtype=torch.float64)
    assert coherence(rows).value == pytest.approx(0.5**0.5, abs=1e-15)


def test_opposite_and_orthogonal_rows():
    assert coherence(torch.tensor([[1.0, 0.0], [-2.0, 0.0]])).value == 1.0
    found = coherence(torch.eye(5), block_rows=2)
    assert (found.value, found.pair) == (0.0, (0, 1))


@pytest.mark.parametrize(
    ("rows", "match"),
    [
        (torch.zeros(3, 2), "row 0 is zero"),
        (torch.tensor([[1.0, 0.0], [float("nan"), 1.0]]), "row 1 is not finite"),
        (torch.tensor([[1.0, 0.0], [float("inf"), 1.0]]), "row 1 is not finite"),
        (torch.ones(1, 4), "at least 2 vectors"),
        (torch.ones(4), "table"),
        (torch.ones(2, 2, 2), "table"),
        (torch.ones(3, 2, dtype=torch.complex64), "complex"),
    ],
)
def test_what_has_no_coherence(rows, match):
    with pytest.raises(VectorsError, match=match):
        coherence(rows)
