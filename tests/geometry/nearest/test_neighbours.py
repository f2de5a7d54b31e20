"""Neighbours by scan and by query against all cosines at once in float64."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from repcap.errors import InputError, VectorsError
from repcap.geometry.nearest.neighbours import NO_ROW, cosines_within, nearest_rows, rank_of, ranked, unit_of
from repcap.geometry.pairs import blocks
from repcap.matrix import TensorMatrix


def make(n, d, seed=0):
    return torch.from_numpy(np.random.default_rng(seed).standard_normal((n, d)) + 0.3).float()


def table(rows):
    unit = torch.nn.functional.normalize(rows.double())
    return (unit @ unit.T).numpy()


@settings(max_examples=40)
@given(n=st.integers(1, 60), d=st.integers(2, 20), panel=st.integers(1, 70), block=st.integers(1, 30))
def test_nearest_against_brute_force(n, d, panel, block):
    rows = make(n, d, seed=n * d)
    cosines = table(rows)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "BLOCK", block)
        found = nearest_rows(TensorMatrix(rows), epsilon=0.5, panel=panel, device="cpu")
    if n == 1:
        assert found.index.tolist() == [NO_ROW]
        return
    np.fill_diagonal(cosines, -np.inf)
    assert found.cosine == pytest.approx(cosines.max(1), abs=1e-6)
    assert cosines[np.arange(n), found.index] == pytest.approx(cosines.max(1), abs=1e-6)
    assert (found.index != np.arange(n)).all()
    border = np.abs(cosines - 0.5) < 1e-6
    if not border.any():
        assert found.beyond == (cosines[np.triu_indices(n, 1)] > 0.5).sum()


def test_ties_go_to_the_smaller_row_and_dead_rows_have_none():
    rows = torch.tensor([[1.0, 0.0], [0.0, 1.0], [2.0, 0.0], [0.0, 0.0], [4.0, 0.0]])
    found = nearest_rows(TensorMatrix(rows), panel=2, device="cpu")
    assert found.index.tolist() == [2, 0, 0, NO_ROW, 0]
    assert np.isneginf(found.cosine[3])


def test_mask():
    rows = make(30, 5)
    mask = np.arange(30) % 2 == 0
    found = nearest_rows(TensorMatrix(rows), mask=mask, panel=8, device="cpu")
    cosines = table(rows)
    np.fill_diagonal(cosines, -np.inf)
    cosines[:, ~mask] = -np.inf
    assert (found.index[mask] == cosines.argmax(1)[mask]).all()
    assert (found.index[~mask] == NO_ROW).all()


def test_clusters_are_the_rows_that_point_at_a_primary():
    rows = make(200, 4)
    found = nearest_rows(TensorMatrix(rows), device="cpu")
    clusters = found.clusters(tau=2)
    degree = {row: int((found.index == row).sum()) for row in range(200)}
    assert {row for row, _ in clusters} == {row for row, count in degree.items() if count > 2}
    assert [len(members) for _, members in clusters] == sorted((degree[row] for row, _ in clusters), reverse=True)
    for row, members in clusters:
        assert (found.index[members] == row).all()


def test_twins_are_joined_through_links():
    rows = torch.eye(6)
    rows[1] = rows[0] + 0.001 * rows[5]
    rows[2] = rows[0] - 0.001 * rows[5]
    rows[4] = rows[3] * 7
    found = nearest_rows(TensorMatrix(rows), device="cpu")
    assert [group.tolist() for group in found.twins(0.999)] == [[0, 1, 2], [3, 4]]


@settings(max_examples=30)
@given(
    n=st.integers(1, 40), d=st.integers(1, 10), top=st.integers(1, 50), opposed=st.booleans(), block=st.integers(1, 50)
)
def test_ranked_against_brute_force(n, d, top, opposed, block):
    rows, query = make(n, d, seed=n), make(3, d, seed=99)
    exclude = [frozenset({0}), frozenset(), frozenset(range(n))]
    got = ranked(TensorMatrix(rows), query, top, opposed=opposed, exclude=exclude, block=block)
    cosines = (torch.nn.functional.normalize(query.double()) @ torch.nn.functional.normalize(rows.double()).T).numpy()
    for line, left_out, result in zip(cosines, exclude, got, strict=True):
        usable = [i for i in range(n) if i not in left_out]
        expected = sorted((line[i] for i in usable), reverse=not opposed)[:top]
        assert result.cosines == pytest.approx(expected, abs=1e-12)
        assert [line[i] for i in result.indices] == pytest.approx(expected, abs=1e-12)


def test_rank_counts_what_is_nearer():
    rows, query = make(50, 6), make(1, 6, seed=5)[0]
    order = ranked(TensorMatrix(rows), query[None], 50)[0].indices
    assert [rank_of(TensorMatrix(rows), query, row) for row in order] == list(range(1, 51))
    assert rank_of(TensorMatrix(rows), query, order[9], frozenset(order[:4])) == 6


def test_cosines_within_groups():
    rows = make(40, 5)
    rows[7] = 0
    groups = np.random.default_rng(0).integers(-1, 6, 40)
    i, j, cosine = cosines_within(TensorMatrix(rows), groups, chunk=13)
    expected = {(a, b) for a in range(40) for b in range(a + 1, 40) if groups[a] == groups[b] >= 0 and 7 not in (a, b)}
    assert {(int(a), int(b)) for a, b in zip(i, j, strict=True)} == expected
    assert len(i) == len(expected)
    assert cosine == pytest.approx(table(rows)[i, j], abs=1e-12)
    assert cosines_within(TensorMatrix(rows), np.arange(40))[2].shape == (0,)


def test_bad_input():
    held = TensorMatrix(torch.tensor([[1.0, 0.0], [0.0, 0.0]]))
    with pytest.raises(InputError, match=r"row 2 is not in 0\.\.1"):
        unit_of(held, [2])
    with pytest.raises(VectorsError, match="row 1 of matrix has no direction"):
        unit_of(held, [0, 1])
    with pytest.raises(InputError, match="top must be at least 1"):
        ranked(held, torch.ones(1, 2), 0)
    with pytest.raises(InputError, match="tau must be at least 0"):
        nearest_rows(held, device="cpu").clusters(-1)
