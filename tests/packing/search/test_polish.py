"""Gauss-Newton on the active set, from disturbed optima."""

from __future__ import annotations

import math

import numpy as np
import pytest

from repcap.constructions.families.sporadic import BUILT
from repcap.packing.search.polish import polish


@pytest.mark.parametrize(("k", "d"), [(6, 3), (12, 4), (16, 6), (28, 7), (36, 6), (36, 15), (63, 7), (120, 8)])
def test_disturbed_optimum_comes_back(k, d):
    known = BUILT[k, d]
    noise = np.random.default_rng(0).normal(size=(k, d))
    result = polish(known.vectors() / np.linalg.norm(known.vectors(), axis=1, keepdims=True) + 1e-4 * noise)
    assert result.coherence == pytest.approx(known.coherence, abs=1e-12)
    assert result.active > 0
    assert np.allclose(np.linalg.norm(result.rows, axis=1), 1.0)


def test_five_lines_in_the_plane():
    angles = np.pi * np.arange(5) / 5 + np.random.default_rng(1).normal(size=5) * 1e-3
    result = polish(np.stack([np.cos(angles), np.sin(angles)], axis=1))
    assert result.coherence == pytest.approx(math.cos(math.pi / 5), abs=1e-12)


def test_never_worse():
    for seed in range(5):
        rows = np.random.default_rng(seed).normal(size=(20, 5))
        unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        before = np.abs(unit @ unit.T - np.eye(20)).max()
        result = polish(rows)
        cosines = np.abs(result.rows @ result.rows.T - np.eye(20))
        assert result.coherence <= before + 1e-15
        assert cosines.max() == pytest.approx(result.coherence, abs=1e-12)


@pytest.mark.parametrize("rows", [np.eye(4), np.ones((3, 2)), np.ones((2, 1))])
def test_nothing_to_gain(rows):
    result = polish(rows)
    assert result.active == 0
