"""The largest |cosine| with another matrix, against the whole matrix of cosines in float64."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from repcap.errors import VectorsError
from repcap.geometry.nearest import alignment
from repcap.geometry.nearest.alignment import UnitTable, largest_alignment
from repcap.matrix import TensorMatrix


@given(st.integers(1, 30), st.integers(1, 40), st.integers(1, 8), st.booleans(), st.integers(0, 3))
def test_agrees_with_all_cosines(m, n, dim, keep, seed):
    generator = torch.Generator().manual_seed(seed)
    a, b = torch.randn(m, dim, generator=generator), torch.randn(n, dim, generator=generator)
    table = UnitTable(TensorMatrix(b), "cpu", memory=1 << 20 if keep else 0)
    table.block = 7
    for _ in range(2):  # the second time from what was kept
        found = largest_alignment(TensorMatrix(a), table)
        unit = torch.nn.functional.normalize
        cosines = (unit(a.double(), dim=1) @ unit(b.double(), dim=1).T).abs().numpy()
        np.testing.assert_allclose(found.cosine, cosines.max(axis=1), atol=2e-6)
        chosen = cosines[np.arange(m), found.index]
        np.testing.assert_allclose(chosen, cosines.max(axis=1), atol=2e-6)
    assert found.largest is not None
    assert cosines.max(axis=1)[found.largest] == pytest.approx(cosines.max(), abs=2e-6)


def test_panels_cover_all_rows(monkeypatch):
    monkeypatch.setattr(alignment, "PANEL", 5)
    a, b = torch.randn(13, 4), torch.randn(9, 4)
    seen = []
    found = largest_alignment(TensorMatrix(a), UnitTable(TensorMatrix(b), "cpu"), lambda d, t: seen.append((d, t)))
    cosines = torch.nn.functional.normalize(a, dim=1) @ torch.nn.functional.normalize(b, dim=1).T
    np.testing.assert_allclose(found.cosine, cosines.abs().amax(1).numpy(), atol=1e-6)
    assert seen[-1] == (13 * 9, 13 * 9)


def test_a_row_of_the_table_itself_is_found_also_when_negated():
    b = torch.randn(300, 16)
    found = largest_alignment(TensorMatrix(torch.stack([b[200] * 3, -b[7]])), UnitTable(TensorMatrix(b), "cpu"))
    assert found.index.tolist() == [200, 7]
    np.testing.assert_allclose(found.cosine, 1.0, atol=1e-6)


def test_rows_without_a_direction():
    rows = torch.tensor([[0.0, 0.0], [1.0, 0.0], [float("inf"), 0.0]])
    table = UnitTable(TensorMatrix(torch.tensor([[0.0, 0.0], [0.6, 0.8]])), "cpu")
    found = largest_alignment(TensorMatrix(rows), table)
    assert np.isnan(found.cosine).tolist() == [True, False, True]
    assert found.index.tolist() == [-1, 1, -1]
    assert found.cosine[1] == pytest.approx(0.6, abs=1e-7)
    none = largest_alignment(TensorMatrix(torch.zeros(2, 2)), table)
    assert none.largest is None


def test_refusals():
    with pytest.raises(VectorsError, match="rows of 2 columns"):
        largest_alignment(TensorMatrix(torch.randn(3, 2)), UnitTable(TensorMatrix(torch.randn(3, 4)), "cpu"))
    with pytest.raises(VectorsError, match="no row with a direction"):
        largest_alignment(TensorMatrix(torch.randn(3, 2)), UnitTable(TensorMatrix(torch.zeros(3, 2)), "cpu"))
