"""Where the one-pass formula loses digits: noticed, and mended."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from repcap.geometry.epsilon import gram
from repcap.geometry.epsilon.epsilon import Spread, null_note
from repcap.geometry.epsilon.moments import Moments
from repcap.geometry.epsilon.spread import about_mean, needs_care
from repcap.geometry.rows.reader import RowReader
from repcap.matrix import TensorMatrix


def close_rows(n: int, d: int, angle: float, seed: int) -> torch.Tensor:
    g = torch.Generator().manual_seed(seed)
    x = torch.randn((1, d), generator=g, dtype=torch.float64)
    return x / x.norm() + angle * torch.randn((n, d), generator=g, dtype=torch.float64)


def exact_std(rows: torch.Tensor) -> float:
    """1 - cos = |u_i - u_j|^2 / 2 keeps the digits of cosines near 1."""
    u = rows / rows.norm(dim=1, keepdim=True)
    gaps = 0.5 * (u[:, None] - u[None]).square().sum(2)
    i, j = torch.triu_indices(len(u), len(u), 1)
    return float(gaps[i, j].std(unbiased=False))


@settings(max_examples=40)
@given(n=st.integers(6, 80), d=st.integers(2, 5), power=st.floats(-5.5, 0), seed=st.integers(0, 999))
def test_sums_about_the_mean_keep_the_digits(n, d, power, seed):
    rows = close_rows(n, d, 10**power, seed)
    u = rows / rows.norm(dim=1, keepdim=True)
    reader = RowReader(TensorMatrix(rows), torch.arange(n), torch.device("cpu"), torch.float64, 9)
    mean, std = about_mean(reader, u.mean(0))
    assert std == pytest.approx(exact_std(rows), rel=1e-4, abs=1e-15)
    assert mean == pytest.approx(float(((u.sum(0) @ u.sum(0)) - n) / (n * (n - 1))), abs=1e-13)


def test_the_plain_formula_would_have_failed_and_is_not_trusted():
    rows = close_rows(300, 4, 1e-5, seed=1)
    moments = Moments.of(rows / rows.norm(dim=1, keepdim=True))
    assert abs(moments.std - exact_std(rows)) > 1e-10
    assert needs_care(moments, torch.float64)
    wide = torch.randn((300, 4), dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    assert not needs_care(Moments.of(wide / wide.norm(dim=1, keepdim=True)), torch.float64)


def test_real_embeddings_need_no_second_look(smollm2_rows):
    rows = smollm2_rows[::8].double()
    units = (rows / rows.norm(dim=1, keepdim=True)).float()
    assert not needs_care(Moments.of(units), torch.float32)


@given(n=st.integers(2, 300), seed=st.integers(0, 99))
@settings(max_examples=20)
def test_cosines_of_few_rows(n, seed):
    x = torch.randn((n, 300), generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    u = x / x.norm(dim=1, keepdim=True)
    C = gram.cosines(u)
    i, j = torch.triu_indices(n, n, 1)
    mean, std = gram.mean_std(C)
    assert mean == pytest.approx(float(C[i, j].mean()), abs=1e-14)
    assert std == pytest.approx(float(C[i, j].std(unbiased=False)), abs=1e-14)


def test_what_follows_from_mean_and_std():
    spread = Spread("all", 100, 576, 0.442314, 0.143181)
    assert spread.epsilon == pytest.approx(0.728676)
    assert spread.null == pytest.approx(2 / 24)
    assert spread.ratio == pytest.approx(0.728676 * 12)
    assert spread.effective_dim == pytest.approx(1 / (0.442314**2 + 0.143181**2))
    assert spread.class_name == "high"
    assert Spread("all", 100, 576, 0.05, 0.04).class_name == "between"
    assert Spread("all", 100, 576, 0.0, 0.04).class_name == "low"
    assert Spread("all", 2, 576, 0.0, 0.0).effective_dim == 2.0
    assert Spread("all", 16, 16, 0.0, 0.0).effective_dim == 16.0  # an orthonormal basis
    assert Spread("all", 40, 16, 0.0, math.sqrt(1 / 37.5)).effective_dim == 16.0  # nearer to orthogonal than random
    assert Spread("sample", 20, 576, 0.0, 1 / math.sqrt(500)).effective_dim == 20.0
    assert Spread("sample", 20, 576, 0.0, 1 / math.sqrt(500), sampled=True).effective_dim == pytest.approx(500)


def test_note_on_narrow_matrices():
    assert null_note(400) is None
    assert "0.200" in null_note(100)
    assert "class high" in null_note(64)
