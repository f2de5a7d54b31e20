"""Closed forms against leaving rows out one by one."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from repcap.geometry.epsilon.jackknife import leave_one_out, row_terms, standard_error
from repcap.geometry.epsilon.moments import Moments
from repcap.geometry.measurement.measuring import MeasureOptions, measure_matrix
from repcap.geometry.rows.reader import RowReader
from repcap.matrix import TensorMatrix


def rows_of(n: int, d: int, seed: int) -> torch.Tensor:
    g = torch.Generator().manual_seed(seed)
    x = torch.randn((n, d), generator=g, dtype=torch.float64)
    return x + torch.randn((1, d), generator=g, dtype=torch.float64)


def reader_of(rows: torch.Tensor, dtype: torch.dtype = torch.float64, block: int = 13) -> RowReader:
    return RowReader(TensorMatrix(rows), torch.arange(len(rows)), torch.device("cpu"), dtype, block)


def unit(rows: torch.Tensor) -> torch.Tensor:
    return rows / rows.norm(dim=1, keepdim=True)


@settings(max_examples=25)
@given(n=st.integers(3, 30), d=st.integers(1, 12), seed=st.integers(0, 10**6), z=st.sampled_from([0.0, 2.0, 3.0]))
def test_closed_form_is_leaving_one_out(n, d, seed, z, brute):
    rows = rows_of(n, d, seed)
    moments = Moments.of(unit(rows))
    indices, a, b = row_terms(reader_of(rows), moments)
    assert indices.tolist() == list(range(n))
    S, F = float(moments.s @ moments.s), float(moments.G.flatten() @ moments.G.flatten())
    without = leave_one_out(n, S, F, a, b, z)
    for row in range(n):
        rest = brute(torch.cat([rows[:row], rows[row + 1 :]]))
        # The square root of a difference near 0 keeps half of the digits.
        tolerance = 1e-10 if rest.std > 1e-4 else 1e-6
        assert float(without[row]) == pytest.approx(rest.epsilon(z), abs=tolerance)
    assert standard_error(without, n) == pytest.approx(
        math.sqrt((n - 1) / n * sum((float(value) - float(without.mean())) ** 2 for value in without)), abs=1e-12
    )


@pytest.mark.parametrize("d", [1, 60, 130, 700])
def test_second_pass_uses_half_of_G_and_loses_nothing(d):
    rows = rows_of(50, d, seed=d)
    u = unit(rows)
    moments = Moments.of(u)
    for dtype, tolerance in ((torch.float64, 1e-11), (torch.float32, 1e-4)):
        _, a, b = row_terms(reader_of(rows, dtype), moments)
        torch.testing.assert_close(a, u @ u.sum(0), rtol=0, atol=tolerance)
        torch.testing.assert_close(b, ((u @ u.T) ** 2).sum(1), rtol=0, atol=tolerance)


def test_few_and_many_rows_have_the_same_error_and_influence(brute):
    """n = 40 in 50 dimensions goes by the cosines, in 20 dimensions by the second pass: both against brute force."""
    for d in (50, 20):
        rows = rows_of(40, d, seed=d)
        found = measure_matrix(TensorMatrix(rows), MeasureOptions(device="cpu", dtype="float64", influence=40))
        whole = brute(rows).epsilon()
        change = [whole - brute(torch.cat([rows[:row], rows[row + 1 :]])).epsilon() for row in range(40)]
        mean = sum(change) / 40
        assert found.epsilon_se == pytest.approx(math.sqrt(39 / 40 * sum((c - mean) ** 2 for c in change)), rel=1e-9)
        order = sorted(range(40), key=lambda row: -change[row])
        raises = [row for row in order if change[row] > 0]
        assert [row.index for row in found.influence.raises] == raises
        assert [row.index for row in found.influence.lowers] == [row for row in order[::-1] if change[row] < 0]
        for row in (*found.influence.raises, *found.influence.lowers):
            assert row.influence == pytest.approx(change[row.index], abs=1e-11)


def test_standard_error_predicts_the_spread_over_samples():
    """400 samples of 80 rows: the jackknife of one sample against the deviation over all samples."""
    g = torch.Generator().manual_seed(1)
    values, errors = [], []
    for _ in range(400):
        rows = torch.randn((80, 6), generator=g, dtype=torch.float64) + 0.4
        found = measure_matrix(TensorMatrix(rows), MeasureOptions(device="cpu", dtype="float64"))
        values.append(found.epsilon)
        errors.append(found.epsilon_se)
    spread = torch.tensor(values).std().item()
    assert sum(errors) / len(errors) == pytest.approx(spread, rel=0.15)


def test_error_from_some_rows_agrees_with_that_from_all():
    without = torch.randn(20_000, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    part = without[torch.randperm(20_000, generator=torch.Generator().manual_seed(3))[:4000]]
    assert standard_error(part, 20_000) == pytest.approx(standard_error(without, 20_000), rel=0.05)


def test_two_rows_have_no_error():
    assert measure_matrix(TensorMatrix(rows_of(2, 5, seed=1)), MeasureOptions(device="cpu")).epsilon_se is None
    assert math.isnan(standard_error(torch.tensor([1.0]), 10))
