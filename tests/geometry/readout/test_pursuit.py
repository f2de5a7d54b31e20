"""Orthogonal matching pursuit: against the plain algorithm in numpy, its guarantee, and what linear readouts find."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import hadamard

from repcap.geometry.readout import pursuit
from repcap.geometry.readout.pursuit import OPERATIONS, affordable, pursue
from repcap.geometry.readout.superposed import READOUTS, guaranteed_active, simulate


def unit(k: int, d: int, seed: int) -> np.ndarray:
    rows = np.random.default_rng(seed).standard_normal((k, d))
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def by_hand(rows: np.ndarray, x: np.ndarray, s: int) -> tuple[list[int], np.ndarray]:
    """The algorithm as it is written in books: one state, a whole least squares fit at each step."""
    taken: list[int] = []
    rest, values = x, np.zeros(0)
    for _ in range(s):
        size = np.abs(rows @ rest)
        size[taken] = -1
        taken.append(int(size.argmax()))
        values = np.linalg.lstsq(rows[taken].T, x, rcond=None)[0]
        rest = x - rows[taken].T @ values
    return taken, values


@settings(max_examples=20, deadline=None)
@given(st.integers(2, 40), st.integers(2, 12), st.integers(1, 5), st.integers(0, 99), st.sampled_from([1, 7, 8192]))
def test_pursuit_is_that_of_books(k, d, s, seed, block):
    s = min(s, k, d - 1)  # beyond that nothing is left to choose by
    rows = unit(k, d, seed)
    states = np.random.default_rng(seed + 1).standard_normal((6, d))
    taken, values = pursue(torch.from_numpy(rows), torch.from_numpy(states), s, block)
    for t, x in enumerate(states):
        wanted, amounts = by_hand(rows, x, s)
        assert taken[t].tolist() == wanted
        assert values[t].numpy() == pytest.approx(amounts, rel=1e-6, abs=1e-9)


def test_what_the_coherence_promises_is_found():
    """s < (1 + 1/mu)/2: every set, with values of any size."""
    rows = np.concatenate([np.eye(64), hadamard(64) / 8])  # coherence 1/8
    assert guaranteed_active(1 / 8) == 4
    (found,) = simulate(torch.from_numpy(rows), [4], trials=100, values="uniform", readouts=("omp",))
    assert found.recovery == 1.0
    assert found.rms_active < 1e-5
    assert found.rms_idle == 0.0
    assert found.worst == 0.0


def test_sparse_decoding_finds_more_than_linear_readouts():
    active = [1, 4, 8, 12]
    found = simulate(torch.from_numpy(unit(400, 64, 3)), active, trials=100)
    share = {name: [one.recovery for one in found if one.readout == name] for name in READOUTS}
    assert share["omp"][0] == share["direct"][0] == 1.0
    assert share["omp"][2] > 0.5 > 0.1 > max(share["direct"][2], share["dual"][2])
    errors = [one for one in found if one.readout == "omp" and one.active == 12]
    assert errors[0].recovery < 1.0
    assert errors[0].worst > 0.0


def test_shares_and_errors_by_hand():
    """The figures of `omp` from the plain algorithm on the same draws."""
    rows = unit(30, 8, 5).astype(np.float32).astype(np.float64)
    (found,) = simulate(torch.from_numpy(rows), [3], trials=40, readouts=("omp",), seed=2)
    rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    rng = np.random.default_rng([2, 3])
    chosen = np.stack([rng.choice(30, size=3, replace=False, shuffle=False) for _ in range(40)])
    amounts = rng.choice([-1.0, 1.0], size=(40, 3))
    hits, on, off = 0, [], []
    for set_, values in zip(chosen, amounts, strict=True):
        taken, fitted = by_hand(rows, values @ rows[set_], 3)
        reading = np.zeros(30)
        reading[taken] = fitted
        hits += set(taken) == set(set_.tolist())
        on.append(reading[set_] - values)
        off.append(np.delete(reading, set_))
    assert 0 < hits < 40
    assert found.recovery == pytest.approx(hits / 40)
    assert found.rms_active == pytest.approx(np.sqrt(np.mean(np.square(on))), rel=1e-4)
    assert found.rms_idle == pytest.approx(np.sqrt(np.mean(np.square(off))), rel=1e-4)
    assert found.worst == pytest.approx(np.abs(off).max(), rel=1e-4)


@pytest.mark.parametrize(("k", "d", "s"), [(4, 3, 4), (6, 2, 6), (3, 8, 3), (2, 1, 1)])
def test_more_than_there_are_dimensions(k, d, s):
    (found,) = simulate(torch.from_numpy(unit(k, d, 1)), [s], trials=5, readouts=("omp",))
    assert np.isfinite([found.rms_active, found.rms_idle, found.worst]).all()
    assert found.recovery == 1.0 or s < k


def test_repeated_rows_do_no_harm():
    rows = unit(5, 6, 1)
    (found,) = simulate(torch.from_numpy(np.concatenate([rows, rows])), [3], trials=20, readouts=("omp",))
    assert np.isfinite([found.rms_active, found.rms_idle, found.worst]).all()


def test_cost_is_bounded():
    assert affordable(200, 8, 2000, 128) == 200
    few = affordable(200, 1000, 49152, 4096)
    assert few == 1
    assert affordable(200, 64, 49152, 576) * 2 * 64 * 49152 * 576 <= OPERATIONS


def test_states_are_decoded_in_parts(monkeypatch):
    rows, states = torch.from_numpy(unit(50, 20, 9)), torch.from_numpy(unit(11, 20, 1))
    whole = pursue(rows, states, 4)
    monkeypatch.setattr(pursuit, "_BASES", 3 * 4 * 20)
    for one, other in zip(whole, pursue(rows, states, 4), strict=True):
        assert one.shape == (11, 4)
        assert torch.allclose(one, other)
