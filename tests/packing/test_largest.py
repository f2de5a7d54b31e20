"""`pack_max` claims no more than is measured or proven, and `verify` sets vectors against the bounds."""

from __future__ import annotations

import math

import pytest
import torch

from repcap.constructions.build import named_lines
from repcap.errors import InputError, VectorsError
from repcap.packing import pack_max, verify
from repcap.packing.coherence import coherence


@pytest.mark.parametrize(
    ("d", "eps", "k"), [(8, 0.5, 120), (7, 1 / 3, 28), (64, 0.125, 2112), (2, 0.72, 4), (5, 0.01, 5), (1, 0.3, 1)]
)
def test_proven_optima_need_no_search(d, eps, k):
    result = pack_max(d, eps, seconds=5)
    assert result.k == k
    assert math.log10(k) == pytest.approx(result.upper_log10_k, abs=0.31 if d == 5 else 1e-6)


def test_search_goes_beyond_the_constructions():
    result = pack_max(10, 0.45, seconds=8, steps=150)
    without = pack_max(10, 0.45, search=False)
    assert without.trials == ()
    assert result.k > without.k
    assert result.evidence == "measured over all pairs"
    assert result.matrix is not None
    assert result.matrix.count == result.k
    assert coherence(result.matrix).value <= 0.45 + 1e-9
    assert math.log10(result.k) <= result.upper_log10_k
    assert any(trial.reached for trial in result.trials)


def test_astronomic_constructions_are_proven_not_measured():
    result = pack_max(4096, 0.0645, search=False)
    assert result.k == 2**45 + 4096
    assert result.evidence == "proven"
    record = result.to_dict()
    assert "matrix" not in record
    assert record["known_log10_k"] >= math.log10(record["k"]) - 1e-9


@pytest.mark.parametrize(("d", "eps", "seconds"), [(0, 0.5, 1), (4, 0.0, 1), (4, 1.0, 1), (4, 0.5, 0)])
def test_bad_arguments(d, eps, seconds):
    with pytest.raises(InputError):
        pack_max(d, eps, seconds=seconds)


def test_verification_of_an_optimal_set():
    result = verify(named_lines("kerdock", 16))
    assert (result.k, result.d) == (144, 16)
    assert result.coherence == pytest.approx(0.25, abs=1e-12)
    assert result.lower_bounds["Levenshtein"] == pytest.approx(0.25, rel=1e-6)
    assert result.lower_bounds["orthoplex"] == 0.25
    assert result.lower_bounds["Welch, order 1"] == pytest.approx(math.sqrt(128 / (16 * 143)), rel=1e-12)
    assert result.ratio_to_bound == pytest.approx(1.0, abs=1e-6)
    assert result.explicit == pytest.approx(0.25)


def test_no_bound_is_above_what_random_vectors_have():
    result = verify(torch.randn(60, 9, generator=torch.Generator().manual_seed(0)))
    assert max(result.lower_bounds.values()) == pytest.approx(result.lower_bounds["best"], rel=1e-6)
    assert result.lower_bounds["best"] < result.coherence
    assert result.random == pytest.approx(result.coherence, rel=0.25)


def test_verification_of_few_vectors():
    result = verify(torch.eye(3, 5))
    assert (result.coherence, result.ratio_to_bound) == (0.0, None)
    assert verify(torch.ones(3, 1)).coherence == 1.0
    with pytest.raises(VectorsError):
        verify(torch.zeros(3, 4))
