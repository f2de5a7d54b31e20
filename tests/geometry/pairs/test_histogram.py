"""Moments, quantiles and shares from fine bins against the values themselves."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from repcap.errors import InputError
from repcap.geometry.pairs.histogram import FINE_BINS, Extreme, PairCounts, Wanted, quanta

WIDTH = 2.0 / FINE_BINS


def counted(values, wanted=Wanted()):
    values = np.asarray(values)
    index = np.minimum(((values + 1.0) / WIDTH).astype(int), FINE_BINS - 1)
    away = values - wanted.origin * WIDTH
    powers = tuple(quanta(float((away**power).sum())) for power in (1, 2, 3, 4))
    return PairCounts(np.bincount(index, minlength=FINE_BINS).astype(np.int64), wanted=wanted, powers=powers)


@settings(max_examples=30)
@given(seed=st.integers(0, 999), a=st.floats(0.5, 20), b=st.floats(0.5, 20))
def test_moments_against_the_values(seed, a, b):
    values = np.random.default_rng(seed).beta(a, b, 500) * 2 - 1
    for centre in (0.0, 0.3, values.mean()):
        mean, std, skew, kurtosis = counted(values, Wanted(centre=centre)).moments()
        assert mean == pytest.approx(values.mean(), abs=1e-12)
        assert std == pytest.approx(values.std(), abs=1e-12)
        assert skew == pytest.approx(stats.skew(values), abs=1e-9)
        assert kurtosis == pytest.approx(stats.kurtosis(values), abs=1e-9)


@given(values=st.lists(st.floats(-1e6, 1e6), max_size=20), seed=st.integers(0, 99))
def test_sums_of_powers_add_up_alike_in_any_order(values, seed):
    mixed = np.random.default_rng(seed).permutation(values)
    assert sum(map(quanta, values)) == sum(quanta(float(value)) for value in mixed)
    assert sum(map(quanta, values)) / 2**200 == pytest.approx(sum(values), abs=1e-6)


@settings(max_examples=30)
@given(seed=st.integers(0, 999), share=st.floats(0, 1))
def test_quantile_and_its_inverse(seed, share):
    values = np.random.default_rng(seed).uniform(-0.5, 0.9, 2000)
    held = counted(values)
    got = held.quantile(share)
    assert got == pytest.approx(np.quantile(values, share, method="inverted_cdf"), abs=WIDTH + 1e-12)
    assert held.share_below(got) == pytest.approx(share, abs=1e-9)


def test_paper_histogram_sums_the_fine_one():
    values = np.random.default_rng(0).normal(0.1, 0.2, 10_000).clip(-1, 1)
    edges, counts = counted(values).histogram()
    expected, expected_edges = np.histogram(values, bins=300, range=(-1, 1))
    assert edges == pytest.approx(expected_edges)
    assert counts.tolist() == expected.tolist()


def test_degenerate_counts():
    empty = PairCounts.empty()
    assert all(np.isnan(empty.moments()))
    assert np.isnan(empty.quantile(0.5))
    assert np.isnan(empty.share_below(0.0))
    one_value = counted([1.0] * 7)
    mean, std, skew, kurtosis = one_value.moments()
    assert mean == 1.0
    assert std == 0.0
    assert np.isnan(skew)
    assert np.isnan(kurtosis)
    assert one_value.quantile(0.0) == pytest.approx(1.0, abs=WIDTH)
    assert one_value.quantile(1.0) == pytest.approx(1.0)


@pytest.mark.parametrize("bins", [0, 7, -300])
def test_bins_must_divide(bins):
    with pytest.raises(InputError, match="bins must divide 30000"):
        PairCounts.empty().histogram(bins)


def test_a_share_outside_0_to_1_is_refused():
    with pytest.raises(InputError, match="share from 0 to 1, got 5"):
        PairCounts.empty().quantile(5)


def test_counts_of_different_wishes_do_not_merge():
    with pytest.raises(InputError, match=r"keep=3.*keep=4"):
        PairCounts.empty(Wanted(3)) + PairCounts.empty(Wanted(4))


def test_nothing_is_beyond_the_known_extremes():
    """Also where they share a bin with all the rest."""
    ends = (Extreme(0.50003, 0, 1),), (Extreme(0.50001, 0, 2),)
    held = PairCounts(counted([0.50001, 0.50002, 0.50003]).counts, *ends)
    assert held.share_below(0.50003) == held.share_below(0.6) == 1.0
    assert held.share_below(0.50001) == held.share_below(0.4) == 0.0
    assert 0.0 < held.share_below(0.50002) < 1.0
