"""`repcap readout`: record, screen, figure, and what it refuses."""

from __future__ import annotations

import json

import numpy as np
import pytest

import repcap
from repcap.errors import OptionError


@pytest.fixture
def rows() -> np.ndarray:
    return np.random.default_rng(0).standard_normal((400, 16)).astype(np.float32) + 0.5


def test_record_of_rows_in_memory(rows):
    found = repcap.readout(rows, active=(1, 2), simulate=20, top=3)
    record = json.loads(json.dumps(found.to_dict()))
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    weights = np.linalg.pinv(unit.astype(np.float64)).T
    weights /= (weights * unit).sum(1, keepdims=True)
    q = ((weights @ unit.T) ** 2).sum(1) - 1
    assert record["effective_dim"] == pytest.approx(399 / q.mean(), rel=1e-5)
    assert [row["index"] for row in record["worst"]] == np.argsort(-q)[:3].tolist()
    assert [row["index"] for row in record["best_read"]] == np.argsort(q)[:3].tolist()
    assert record["welch_dim"] == pytest.approx(16 * 399 / 384)
    assert record["s_max"] == found.best.most
    assert [point["active"] for point in record["best"]["alarms"]] == [1, 2]
    assert record["best"]["simulated"][0]["draws"] == 20
    assert record["options"]["theta"] == 0.5
    assert "rows" in record["reading"]


def test_screen_and_figure(repcap, rows, tmp_path):
    np.save(tmp_path / "rows.npy", rows)
    told = repcap("readout", tmp_path / "rows.npy", "--active", "1,3", "--simulate", 5, "--plot", tmp_path / "a.png")
    assert told.code == 0
    for words in ("effective dimension", "best linear", "simulated", "read worst", "s_max at 0.001 above 0.5"):
        assert words in told.out
    assert (tmp_path / "a.png").stat().st_size > 1000


def test_seed_and_leaving_out(rows):
    again = [repcap.readout(rows, seed=1, simulate=5, active=(2,)).best.simulated for _ in range(2)]
    assert again[0] == again[1]
    assert repcap.readout(rows, exclude_ids=(0, 1, 2), active=(2,)).count == 397


@pytest.mark.parametrize("options", [{"theta": 0.0}, {"theta": 1.5}, {"delta": 0.0}, {"delta": 1.0}, {"active": (0,)}])
def test_what_means_nothing_is_refused(rows, options):
    with pytest.raises(OptionError, match=next(iter(options))):
        repcap.readout(rows, **options)
