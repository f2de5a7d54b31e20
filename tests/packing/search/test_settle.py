"""Linear programs take rows to the local optimum that they are near."""

from __future__ import annotations

import math

import numpy as np
import pytest

from repcap.packing.search.polish import polish
from repcap.packing.search.settle import MOST_ENTRIES, settle


def unit(rows):
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def largest(rows):
    return np.abs(rows @ rows.T - np.diag((rows * rows).sum(axis=1))).max()


@pytest.mark.parametrize("noise", [1e-3, 1e-2])
def test_disturbed_icosahedron_comes_back(noise):
    golden = (1 + math.sqrt(5)) / 2
    lines = np.array(
        [[0, 1, golden], [0, 1, -golden], [1, golden, 0], [1, -golden, 0], [golden, 0, 1], [-golden, 0, 1]]
    )
    given = unit(lines + noise * np.random.default_rng(0).normal(size=lines.shape))
    found = settle(given)
    assert largest(found) == pytest.approx(1 / math.sqrt(5), abs=1e-6)
    assert largest(given) > 1 / math.sqrt(5) + 1e-4
    assert polish(found).coherence == pytest.approx(1 / math.sqrt(5), abs=1e-15)


def test_a_local_optimum_cannot_be_improved_by_small_moves():
    rng = np.random.default_rng(3)
    found = settle(unit(rng.normal(size=(9, 3))))
    value = largest(found)
    assert np.allclose(np.linalg.norm(found, axis=1), 1.0)
    moved = [largest(unit(found + 1e-3 * rng.normal(size=(9, 3)))) for _ in range(200)]
    assert min(moved) > value


def test_never_worse_and_nothing_to_do():
    for seed in range(5):
        rows = unit(np.random.default_rng(seed).normal(size=(12, 4)))
        assert largest(settle(rows)) < largest(rows)
    for rows in (np.eye(4), np.ones((3, 1)), np.eye(2)[[0, 1, 0]]):
        assert largest(settle(rows)) <= largest(rows)
    large = unit(np.random.default_rng(0).normal(size=(MOST_ENTRIES, 2)))
    assert settle(large) is large
