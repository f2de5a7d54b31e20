"""epsilon of the first ids, against brute force; and of a real vocabulary."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import repcap
from demo import SMOLLM2, needs_demo
from repcap.geometry.epsilon.drift import SHARES, drift
from repcap.geometry.rows.reader import plain_reader
from repcap.matrix import TensorMatrix


def brute(rows: np.ndarray, z: float) -> float:
    units = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    cosines = (units @ units.T)[~np.eye(len(units), dtype=bool)]
    return float(cosines.mean() + z * cosines.std())


def test_each_share_is_measured_alone():
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((1200, 12)) + np.linspace(0.0, 2.0, 1200)[:, None]
    found = drift(plain_reader(TensorMatrix(torch.tensor(rows)), "cpu"), torch.arange(1200), 2.0)
    assert [ids for ids, _ in found] == [round(share * 1200) for share in SHARES]
    for ids, epsilon in found:
        assert epsilon == pytest.approx(brute(rows[:ids], 2.0), abs=2e-6)


def test_few_rows_say_nothing_and_the_last_share_is_all():
    assert repcap.measure(np.random.default_rng(0).standard_normal((500, 8))).drift == ()
    found = repcap.measure(np.random.default_rng(0).standard_normal((2000, 8)))
    assert found.drift[-1] == (2000, pytest.approx(found.epsilon, abs=1e-6))
    assert found.to_dict()["drift"][0]["ids"] == 42


@needs_demo
def test_ids_of_smollm2_are_no_random_sample():
    found = [round(epsilon, 3) for _, epsilon in repcap.measure(SMOLLM2).drift]
    assert found == pytest.approx([0.474, 0.516, 0.581, 0.658, 0.702, 0.729], abs=1.1e-3)
