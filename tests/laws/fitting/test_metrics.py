"""Measures of fit against hand-worked values and against scikit-learn-free definitions."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from repcap.errors import InputError
from repcap.laws.fitting import metrics

OBSERVED, PREDICTED = [1.0, 2.0, 4.0], [1.5, 2.0, 3.0]  # errors 0.5, 0, -1; mean 7/3


def test_by_hand():
    # SS_residual = 1.25; SS_total = 1 + 4 + 16 - 49/3 = 14/3
    assert metrics.r2(OBSERVED, PREDICTED) == pytest.approx(1 - 1.25 * 3 / 14, rel=1e-15)
    assert metrics.rmse(OBSERVED, PREDICTED) == pytest.approx(math.sqrt(1.25 / 3), rel=1e-15)
    assert metrics.nrmse(OBSERVED, PREDICTED) == pytest.approx(math.sqrt(1.25 / 3) / 3, rel=1e-15)
    assert metrics.mape(OBSERVED, PREDICTED) == pytest.approx((0.5 + 0.0 + 0.25) / 3, rel=1e-15)
    assert metrics.max_error(OBSERVED, PREDICTED) == 1.0
    assert metrics.aic(OBSERVED, PREDICTED, 1) == pytest.approx(3 * math.log(1.25 / 3) + 4, rel=1e-15)


def test_mape_leaves_out_zeros():
    assert metrics.mape([0.0, 2.0], [1.0, 3.0]) == 0.5
    assert math.isnan(metrics.mape([0.0], [1.0]))


def test_constant_observations_have_no_r2_or_range():
    assert math.isnan(metrics.r2([2.0, 2.0], [1.0, 3.0]))
    assert math.isnan(metrics.nrmse([2.0, 2.0], [1.0, 3.0]))


def test_aic_of_an_exact_fit_and_of_one_more_parameter():
    assert metrics.aic(OBSERVED, OBSERVED, 1) == -math.inf
    more = metrics.aic(OBSERVED, PREDICTED, 2) - metrics.aic(OBSERVED, PREDICTED, 1)
    assert more == pytest.approx(2.0)


@pytest.mark.parametrize(("observed", "predicted"), [([], []), ([1.0], [1.0, 2.0]), ([[1.0]], [[1.0]])])
def test_unusable_pairs(observed, predicted):
    with pytest.raises(InputError):
        metrics.Metrics.of(observed, predicted)


@given(
    st.lists(st.tuples(st.floats(0.01, 1.0), st.floats(0.0, 1.0)), min_size=3, max_size=30),
    st.floats(0.01, 100.0),
)
def test_scaling_changes_only_what_has_a_unit(pairs, factor):
    observed, predicted = map(np.array, zip(*pairs, strict=True))
    if np.ptp(observed) < 1e-6:
        return
    before, after = metrics.Metrics.of(observed, predicted), metrics.Metrics.of(observed * factor, predicted * factor)
    assert after.rmse == pytest.approx(before.rmse * factor, rel=1e-9)
    assert after.max_error == pytest.approx(before.max_error * factor, rel=1e-9)
    for name in ("r2", "nrmse", "mape"):
        assert getattr(after, name) == pytest.approx(getattr(before, name), rel=1e-6, abs=1e-9)


def test_to_dict_has_every_measure():
    assert set(metrics.Metrics.of(OBSERVED, PREDICTED).to_dict()) == {"n", "r2", "rmse", "nrmse", "mape", "max_error"}
