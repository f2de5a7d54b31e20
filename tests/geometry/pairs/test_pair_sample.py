"""Sampled pairs: unbiased, named rightly, reproducible, honest about what cannot be sampled."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from repcap.errors import InputError, VectorsError
from repcap.geometry.pairs.count import count_pairs
from repcap.geometry.pairs.histogram import Wanted
from repcap.geometry.pairs.pair_sample import sample_pairs
from repcap.matrix import TensorMatrix


def rows(n=300, d=12, seed=0):
    return torch.randn(n, d, generator=torch.Generator().manual_seed(seed)) + 0.4


def test_the_sample_follows_the_whole():
    held = TensorMatrix(rows())
    whole, sample = count_pairs(held, device="cpu"), sample_pairs(held, 60_000, seed=1)
    assert sample.pairs == 60_000
    assert sample.moments()[:2] == pytest.approx(whole.moments()[:2], abs=0.005)
    for share in (0.01, 0.5, 0.99):
        assert sample.quantile(share) == pytest.approx(whole.quantile(share), abs=0.03)


def test_every_pair_of_distinct_rows_is_drawn_equally_often():
    held = TensorMatrix(torch.eye(4))
    held_rows = torch.tensor([[1.0, 0.0], [1.0, 0.1], [1.0, 0.3], [1.0, 0.6]])
    sample = sample_pairs(TensorMatrix(held_rows), 60_000, seed=0)
    shares = sample.counts[sample.counts > 0] / sample.pairs
    assert len(shares) == 6
    assert shares == pytest.approx(np.full(6, 1 / 6), abs=0.006)
    # never a row with itself
    assert sample_pairs(held, 1000, seed=0).largest[0].cosine == 0.0


def test_extremes_are_the_pairs_that_they_name():
    x = rows()
    sample = sample_pairs(TensorMatrix(x), 2000, wanted=Wanted(3), seed=2)
    for extreme in sample.largest + sample.smallest:
        assert extreme.i < extreme.j
        cosine = torch.nn.functional.cosine_similarity(x[extreme.i].double(), x[extreme.j].double(), dim=0)
        assert extreme.cosine == pytest.approx(float(cosine), abs=1e-6)
    assert sample.largest[0].cosine > sample.smallest[0].cosine


def test_rows_without_a_direction_are_never_counted():
    x = rows(50)
    x[:25] = 0.0
    sample = sample_pairs(TensorMatrix(x), 500, seed=0)
    assert sample.pairs == 500
    assert min(e.i for e in sample.largest + sample.smallest) >= 25


@pytest.mark.parametrize("spoil", [False, True])
def test_rows_held_or_read_as_drawn_give_the_same(spoil):
    x = rows(100)
    if spoil:
        x[::5] = 0.0
    a = sample_pairs(TensorMatrix(x), 9000, seed=5)
    b = sample_pairs(TensorMatrix(x), 9000, seed=5, memory=0)
    assert a.to_dict() == b.to_dict()


def test_mask_and_seed():
    held, mask = TensorMatrix(rows(60)), np.arange(60) < 20
    sample = sample_pairs(held, 300, mask=mask, seed=3)
    assert max(e.j for e in sample.largest + sample.smallest) < 20
    assert sample.to_dict() == sample_pairs(held, 300, mask=mask, seed=3).to_dict()
    assert sample.to_dict() != sample_pairs(held, 300, mask=mask, seed=4).to_dict()


@pytest.mark.parametrize(
    ("x", "pairs", "error", "message"),
    [
        (torch.ones(5, 2), 1, InputError, "at least 2 pairs, got 1"),
        (torch.ones(1, 2), 10, VectorsError, "no pair of rows to sample"),
        (torch.zeros(5, 2), 10, VectorsError, "hardly any pair of rows has a direction"),
    ],
)
def test_bad_input(x, pairs, error, message):
    with pytest.raises(error, match=message):
        sample_pairs(TensorMatrix(x), pairs)
