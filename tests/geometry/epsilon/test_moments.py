"""Moments against brute force, and the law that two halves make a whole."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from repcap.errors import InputError, VectorsError
from repcap.geometry.epsilon.moments import Moments, MomentsBuilder, panel_width


def unit_rows(n: int, d: int, seed: int) -> torch.Tensor:
    g = torch.Generator().manual_seed(seed)
    x = torch.randn((n, d), generator=g, dtype=torch.float64) + 0.3
    return x / x.norm(dim=1, keepdim=True)


@settings(max_examples=60)
@given(n=st.integers(2, 120), d=st.integers(1, 60), cuts=st.lists(st.integers(0, 120), max_size=3), seed=st.integers())
def test_parts_add_up_to_the_whole(n, d, cuts, seed, brute):
    units = unit_rows(n, d, seed % 2**31)
    edges = [0, *sorted(min(cut, n) for cut in cuts), n]
    total = Moments.empty(d)
    for start, stop in itertools.pairwise(edges):
        total = total + Moments.of(units[start:stop])
    truth = brute(units)
    assert total.count == n
    assert total.mean == pytest.approx(truth.mean, abs=1e-13)
    assert total.second == pytest.approx(truth.second, abs=1e-13)
    torch.testing.assert_close(total.G, units.T @ units, rtol=0, atol=1e-12)
    torch.testing.assert_close(total.s, units.sum(0), rtol=0, atol=1e-12)


@settings(max_examples=20)
@given(n=st.integers(3, 60), d=st.integers(1, 20), seed=st.integers(0, 99))
def test_taking_rows_out_undoes_adding_them(n, d, seed):
    units = unit_rows(n, d, seed)
    whole, part = Moments.of(units), Moments.of(units[: n // 3])
    left, rest = whole - part, Moments.of(units[n // 3 :])
    assert left.count == rest.count
    torch.testing.assert_close(left.G, rest.G, rtol=0, atol=1e-12)


@pytest.mark.parametrize("d", [1, 95, 97, 200, 769, 1100])
def test_upper_panels_give_the_whole_of_G(d):
    units = unit_rows(40, d, seed=d).float()
    builder = MomentsBuilder(d, torch.device("cpu"), torch.float32)
    builder.add(units[:25])
    builder.add(units[25:])
    G = builder.result().G
    assert torch.equal(G, G.T)
    torch.testing.assert_close(G, units.double().T @ units.double(), rtol=0, atol=2e-6)
    assert 1 <= panel_width(d) <= d


def test_survives_a_file_and_a_dict(tmp_path):
    moments = Moments.of(unit_rows(50, 7, seed=1))
    moments.save(tmp_path / "part.npz")
    for again in (Moments.load(tmp_path / "part.npz"), Moments.from_dict(moments.to_dict())):
        assert again.count == 50
        assert torch.equal(again.s, moments.s)
        assert torch.equal(again.G, moments.G)
    assert [path.name for path in tmp_path.iterdir()] == ["part.npz"]


def test_a_dict_is_a_copy():
    moments = Moments.of(unit_rows(50, 7, seed=1))
    record = {name: np.array(value) for name, value in moments.to_dict().items()}
    again = Moments.from_dict(record)
    record["G"][:] = 0.0
    assert torch.equal(again.G, moments.G)


DAMAGED = [
    ({"count": 3}, "not a record of moments"),
    ({"count": "many", "s": [0.0], "G": [[0.0]]}, "not a record of moments"),
    ({"count": 3, "s": [0.0, 1.0], "G": [[3.0]]}, "do not fit together"),
    ({"count": 3, "s": [0.0], "G": [[5.0]]}, "the trace of G is 5, not the count 3"),
]


@pytest.mark.parametrize(("record", "message"), DAMAGED)
def test_damaged_records_are_refused(record, message):
    with pytest.raises(InputError, match=message):
        Moments.from_dict(record)


def test_a_file_that_is_no_moments_is_refused(tmp_path):
    (tmp_path / "x.npz").write_bytes(b"no zip")
    for name in ("x.npz", "missing.npz"):
        with pytest.raises(InputError, match="cannot read moments from"):
            Moments.load(tmp_path / name)
    np.save(tmp_path / "plain.npy", np.zeros(3))
    with pytest.raises(InputError, match="cannot read moments from"):
        Moments.load(tmp_path / "plain.npy")


def test_too_few_rows_and_other_dimensions_are_refused():
    with pytest.raises(VectorsError, match="1 vectors make no pair"):
        _ = Moments.of(unit_rows(1, 4, seed=0)).mean
    with pytest.raises(VectorsError, match="3 and of 4 dimensions"):
        _ = Moments.empty(3) + Moments.empty(4)
    with pytest.raises(VectorsError, match="cannot take 2 rows out of 1"):
        _ = Moments.of(unit_rows(1, 4, seed=0)) - Moments.of(unit_rows(2, 4, seed=0))


@pytest.mark.parametrize("dim", [5, 200, 700])
def test_squares_are_those_of_the_moments_and_do_not_spend_the_builder(dim):
    units = torch.nn.functional.normalize(torch.randn(300, dim, generator=torch.Generator().manual_seed(dim)), dim=1)
    builder = MomentsBuilder(dim, torch.device("cpu"), torch.float32)
    builder.add(units[:100])
    builder.squares()
    builder.add(units[100:])
    S, F = builder.squares()
    wide = units.double()
    assert pytest.approx(float(wide.sum(0).square().sum()), rel=1e-6) == S
    assert pytest.approx(float((wide.T @ wide).square().sum()), rel=1e-6) == F
    assert pytest.approx(float(builder.result().G.square().sum()), rel=1e-12) == F
