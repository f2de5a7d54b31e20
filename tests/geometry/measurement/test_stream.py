"""Streamed moments and their block jackknife, against all pairs and against leaving blocks out, in float64."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from repcap.errors import VectorsError
from repcap.geometry.measurement.stream import StreamMoments, block_jackknife


def all_pairs(rows: torch.Tensor, z: float = 2.0) -> tuple[float, float, float]:
    """mean, std, epsilon from the n x n cosines."""
    units = torch.nn.functional.normalize(rows.double(), dim=1)
    cosines = (units @ units.T)[~torch.eye(len(rows), dtype=torch.bool)]
    mean, std = float(cosines.mean()), float(cosines.std(correction=0))
    return mean, std, mean + z * std


def walk(blocks: list[torch.Tensor]) -> StreamMoments:
    stream = StreamMoments(blocks[0].shape[1])
    for block in blocks:
        stream.add(block)
    for block in blocks:
        stream.add_again(block)
    return stream


@given(st.lists(st.integers(1, 9), min_size=3, max_size=6), st.integers(2, 8), st.integers(0, 9))
def test_agrees_with_all_pairs(sizes, dim, seed):
    generator = torch.Generator().manual_seed(seed)
    blocks = [torch.randn(size, dim, generator=generator) + 1.0 for size in sizes]
    whole = torch.cat(blocks)
    stream = walk(blocks)
    mean, std, epsilon = all_pairs(whole)
    spread = stream.spread("all")
    assert (spread.mean, spread.count) == (pytest.approx(mean, abs=1e-12), len(whole))
    assert spread.std == pytest.approx(std, abs=1e-7)
    centred = stream.centred()
    assert centred is not None
    assert centred.epsilon == pytest.approx(all_pairs(whole.double() - whole.double().mean(0))[2], abs=1e-7)
    without = [all_pairs(torch.cat(blocks[:k] + blocks[k + 1 :]))[2] for k in range(len(blocks))]
    expected = busing(epsilon, np.array(without), np.array(sizes, dtype=float))
    assert stream.standard_error() == pytest.approx(expected, rel=1e-5, abs=1e-7)


def test_readouts_are_limited_as_the_gram_matrix_says():
    rows = torch.randn(60, 8, generator=torch.Generator().manual_seed(3)).double() + 0.5
    found = walk(list(rows.split(20))).readout()
    units = torch.nn.functional.normalize(rows, dim=1)
    cosines = (units @ units.T)[~torch.eye(60, dtype=torch.bool)]
    assert found.direct_dim == pytest.approx(1.0 / float(cosines.square().mean()), rel=1e-9)
    assert (found.rank, found.mean_leverage) == (8, 8 / 60)
    leverage = (units @ torch.linalg.pinv(units)).diagonal()
    assert 1.0 / float(((1.0 / leverage - 1.0) / 59).mean()) <= found.linear_limit == pytest.approx(8 * 59 / 52)


def busing(value: float, without: np.ndarray, sizes: np.ndarray) -> float:
    """Pseudo-values written out one by one."""
    n, g = sizes.sum(), len(sizes)
    h = n / sizes
    pseudo = h * value - (h - 1) * without
    estimate = g * value - ((1 - sizes / n) * without).sum()
    return math.sqrt((((pseudo - estimate) ** 2) / (h - 1)).sum() / g)


def test_equal_blocks_give_the_delete_a_group_jackknife():
    without = np.array([0.3, 0.5, 0.45, 0.38])
    expected = math.sqrt(3 / 4 * ((without - without.mean()) ** 2).sum())
    assert block_jackknife(0.41, without.tolist(), [7] * 4) == pytest.approx(expected, rel=1e-12)


def test_standard_error_covers_independent_samples():
    """Over many independent streams the standard error agrees with the spread of epsilon itself."""
    generator = torch.Generator().manual_seed(3)
    found, errors = [], []
    for _ in range(150):
        rows = torch.randn(240, 6, generator=generator) + torch.tensor([0.7, 0, 0, 0, 0, 0])
        stream = walk(list(rows.split(8)))
        found.append(stream.spread("all").epsilon)
        errors.append(stream.standard_error())
    assert np.mean(errors) == pytest.approx(np.std(found, ddof=1), rel=0.2)


def test_dependence_within_blocks_is_seen():
    """Copies of one vector inside a block carry no news: the error is that of the distinct vectors."""
    generator = torch.Generator().manual_seed(5)
    rows = torch.randn(60, 5, generator=generator)
    repeated = walk([row.expand(10, -1) for row in rows])
    fine = walk(list(rows.repeat_interleave(10, dim=0).split(1)))
    assert repeated.standard_error() > 2.5 * fine.standard_error()


def test_rows_without_a_direction_are_left_out_and_counted():
    rows = torch.tensor([[1.0, 0.0], [0.0, 0.0], [0.0, 2.0], [float("nan"), 1.0], [1.0, 1.0]])
    stream = walk([rows[:2], rows[2:4], rows[4:]])
    spread = stream.spread("all")
    assert (spread.count, spread.dropped) == (3, 2)
    assert spread.epsilon == pytest.approx(all_pairs(rows[[0, 2, 4]])[2], abs=1e-12)


def test_too_little():
    stream = walk([torch.ones(1, 3)])
    assert stream.standard_error() is None
    assert stream.centred() is None  # the only vector is its own mean
    with pytest.raises(VectorsError, match="longer text"):
        stream.spread("all")
