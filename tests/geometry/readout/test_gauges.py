"""Tails in four gauges: isotropic, spiked and clustered rows with known d_alpha; SmolLM2's published table."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import stats

from repcap.geometry.pairs.count import count_pairs
from repcap.geometry.pairs.histogram import Wanted
from repcap.geometry.pairs.pair_sample import sample_pairs
from repcap.geometry.pairs.tail import ALPHAS, GAUGES
from repcap.geometry.pairs.tail_dimension import random_tail_epsilon, tail_dimension, tail_epsilon
from repcap.geometry.readout.gauges import changed, gauge_changes
from repcap.geometry.rows.reader import plain_reader
from repcap.matrix import TensorMatrix


def in_gauge(reader, gauge: str):
    return changed(reader.matrix, gauge_changes(reader, [gauge])[gauge])


def tails(rows: np.ndarray | torch.Tensor, gauge: str, alphas=ALPHAS) -> list[float]:
    reader = plain_reader(TensorMatrix(torch.as_tensor(rows)), "cpu")
    counted = count_pairs(in_gauge(reader, gauge), wanted=Wanted(0), device="cpu")
    return [tail_epsilon(counted, alpha) for alpha in alphas]


def by_hand(rows: np.ndarray, alphas) -> list[float]:
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return np.quantile(np.abs((unit @ unit.T)[np.triu_indices(len(unit), 1)]), 1 - np.asarray(alphas)).tolist()


def test_quantiles_in_each_gauge_by_hand():
    rows = np.random.default_rng(0).standard_normal((500, 12)) * np.linspace(1, 4, 12) + 0.8
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    values, vectors = np.linalg.eigh(unit.T @ unit)
    changed = {
        "stored": rows,
        "centred": rows - rows.mean(0),
        "top1": rows - np.outer(rows @ vectors[:, -1], vectors[:, -1]),
        "whitened": unit @ vectors / np.sqrt(values),
    }
    for gauge in GAUGES:
        assert tails(rows, gauge, (0.05, 1e-3)) == pytest.approx(by_hand(changed[gauge], (0.05, 1e-3)), abs=5e-4)


@pytest.mark.parametrize("dim", [8, 40])
def test_isotropic_rows_have_the_tail_dimension_d(dim):
    rows = np.random.default_rng(1).standard_normal((6000, dim))
    for gauge in ("stored", "whitened"):
        found = [tail_dimension(e, a) for e, a in zip(tails(rows, gauge), ALPHAS, strict=True)]
        assert found[:3] == pytest.approx([dim] * 3, rel=0.03)
        assert found[3] == pytest.approx(dim, rel=0.15)  # 18 pairs


def test_the_tail_of_random_directions_is_that_of_the_beta_law():
    for dim, alpha in ((3, 0.1), (576, 1e-6), (50.5, 1e-3)):
        epsilon = random_tail_epsilon(dim, alpha)
        assert stats.beta.sf((1 + epsilon) / 2, (dim - 1) / 2, (dim - 1) / 2) * 2 == pytest.approx(alpha, rel=1e-6)
        assert tail_dimension(epsilon, alpha) == pytest.approx(dim, rel=1e-6)
    assert [tail_dimension(1.0, 0.1), tail_dimension(0.0, 0.1)] == [1.0, 1e9]


def test_a_spike_goes_with_a_linear_map_and_clusters_stay():
    g = np.random.default_rng(2)
    spiked = g.standard_normal((4000, 30))
    spiked[:, 0] *= 8.0
    assert tail_dimension(tails(spiked, "stored")[0], ALPHAS[0]) < 8
    assert tail_dimension(tails(spiked, "whitened")[0], ALPHAS[0]) == pytest.approx(30, rel=0.05)
    # 400 clusters of 10 rows at cosine 1 / (1 + 0.25): a share 9/3999 of the pairs, so alpha = 1e-3 lies among them
    clustered = np.repeat(g.standard_normal((400, 30)), 10, axis=0) + 0.5 * g.standard_normal((4000, 30))
    for gauge in ("stored", "whitened"):
        bulk, tail = (tail_dimension(tails(clustered, gauge, (a,))[0], a) for a in (0.0455, 1e-3))
        assert tail < 0.5 * bulk
    assert tails(clustered, "stored", (9 / 3999 / 2,))[0] == pytest.approx(0.8, abs=0.03)


def test_a_row_without_a_direction_has_none_in_any_gauge():
    rows = torch.randn((50, 6), generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    rows[3] = 0.0
    reader = plain_reader(TensorMatrix(rows), "cpu")
    for gauge in GAUGES:
        assert count_pairs(in_gauge(reader, gauge), wanted=Wanted(0), device="cpu").pairs == 49 * 48 // 2


def test_values_of_smollm2(smollm2_rows):
    """Of all pairs; here from a million random ones, whose error is a few percent of the tail share."""
    reader = plain_reader(TensorMatrix(smollm2_rows), "cpu")
    changes = gauge_changes(reader, GAUGES)
    for gauge, epsilons, dims in (
        ("stored", (0.637, 0.749), (9.2, 15)),
        ("centred", (0.220, 0.466), (82, 46)),
        ("top1", (0.117, 0.258), (291, 158)),
        ("whitened", (0.082, 0.173), (591, 359)),
    ):
        counted = sample_pairs(changed(reader.matrix, changes[gauge]), 1_000_000, wanted=Wanted(0), seed=1)
        found = [tail_epsilon(counted, alpha) for alpha in ALPHAS[:2]]
        assert found == pytest.approx(epsilons, rel=0.02), gauge
        shares = zip(found, ALPHAS, strict=False)
        assert [tail_dimension(e, a) for e, a in shares] == pytest.approx(dims, rel=0.05), gauge
