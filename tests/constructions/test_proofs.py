"""Codes as lines: the table of sets that are better than what was known, and whole small members by brute force."""

from __future__ import annotations

import math

import numpy as np
import pytest

from line_sets import coherence
from repcap.constructions.best import best_construction
from repcap.constructions.build import named_lines
from repcap.constructions.families import bch

TABLE = [
    (8192, 0.05475, 16.56, 0.0547, "RS[128,8] over GF(128)"),
    (8192, 0.06131, 16.56, 0.0609, "RS[115,8] over GF(128)"),
    (8192, 0.09962, 27.09, 0.0938, "RS[128,13] over GF(128)"),
    (2048, 0.21014, 24.99, 0.2031, "RS[64,14] over GF(64)"),
    (2304, 0.35084, 59.60, 0.3320, "extended BCH [2048,199,684]"),
    (3584, 0.39785, 94.89, 0.3961, "RS[155,39] over GF(271) with 276 equiangular lines in R^23"),
    (2048, 0.28223, 36.42, 0.28125, "extended BCH [2048,122,736]"),
    (640, 0.41554, 22.58, 0.3281, "extended BCH [512,76,172]"),
    (576, 0.7287, 72.25, 0.7109, "extended BCH [512,241,74]"),
    (576, 0.333, 22.58, 0.3281, "extended BCH"),
    (1024, 0.3125, 30.10, 0.3125, "extended BCH"),
]


@pytest.mark.parametrize(("d", "eps", "log10_k", "worst", "name"), TABLE)
def test_the_table_of_better_sets(d, eps, log10_k, worst, name):
    found = best_construction(d, eps)
    assert found.log10_k == pytest.approx(log10_k, abs=0.005)
    assert found.coherence == pytest.approx(worst, abs=5e-5)
    assert name in found.name


def test_the_set_at_a_coherence_near_one():
    # 16384 words of the extended BCH code [16, 15, 2] inside give 10^809.2; longer inner words give more.
    assert best_construction(3072, 0.99918).log10_k > 809.2


@pytest.mark.parametrize(
    ("bits", "delta", "k", "distance"), [(4, 3, 11, 4), (5, 7, 16, 8), (6, 23, 16, 24), (6, 21, 18, 22)]
)
def test_extended_bch_as_whole_codes(bits, delta, k, distance):
    lines = bch.bch_words(bits, delta)
    assert lines.count == 1 << (k - 1)
    words = (lines.rows(0, lines.count) < 0).astype(np.int64)
    weights = words.sum(axis=1)[1:]
    # Linear, and one of each complementary pair: the least distance of the code is seen from the zero word.
    assert min(weights.min(), (lines.dim - weights).min()) >= distance
    assert len(np.unique(words, axis=0)) == lines.count
    assert lines.claimed == 1 - 2 * distance / lines.dim


def test_extended_bch_of_length_128_by_its_weights():
    basis = bch.bch_words(7, 47)
    assert (basis.count, basis.claimed) == (1 << 21, 1 - 2 * 48 / 128)
    least = 128
    for start in range(0, basis.count, 1 << 17):
        weights = np.count_nonzero(basis.rows(start, start + (1 << 13)) < 0, axis=1)
        weights = weights[weights > 0]
        least = min(least, int(weights.min()), int(128 - weights.max()))
    assert least == 48


@pytest.mark.parametrize("bits", [5, 8, 10])
def test_every_bch_code_has_as_many_independent_words_as_it_says(bits):
    for delta in np.unique(bch.leaders(bits))[:: 1 << (bits - 5)].tolist():
        k, distance = bch.dimension(bits, delta)
        assert distance == delta + 1
        assert bch.bch_words(bits, delta).count == 1 << (k - 1)


@pytest.mark.parametrize(
    ("name", "d", "params", "k"),
    [
        ("reed-solomon", 8, {"m": 1, "K": 2}, 8),
        ("reed-solomon", 28, {"m": 2, "K": 3}, 256),
        ("reed-solomon", 128, {"m": 3, "K": 2}, 128),
        ("reed-solomon", 32, {"m": 2, "K": 3}, 256),
        ("reed-solomon-lines", 21, {"m": 7, "K": 2}, 61**2),
        ("reed-solomon-lines", 18, {"m": 6, "K": 2}, 32**2),
        ("reed-solomon-lines", 9, {"m": 3, "K": 2}, 49),
        ("extended-bch", 16, {"delta": 3}, 1024),
    ],
)
def test_small_members_line_by_line(name, d, params, k):
    lines = named_lines(name, d, **params)
    assert (lines.count, lines.dim) == (k, d)
    rows = lines.rows(0, k)
    assert np.linalg.norm(rows, axis=1) == pytest.approx(np.ones(k))
    assert coherence(rows) <= lines.claimed * (1 + 1e-9)
    assert np.array_equal(np.concatenate([lines.rows(i, i + 1) for i in range(0, k, 7)]), rows[::7])


def test_words_that_agree_in_as_many_places_as_the_theorem_allows():
    # f has K - 1 zeros and takes no value of sign alone: against f = 0 the cosine is (K - 1)/N and not less.
    lines = named_lines("reed-solomon", 8192, m=6, K=8)
    assert lines.claimed == 7 / 128
    rng = np.random.default_rng(0)
    first = lines.rows(0, 1)[0]
    picked = [int(rng.integers(0, 1 << 55)) for _ in range(100)]
    others = np.concatenate([lines.rows(i, i + 1) for i in picked])
    assert np.abs(others @ first).max() <= 7 / 128 + 1e-12
    assert np.abs(np.tril(others @ others.T, -1)).max() <= 7 / 128 + 1e-12


def test_a_choice_takes_milliseconds_and_counts_exactly():
    found = best_construction(8192, 0.0547)
    assert found.k == 1 << 55
    assert math.log10(found.k) == pytest.approx(found.log10_k)
