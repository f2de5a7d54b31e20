"""Readout error against brute force, closed forms and the coherence guarantee."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from repcap.errors import InputError, VectorsError
from repcap.geometry.readout.superposed import _draw, guaranteed_active, simulate


def directions(k, d, seed=0):
    return torch.from_numpy(np.random.default_rng(seed).standard_normal((k, d)))


def brute_force(vectors, s, trials, values, seed, readout):
    unit = (vectors / vectors.norm(dim=1, keepdim=True)).double()
    weights = unit
    if readout == "dual":
        weights = unit @ torch.linalg.pinv(unit.T @ unit)
        weights = weights / (weights * unit).sum(1, keepdim=True)
    chosen, amounts = _draw(len(unit), s, trials, values, seed)
    errors_on, errors_idle, found = [], [], 0
    for t in range(trials):
        code = torch.zeros(len(unit), dtype=torch.float64)
        code[chosen[t]] = amounts[t]
        reading = weights @ (code @ unit)
        mask = torch.zeros(len(unit), dtype=torch.bool)
        mask[chosen[t]] = True
        errors_on.append((reading - code)[mask])
        errors_idle.append(reading[~mask])
        found += set(reading.abs().topk(s).indices.tolist()) == set(chosen[t].tolist())
    on, idle = torch.cat(errors_on), torch.cat(errors_idle)
    return on.pow(2).mean().sqrt(), idle.pow(2).mean().sqrt(), idle.abs().max(), found / trials


@pytest.mark.parametrize("values", ["signs", "ones", "uniform"])
@pytest.mark.parametrize("readout", ["direct", "dual"])
@pytest.mark.parametrize(("k", "d", "s"), [(40, 12, 3), (30, 28, 5), (25, 40, 4), (17, 1, 2)])
def test_against_brute_force(values, readout, k, d, s):
    vectors = directions(k, d)
    (got,) = simulate(vectors, [s], trials=20, values=values, readouts=[readout], seed=3, device="cpu")
    on, idle, worst, found = brute_force(vectors, s, 20, values, 3, readout)
    assert got.rms_active == pytest.approx(float(on), rel=1e-4, abs=1e-5)
    assert got.rms_idle == pytest.approx(float(idle), rel=1e-4, abs=1e-5)
    assert got.worst == pytest.approx(float(worst), rel=1e-4, abs=1e-5)
    if d > 1:  # on a line every reading ties with every other
        assert got.recovery == pytest.approx(found)


def test_blocks_do_not_change_the_answer(monkeypatch):
    from repcap.geometry.readout import superposed as interference

    vectors = directions(100, 20)
    whole = simulate(vectors, [5], trials=10, device="cpu")
    read = interference._read
    monkeypatch.setattr(interference, "_read", lambda *args: read(*args, block=7))
    for a, b in zip(whole, simulate(vectors, [5], trials=10, device="cpu"), strict=True):
        assert a.readout == b.readout
        for name in ("rms_active", "rms_idle", "worst", "recovery"):
            assert getattr(a, name) == pytest.approx(getattr(b, name), rel=1e-5)


def test_closed_form_is_the_average():
    vectors = directions(400, 50)
    for got in simulate(vectors, [2, 10, 40], trials=2000, readouts=["direct"], device="cpu"):
        assert got.rms_active == pytest.approx(got.predicted_active, rel=0.03)
        assert got.rms_idle == pytest.approx(got.predicted_idle, rel=0.01)


def test_dual_readout_is_never_worse_on_idle_and_active_together():
    vectors = directions(60, 40) * torch.logspace(-1, 1, 40)  # far from a tight frame
    direct, dual = simulate(vectors, [5], trials=2000, readouts=("direct", "dual"), device="cpu")
    total = [r.rms_active**2 * 5 + r.rms_idle**2 * 55 for r in (direct, dual)]
    assert total[1] < total[0]


def test_orthonormal_directions_do_not_interfere():
    for got in simulate(torch.eye(16), [1, 8, 16], trials=5, device="cpu"):
        assert got.rms_active < 1e-6
        assert got.rms_idle < 1e-6
        assert got.recovery == 1.0


@settings(max_examples=30)
@given(k=st.integers(2, 40), d=st.integers(2, 60), seed=st.integers(0, 99))
def test_guarantee_holds(k, d, seed):
    vectors = directions(k, d, seed)
    unit = vectors / vectors.norm(dim=1, keepdim=True)
    mu = float((unit @ unit.T).fill_diagonal_(0).abs().max())
    s = min(guaranteed_active(mu), k)
    if s >= 1:
        (got,) = simulate(vectors, [s], trials=20, readouts=["direct"], seed=seed, device="cpu")
        assert got.recovery == 1.0


@pytest.mark.parametrize(("coherence", "s"), [(1 / 8, 4), (1 / 15, 7), (1 / 3, 1), (0.3, 2), (1.0, 0)])
def test_guarantee_is_strict(coherence, s):
    assert guaranteed_active(coherence) == s
    assert s < (1 + 1 / coherence) / 2 + 1e-12
    assert s + 1 >= (1 + 1 / coherence) / 2 - 1e-12


def test_same_seed_same_numbers():
    vectors = directions(50, 10)
    assert simulate(vectors, [3], seed=1, device="cpu") == simulate(vectors, [3], seed=1, device="cpu")
    assert simulate(vectors, [3], seed=1, device="cpu") != simulate(vectors, [3], seed=2, device="cpu")


@pytest.mark.parametrize(
    ("vectors", "options", "error", "message"),
    [
        (torch.eye(4), {"active": [5]}, InputError, "from 1 to k = 4, got 5"),
        (torch.eye(4), {"active": [0]}, InputError, "from 1 to k = 4, got 0"),
        (torch.eye(4), {"active": [1], "trials": 0}, InputError, "trials must be at least 1"),
        (torch.eye(4), {"active": [1], "values": "x"}, InputError, "unknown values 'x'"),
        (torch.eye(4), {"active": [1], "readouts": ["x"]}, InputError, "unknown readout 'x'"),
        (torch.zeros(4, 4), {"active": [1]}, VectorsError, "row 0 has no direction"),
        (torch.tensor([[1.0], [math.nan]]), {"active": [1]}, VectorsError, "row 1 has no direction"),
        (torch.ones(4), {"active": [1]}, VectorsError, r"non-empty \(k, d\) matrix"),
    ],
)
def test_bad_input(vectors, options, error, message):
    with pytest.raises(error, match=message):
        simulate(vectors, device="cpu", **options)
