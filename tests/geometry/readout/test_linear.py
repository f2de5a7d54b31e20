"""Leverages, interference, false alarms: against brute force, theory and simulation, and on a real model."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from repcap.errors import VectorsError
from repcap.geometry.readout.alarms import AlarmCurve, alarm_curve, simulate_alarms
from repcap.geometry.readout.leverage import leverages, pseudo_inverse, welch_interference
from repcap.geometry.readout.linear import read_rows
from repcap.geometry.rows.reader import plain_reader
from repcap.matrix import TensorMatrix


def unit(n: int, d: int, seed: int = 0, shared: float = 0.0) -> np.ndarray:
    rows = np.random.default_rng(seed).standard_normal((n, d)) + shared
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def found(rows: np.ndarray, **options):
    reader = plain_reader(TensorMatrix(torch.from_numpy(rows)), "cpu")
    return read_rows(reader, **{"theta": 0.5, "delta": 1e-3, "active": (1, 2, 4, 8), **options})


def best_by_hand(rows: np.ndarray, i: int) -> float:
    """Least mean square on the other rows of a readout that reads 1 on row i: a constrained least squares problem."""
    others = np.delete(rows, i, axis=0)
    # minimise |others w|^2 with rows[i].w = 1: KKT system
    d = rows.shape[1]
    system = np.zeros((d + 1, d + 1))
    system[:d, :d], system[:d, d], system[d, :d] = others.T @ others, rows[i], rows[i]
    w = np.linalg.lstsq(system, np.r_[np.zeros(d), 1.0], rcond=None)[0][:d]
    return float(((others @ w) ** 2).mean())


@pytest.mark.parametrize(("n", "d", "shared"), [(60, 8, 0.0), (60, 8, 2.0), (12, 8, 0.0)])
def test_interference_is_the_least_that_any_linear_readout_has(n, d, shared):
    rows = unit(n, d, 1, shared)
    q = found(rows).leverages.interference
    assert [float(q[i]) for i in (0, 3, 7)] == pytest.approx([best_by_hand(rows, i) for i in (0, 3, 7)], rel=1e-9)


def test_interference_stays_under_a_linear_map_of_the_space():
    rows = unit(300, 12, 2, 1.0)
    A = np.random.default_rng(3).standard_normal((12, 12))

    def interference(vectors: np.ndarray) -> np.ndarray:
        x = torch.from_numpy(vectors)
        inverse, rank = pseudo_inverse(x.T @ x)
        assert rank == 12
        leverage = ((x @ inverse) * x).sum(1)
        return ((1 / leverage - 1) / (len(x) - 1)).numpy()

    assert interference(rows @ A) == pytest.approx(interference(rows), rel=1e-6)
    assert found(rows).leverages.interference.numpy() == pytest.approx(interference(rows), rel=1e-9)


def test_leverages_add_up_to_the_rank_and_dead_columns_do_no_harm():
    rows = np.concatenate([unit(200, 10), np.zeros((200, 3))], axis=1)
    result = found(rows)
    assert result.leverages.rank == 10
    assert float(result.leverages.leverage.sum()) == pytest.approx(10, rel=1e-9)
    assert result.best.effective_dim == pytest.approx(found(unit(200, 10)).best.effective_dim, rel=1e-9)


def test_independent_rows_are_read_exactly():
    result = found(np.eye(6))
    assert result.best.effective_dim is None
    assert result.best.most == 6
    with pytest.raises(VectorsError, match="a readout needs three"):
        found(np.eye(6)[:2])


def test_a_shared_direction_is_undone_by_the_best_readout():
    plain, shifted = found(unit(4000, 32)), found(unit(4000, 32, shared=1.5))
    assert plain.direct.effective_dim == pytest.approx(32, rel=0.01)
    assert plain.best.effective_dim == pytest.approx(1 / plain.welch, rel=0.01)
    assert shifted.direct.effective_dim < 3
    assert shifted.best.effective_dim > 28
    assert welch_interference(4000, 32) == pytest.approx(plain.welch)
    assert welch_interference(20, 32) == 0.0


@pytest.mark.parametrize("shared", [0.0, 0.7])
def test_false_alarms_are_those_of_random_draws(shared):
    """Within 10 % for s = 1, 2, 4, 8, for rows with clusters of near copies, whose weights have a tail."""
    rows = unit(1500, 48, 5, shared)
    rows[1000:] = rows[:500] + 0.12 * unit(500, 48, 6)
    result = found(rows, draws=4000, theta=0.4)
    for side in (result.direct, result.best):
        for (active, rate), drawn in zip(side.alarms, side.simulated, strict=True):
            assert drawn.active == active
            assert rate == pytest.approx(drawn.rate, rel=0.1)
            assert drawn.rms == pytest.approx((active * side.interference) ** 0.5, rel=0.02 if not shared else 0.2)


def test_alarms_by_hand_and_s_max():
    """One active row: the share of weights beyond theta. Two: over all pairs of weights and signs."""
    rows = unit(40, 6, 7)
    reader = plain_reader(TensorMatrix(torch.from_numpy(rows)), "cpu")
    curve = alarm_curve(reader, torch.from_numpy(rows).float(), torch.arange(40), 0.37)
    cosines = [np.delete(rows @ rows[i], i) for i in range(40)]
    assert curve.rate(1) == pytest.approx(np.mean([(abs(c) > 0.37).mean() for c in cosines]), abs=2e-3)
    sums = [np.abs(c[:, None] + sign * c[None, :]) for c in cosines for sign in (1, -1)]
    assert curve.rate(2) == pytest.approx(np.mean([(s > 0.37).mean() for s in sums]), abs=2e-3)
    for delta in (0.05, 0.3, 0.5):
        most = curve.most(delta)
        assert (curve.rate(most) if most else 0.0) <= delta < curve.rate(most + 1)
    assert AlarmCurve(np.ones((3, 4)), np.zeros(4), 9).most(0.5) == 9


def test_states_and_readings_by_hand():
    rows = unit(30, 5, 8, 0.5)
    tensor = torch.from_numpy(rows)
    inverse, _ = pseudo_inverse(tensor.T @ tensor)
    reader = plain_reader(TensorMatrix(tensor), "cpu")
    drawn = simulate_alarms(reader, inverse, torch.arange(30), 3, 50, 0.4, seed=1)
    rng = np.random.default_rng([1, 3])
    chosen = [rng.choice(30, 3, replace=False) for _ in range(50)]
    signs = rng.choice([-1.0, 1.0], (50, 3))
    weights = np.linalg.pinv(rows).T / (np.linalg.pinv(rows).T * rows).sum(1, keepdims=True)
    readings = np.abs([weights @ (sign @ rows[set_]) for set_, sign in zip(chosen, signs, strict=True)])
    idle = [np.delete(reading, set_) for reading, set_ in zip(readings, chosen, strict=True)]
    assert drawn.rate == pytest.approx(np.mean([part > 0.4 for part in idle]), abs=1e-3)
    assert drawn.rms == pytest.approx(np.sqrt(np.mean(np.square(idle))), rel=1e-5)
    found_all = [reading[set_].min() > part.max() for reading, set_, part in zip(readings, chosen, idle, strict=True)]
    assert drawn.found == pytest.approx(np.mean(found_all))


def test_leverages_are_of_the_rows_that_have_a_direction():
    rows = torch.from_numpy(unit(50, 5))
    rows[7] = 0.0
    reader = plain_reader(TensorMatrix(rows), "cpu").replaced(dtype=torch.float64)
    kept = torch.cat([rows[:7], rows[8:]])
    inverse, rank = pseudo_inverse(kept.T @ kept)
    result = leverages(reader, inverse, rank)
    assert 7 not in result.indices.tolist()
    assert len(result.leverage) == 49


@pytest.mark.slow
def test_values_of_smollm2(smollm2_rows):
    result = read_rows(plain_reader(TensorMatrix(smollm2_rows)), theta=0.5, delta=1e-3, active=(1, 4, 8))
    assert 1 / result.direct.interference == pytest.approx(4.6, abs=0.05)
    assert result.best.effective_dim == pytest.approx(531, abs=0.5)
    assert result.best.median_dim == pytest.approx(569, abs=0.5)
    assert 1 / result.welch == pytest.approx(583, abs=0.5)
    assert result.best.most in (7, 8, 9)
    rates = dict(result.best.alarms)
    rms = [(s * result.best.interference) ** 0.5 for s in (1, 4, 8)]
    assert rms == pytest.approx([0.0434, 0.0868, 0.1227], abs=6e-5)
    assert rates[8] == pytest.approx(8.5e-4, rel=0.1)
