"""`capacity`: each of the three questions, budgets, errors."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import repcap
from repcap.bracket.capacity import capacity
from repcap.constructions.best import best_construction
from repcap.errors import DomainError, OptionError
from repcap.laws import full, ratio
from repcap.laws.limits.existence import gilbert_varshamov
from repcap.laws.limits.levenshtein import log_upper
from repcap.numerics import LN10


def test_it_is_public():
    assert repcap.capacity is capacity


def test_how_many():
    found = capacity(4096, 0.0645).to_dict()
    assert (found["d"], found["epsilon"], found["solved_for"]) == (4096, 0.0645, "k")
    assert found["epsilon_ratio"] == pytest.approx(0.0645 * 64 / 2)
    assert set(found["laws"]) == {"jl_proven", "jl_random", "ratio", "full"}
    assert {name: f"{law['k']:.3g}" for name, law in found["laws"].items()} == {
        "jl_proven": "8.42", "jl_random": "277", "ratio": "2.17e+09", "full": "3.99e+07"
    }  # fmt: skip
    assert set(found["bracket"]) == {"explicit", "exists", "ratio", "full", "upper"}
    assert found["bracket"]["explicit"]["coherence"] == 0.0625
    assert "3.52e13" in found["reading"]
    assert "10^23.32" in found["reading"]
    json.dumps(found, allow_nan=False)


def test_exactly_known_is_said():
    assert "exactly 2112 lines" in capacity(64, 0.125).reading


def test_how_near():
    found = capacity(4096, k=32000).to_dict()
    assert found["k"] == 32000
    assert found["solved_for"] == "epsilon"
    ends = found["bracket"]
    assert ends["explicit"]["epsilon"] == 1 / 64
    assert round(ends["lower"]["epsilon"], 4) == 0.0146
    assert found["laws"]["ratio"]["epsilon"] == pytest.approx(math.sqrt(1.293 * math.log(32000 / 4096) / 4096))
    assert ends["lower"]["epsilon"] <= ends["explicit"]["epsilon"] <= ends["random"]["epsilon"]
    assert any("ratio gives" in warning and "0.01562" in warning for warning in found["warnings"])


def test_into_how_many_dimensions():
    found = capacity(k=1e6, eps=0.06).to_dict()
    assert found["solved_for"] == "d"
    assert full.log_k(found["laws"]["full"]["d"], 0.06) == pytest.approx(math.log(1e6), rel=1e-12)
    assert ratio.log_k(found["laws"]["ratio"]["d"], 0.06) == pytest.approx(math.log(1e6), rel=1e-12)
    ends = found["bracket"]
    # Each is a least d: enough there, too few one below.
    d = ends["explicit"]["d"]
    assert best_construction(d, 0.06).k >= 1e6 > best_construction(d - 1, 0.06).k
    d = ends["exists"]["d"]
    assert gilbert_varshamov(d, 0.06) >= 6 > gilbert_varshamov(d - 1, 0.06)
    d = ends["lower"]["d"]
    assert log_upper(d, 0.06)[0] >= 6 * LN10 > log_upper(d - 1, 0.06)[0]
    assert "cannot fit into fewer than 697" in found["reading"]


@settings(max_examples=25)
@given(st.integers(2, 10**9), st.floats(0.02, 0.9))
def test_dimensions_that_are_enough_are_not_fewer_than_those_needed(k, eps):
    ends = capacity(k=k, eps=eps).bracket
    for name in ("explicit", "exists"):
        assert ends[name]["d"] is None or ends[name]["d"] >= ends["lower"]["d"]


@settings(max_examples=25)
@given(st.integers(1, 5000), st.integers(2, 10**8))
def test_some_set_is_never_better_than_the_proven_least_coherence(d, k):
    ends = capacity(d=d, k=k).bracket
    assert ends["lower"]["epsilon"] <= min(ends[n]["epsilon"] for n in ("explicit", "exists")) + 1e-9


def test_vocabulary_takes_its_share():
    untied = capacity(4096, 0.0645, vocab=32000).budget
    tied = capacity(4096, 0.0645, vocab=32000, tied=True).budget
    assert (untied.needed, tied.needed) == (64000, 32000)
    k = 10 ** capacity(4096, 0.0645).laws["full"]["log10_k"]
    assert 10 ** untied.left["full"] == pytest.approx(k - 64000, rel=1e-9)
    assert 10 ** tied.left["full"] == pytest.approx(k - 32000, rel=1e-9)
    assert untied.left["jl_random"] is None  # 277 < 64000
    assert set(untied.left) == {
        "jl_proven", "jl_random", "ratio", "full", "explicit", "exists", "upper"
    }  # fmt: skip
    found = capacity(4096, 0.0645, vocab=32000).to_dict()
    assert found["budget"]["left"]["jl_proven"] == {"log10_k": None, "k": None}


def test_vocabulary_stands_for_k():
    assert capacity(4096, vocab=32000).k == 64000
    assert capacity(4096, vocab=32000, tied=True).k == 32000
    assert capacity(4096, k=10**6, vocab=32000).k == 1_064_000
    assert capacity(eps=0.06, vocab=32000).laws == capacity(eps=0.06, k=64000).laws
    assert capacity(4096, vocab=32000).budget.left == {}
    with pytest.raises(DomainError, match="counts features, 0 or more"):
        capacity(4096, k=-5, vocab=32000)


def test_numbers_beyond_float64():
    found = capacity(10**6, 0.99).to_dict()
    assert found["laws"]["ratio"]["k"] is None
    assert found["laws"]["ratio"]["log10_k"] == pytest.approx(6 + 10**6 * 0.99**2 / 1.293 / LN10)
    huge = capacity(64, k=10**400).to_dict()
    assert (huge["k"], huge["log10_k"]) == (None, pytest.approx(400.0))
    assert "within" in huge["reading"]
    json.dumps([found, huge], allow_nan=False)


def test_few_vectors_and_few_dimensions():
    assert capacity(k=2, eps=0.9).bracket["explicit"]["d"] == 2
    assert capacity(k=2, eps=0.9).laws["full"]["d"] is None
    assert capacity(1, 0.5).bracket["explicit"]["log10_k"] == 0.0
    assert capacity(64, k=64).bracket["lower"]["epsilon"] == 0.0
    assert capacity(64, k=1.5).bracket["random"]["epsilon"] == 0.0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, "exactly two"),
        ({"d": 64}, "exactly two"),
        ({"d": 64, "eps": 0.1, "k": 100}, "exactly two"),
        ({"d": 64, "eps": 0.0}, "epsilon = 0"),
        ({"d": 64, "eps": 1.0}, "epsilon = 1"),
        ({"d": 64, "eps": float("nan")}, "eps = nan"),
        ({"d": 0, "eps": 0.1}, "d = 0"),
        ({"d": 64, "k": 1}, "k = 1"),
        ({"d": 64, "k": float("nan")}, "k = nan"),
        ({"d": 64, "eps": 0.1, "vocab": 0}, "vocab = 0"),
        ({"d": 64, "eps": 0.1, "vocab": 10.5}, "vocab = 10.5"),
        ({"d": 64, "eps": 0.1, "tied": True}, "tied"),
    ],
)
def test_nonsense_gets_one_line(arguments, words):
    with pytest.raises((DomainError, OptionError), match=words) as caught:
        capacity(**arguments)
    assert "\n" not in str(caught.value)
