"""The error of a difference of epsilons, against leaving each row out of both."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from repcap.errors import VectorsError
from repcap.geometry.epsilon.paired import epsilon_difference
from repcap.matrix import TensorMatrix


def epsilon(rows: np.ndarray, z: float) -> float:
    units = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    cosines = (units @ units.T)[~np.eye(len(units), dtype=bool)]
    return float(cosines.mean() + z * cosines.std())


def brute(a: np.ndarray, b: np.ndarray, z: float) -> tuple[float, float]:
    n = len(a)
    without = np.array([epsilon(np.delete(b, i, 0), z) - epsilon(np.delete(a, i, 0), z) for i in range(n)])
    return epsilon(b, z) - epsilon(a, z), float(np.sqrt((n - 1) / n * ((without - without.mean()) ** 2).sum()))


def pair(n: int, d: int, noise: float, wide: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(n)
    a = rng.standard_normal((n, d)) + 0.4
    b = a + noise * rng.standard_normal((n, d)) if wide is None else rng.standard_normal((n, wide))
    return a, b


@pytest.mark.parametrize(("n", "d", "noise", "wide"), [(60, 8, 0.3, None), (12, 24, 0.1, None), (50, 6, 0.0, 9)])
def test_it_is_the_jackknife_over_rows_of_both(n, d, noise, wide):
    a, b = pair(n, d, noise, wide)
    found = epsilon_difference(TensorMatrix(torch.tensor(a)), TensorMatrix(torch.tensor(b)), 2.0, device="cpu")
    difference, se = brute(a, b, 2.0)
    assert found.epsilon == pytest.approx(difference, abs=1e-6)
    assert found.se == pytest.approx(se, rel=1e-3)
    assert found.rows == n


def test_rows_without_a_direction_on_one_side_count_on_neither():
    a, b = pair(40, 6, 0.2)
    a[3], b[7] = 0.0, np.nan
    found = epsilon_difference(TensorMatrix(torch.tensor(a)), TensorMatrix(torch.tensor(b)), 2.0, device="cpu")
    left = np.delete(np.arange(40), [3, 7])
    assert found.rows == 38
    assert (found.epsilon, found.se) == (
        pytest.approx(brute(a[left], b[left], 2.0)[0], abs=1e-6),
        pytest.approx(brute(a[left], b[left], 2.0)[1], rel=1e-3),
    )


def test_what_both_share_cancels():
    a, _ = pair(400, 16, 0.0)
    b = a + 0.002 * np.random.default_rng(1).standard_normal(a.shape)
    found = epsilon_difference(TensorMatrix(torch.tensor(a)), TensorMatrix(torch.tensor(b)), 2.0, device="cpu")
    alone = brute(a[:120], np.random.default_rng(2).standard_normal((120, 16)), 2.0)[1]
    assert found.se < alone / 50


def test_two_rows_have_no_error():
    two = TensorMatrix(torch.eye(2))
    with pytest.raises(VectorsError, match="2 corresponding rows"):
        epsilon_difference(two, two, 2.0, device="cpu")
