"""Standard error, influence and spectrum where they are hard: rows that are nearly alike, few rows, few columns."""

from __future__ import annotations

import numpy as np
import pytest

import repcap


def near_copies(count: int, dim: int, noise: float, seed: int = 0) -> np.ndarray:
    r = np.random.default_rng(seed)
    return np.tile(r.standard_normal(dim), (count, 1)) + noise * r.standard_normal((count, dim))


def epsilon(u: np.ndarray, z: float) -> float:
    """mean + z std over all pairs, about the mean cosine: exact also where all are near 1."""
    # 1 - cos = |u_i - u_j|^2 / 2 keeps the digits.
    gap = 0.5 * ((u[:, None] - u[None]) ** 2).sum(2)[np.triu_indices(len(u), 1)]
    return float(1.0 - gap.mean() + z * gap.std())


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("count", "dim", "noise"), [(60, 3, 1e-3), (60, 20, 1e-4), (40, 8, 1e-5), (7, 4, 1e-3)])
def test_error_and_influence_of_rows_that_are_nearly_alike(dtype, count, dim, noise):
    rows, z = near_copies(count, dim, noise), 2.0
    u = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    whole = epsilon(u, z)
    change = np.array([whole - epsilon(np.delete(u, row, axis=0), z) for row in range(count)])
    se = np.sqrt((count - 1) / count * ((change - change.mean()) ** 2).sum())
    found = repcap.measure(rows, z=z, dtype=dtype, influence=3)
    assert found.epsilon_se == pytest.approx(se, rel=1e-3)
    order = np.argsort(-change)
    assert [row.index for row in found.influence.raises] == [row for row in order[:3] if change[row] > 0]
    for row in (*found.influence.raises, *found.influence.lowers):
        assert row.influence == pytest.approx(change[row.index], rel=1e-2, abs=1e-3 * np.abs(change).max())


def test_error_of_equal_rows_is_nothing():
    found = repcap.measure(near_copies(50, 8, 0.0), influence=5)
    assert found.epsilon == pytest.approx(1.0, abs=1e-7)
    assert found.epsilon_se == pytest.approx(0.0, abs=1e-7)


@pytest.mark.parametrize(("count", "dim"), [(2, 1), (2, 2), (4, 3), (3, 4), (9, 8), (8, 9), (10, 8), (50, 1), (40, 12)])
def test_as_many_eigenvalues_as_the_lesser_of_rows_and_columns(count, dim):
    rows = np.random.default_rng(count).standard_normal((count, dim))
    found = repcap.measure(rows, dtype="float64").spectrum.eigenvalues
    u = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    assert np.allclose(found, np.linalg.svd(u, compute_uv=False) ** 2, rtol=0, atol=1e-12)
    assert len(found) == min(count, dim)
