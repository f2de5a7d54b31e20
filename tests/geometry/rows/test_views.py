"""Matrices made of other matrices hand out exactly the rows that they name."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from repcap.errors import VectorsError
from repcap.geometry.rows.views import ScaledColumns, Stacked, Subset
from repcap.matrix import TensorMatrix


class Named:
    count = 5

    def text(self, index):
        return f"t{index}" if index < 5 else None


@given(st.lists(st.integers(0, 19), min_size=1, max_size=30), st.data())
def test_subset_reads_its_rows_in_its_order(rows, data):
    base = torch.randn(20, 3)
    view = Subset(TensorMatrix(base), np.array(rows))
    start = data.draw(st.integers(0, len(rows) - 1))
    stop = data.draw(st.integers(start + 1, len(rows)))
    assert torch.equal(view.read(start, stop), base[rows[start:stop]])
    assert torch.equal(view.take([start]), base[[rows[start]]])
    assert view.count == len(rows)


def test_subset_keeps_token_texts():
    view = Subset(TensorMatrix(torch.randn(6, 2), tokens=Named()), np.array([4, 1, 5]))
    assert view.tokens is not None
    assert [view.tokens.text(i) for i in range(4)] == ["t4", "t1", None, None]


@given(st.lists(st.integers(1, 5), min_size=1, max_size=5), st.data())
def test_stacked_is_concatenation(sizes, data):
    parts = [torch.randn(size, 4) for size in sizes]
    whole, view = torch.cat(parts), Stacked([TensorMatrix(part) for part in parts])
    start = data.draw(st.integers(0, len(whole) - 1))
    stop = data.draw(st.integers(start + 1, len(whole)))
    assert torch.equal(view.read(start, stop), whole[start:stop])
    assert torch.equal(view.take(list(range(len(whole)))[::-1]), whole.flip(0))


def test_stacked_refuses_other_widths():
    with pytest.raises(VectorsError, match=r"widths \[2, 3\]"):
        Stacked([TensorMatrix(torch.randn(2, 2)), TensorMatrix(torch.randn(2, 3))])


def test_scaled_columns():
    base, gain = torch.randn(4, 3), torch.tensor([2.0, 0.0, -1.0])
    view = ScaledColumns(TensorMatrix(base), gain)
    assert torch.equal(view.read(1, 3), (base * gain)[1:3].double())
    assert torch.equal(view.take([3, 0]), (base * gain)[[3, 0]].double())
    with pytest.raises(VectorsError, match="gain of shape"):
        ScaledColumns(TensorMatrix(base), torch.ones(2))


def test_stacked_takes_rows_by_number_in_any_order():
    parts = [torch.randn(rows, 3) for rows in (4, 1, 6)]
    stacked = Stacked([TensorMatrix(rows) for rows in parts])
    wanted = [10, 0, 4, 4, 5, 3]
    assert torch.equal(stacked.take(wanted), torch.cat(parts)[wanted])
    assert stacked.take([]).shape == (0, 3)
