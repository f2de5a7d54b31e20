"""Removing a mean or directions against doing it to the whole matrix with numpy."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from repcap.errors import VectorsError
from repcap.geometry.epsilon.centre import subtract
from repcap.geometry.measurement.measuring import MeasureOptions, measure_matrix
from repcap.matrix import TensorMatrix


def offset_rows(n: int, d: int, seed: int) -> torch.Tensor:
    g = torch.Generator().manual_seed(seed)
    lengths = torch.exp(torch.randn((n, 1), generator=g, dtype=torch.float64))
    return lengths * (torch.randn((n, d), generator=g, dtype=torch.float64) + 2 * torch.randn((1, d), generator=g))


def without_top(x: np.ndarray, m: int) -> np.ndarray:
    u = x / np.linalg.norm(x, axis=1, keepdims=True)
    directions = np.linalg.svd(u, full_matrices=False)[2][:m]
    return x - x @ directions.T @ directions


def variants(rows: torch.Tensor, **options) -> dict[str, object]:
    found = measure_matrix(TensorMatrix(rows), MeasureOptions(device="cpu", **options))
    return {spread.rows: spread for spread in found.variants}


@settings(max_examples=25)
@given(n=st.integers(8, 90), d=st.integers(3, 30), m=st.integers(1, 2), seed=st.integers(0, 10**6))
def test_each_removal_is_that_of_the_whole_matrix(n, d, m, seed, brute):
    rows = offset_rows(n, d, seed)
    x = rows.numpy()
    centred = x - x.mean(axis=0)
    want = {
        "centred": centred,
        f"top {m}": without_top(x, m),
        f"centred, top {m}": without_top(centred, m),
    }
    found = variants(rows, centre=True, remove_top=m, dtype="float64", block_rows=17)
    for label, changed in want.items():
        truth = brute(torch.from_numpy(changed))
        assert found[label].mean == pytest.approx(truth.mean, abs=1e-9)
        assert found[label].std == pytest.approx(truth.std, abs=1e-9)


def test_float32_is_near_enough(brute):
    rows = offset_rows(2000, 40, seed=1).float()
    found = variants(rows, centre=True, remove_top=3)
    x = rows.double().numpy()
    assert found["centred"].epsilon == pytest.approx(brute(torch.from_numpy(x - x.mean(0))).epsilon(), abs=1e-6)
    assert found["top 3"].epsilon == pytest.approx(brute(torch.from_numpy(without_top(x, 3))).epsilon(), abs=1e-6)


def test_the_mean_is_that_of_the_rows_that_have_a_direction(brute):
    rows = offset_rows(60, 8, seed=2)
    rows[5], rows[17] = math.nan, 0.0
    keep = torch.ones(60, dtype=torch.bool)
    keep[[5, 17]] = False
    left = rows[keep]
    found = variants(rows, centre=True, dtype="float64")["centred"]
    assert found.count == 58
    assert found.epsilon == pytest.approx(brute(left - left.mean(0)).epsilon(), abs=1e-9)


def test_a_row_that_is_the_mean_has_nothing_left():
    rows = torch.tensor([[1.0, 0.0], [3.0, 0.0], [2.0, 1.0], [2.0, -1.0], [2.0, 0.0]])
    found = variants(rows, centre=True)["centred"]
    assert (found.count, found.dropped) == (4, 1)
    assert found.mean == pytest.approx(-1 / 3, abs=1e-12)  # two opposite pairs, four right angles


def test_equal_rows_have_nothing_left_and_say_so():
    found = measure_matrix(TensorMatrix(torch.ones((40, 16)) * 3), MeasureOptions(device="cpu", centre=True))
    assert "centred" not in {spread.rows for spread in found.variants}
    assert any("without their mean fewer than two rows are left" in note for note in found.notes)
    assert "without it nothing is left" in found.common


def test_sentence_only_for_class_high():
    g = torch.Generator().manual_seed(0)
    noise = torch.randn((600, 500), generator=g)
    assert measure_matrix(TensorMatrix(noise), MeasureOptions(device="cpu")).common is None
    shifted = measure_matrix(TensorMatrix(noise + 1.0), MeasureOptions(device="cpu"))
    assert shifted.class_name == "high"
    assert shifted.common.startswith("One common direction accounts for all of the crowding")
    planes = torch.eye(500)[torch.arange(600) % 4] * 20  # four common directions
    several = measure_matrix(TensorMatrix(noise + planes), MeasureOptions(device="cpu"))
    assert several.common.startswith("One common direction accounts for a part of the crowding")


def test_dear_extras_come_from_a_sample_and_say_so(monkeypatch, brute):
    from repcap.geometry.measurement import extras

    monkeypatch.setattr(extras, "EXTRA_WORK", 1.0)
    monkeypatch.setattr(extras, "EXTRA_ROWS", 400)
    rows = offset_rows(3000, 20, seed=3)
    found = measure_matrix(TensorMatrix(rows), MeasureOptions(device="cpu"))
    by_label = {spread.rows: spread for spread in found.variants}
    assert found.se_rows == by_label["centred"].count == by_label["top 1"].count == 400
    assert by_label["centred"].sampled
    assert by_label["top 1"].sampled
    exact = measure_matrix(TensorMatrix(rows), MeasureOptions(device="cpu", influence=1, centre=True))
    assert exact.se_rows == 3000
    assert found.epsilon_se == pytest.approx(exact.epsilon_se, rel=0.15)
    full = next(spread for spread in exact.variants if spread.rows == "centred")
    assert (full.count, full.sampled) == (3000, False)
    assert full.epsilon == pytest.approx(brute(rows - rows.mean(0)).epsilon(), abs=1e-6)
    assert by_label["centred"].epsilon == pytest.approx(full.epsilon, rel=0.1)


def test_a_mean_that_overflows_is_refused():
    with pytest.raises(VectorsError, match="the mean of the rows overflows float64"):
        subtract(torch.tensor([1.0, math.inf], dtype=torch.float64))
