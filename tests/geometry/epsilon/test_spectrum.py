"""Spectra that are known, and numpy's."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from repcap.geometry.epsilon.spectrum import leading_spectrum, spectrum, top_directions


def unit_rows(n: int, d: int, seed: int) -> torch.Tensor:
    x = torch.randn((n, d), generator=torch.Generator().manual_seed(seed), dtype=torch.float64) + 0.5
    return x / x.norm(dim=1, keepdim=True)


@settings(max_examples=30)
@given(n=st.integers(2, 60), d=st.integers(1, 40), seed=st.integers(0, 999))
def test_ratios_follow_from_the_singular_values(n, d, seed):
    u = unit_rows(n, d, seed)
    values = np.linalg.svd(u.numpy(), compute_uv=False) ** 2
    shares = values / values.sum()
    shares = shares[shares > 1e-300]
    for symmetric in (u.T @ u, u @ u.T):
        found = spectrum(symmetric, n, d)
        assert np.allclose(found.eigenvalues, values[: len(found.eigenvalues)], rtol=0, atol=1e-11)
        assert found.participation_ratio == pytest.approx(values.sum() ** 2 / (values**2).sum(), rel=1e-10)
        assert found.entropy_rank == pytest.approx(math.exp(-(shares * np.log(shares)).sum()), rel=1e-6)
        assert found.top_share == pytest.approx(values[0] / n, rel=1e-10)
        assert len(found.top_shares) == min(10, n, d)


def test_isotropic_and_one_dimensional_ends():
    isotropic = spectrum(torch.eye(7, dtype=torch.float64), 7, 7)
    assert isotropic.participation_ratio == pytest.approx(7)
    assert isotropic.entropy_rank == pytest.approx(7)
    line = torch.zeros((7, 7), dtype=torch.float64)
    line[2, 2] = 50.0
    flat = spectrum(line, 50, 7)
    assert (flat.participation_ratio, flat.entropy_rank, flat.top_share) == (1.0, pytest.approx(1.0), 1.0)


@pytest.mark.parametrize("m", [1, 3])
def test_lanczos_agrees_with_all_eigenvalues(m, monkeypatch):
    from repcap.geometry.epsilon import spectrum as module

    u = unit_rows(400, 120, seed=4)
    G = u.T @ u
    whole, some = spectrum(G, 400, 120), leading_spectrum(G, 400, m)
    assert some.top_shares == pytest.approx(whole.top_shares[:m], rel=1e-9)
    assert (some.entropy_rank, some.eigenvalues) == (None, ())
    assert some.participation_ratio == pytest.approx(whole.participation_ratio)
    exact = top_directions(G, m)
    monkeypatch.setattr(module, "EXACT_DIM", 1)
    lanczos = top_directions(G, m)
    torch.testing.assert_close(exact.T @ exact, torch.eye(m, dtype=torch.float64), rtol=0, atol=1e-10)
    torch.testing.assert_close(exact @ exact.T, lanczos @ lanczos.T, rtol=0, atol=1e-7)
