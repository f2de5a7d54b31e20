"""Trends with width: against scipy on the published table, and against models whose trend is known."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from repcap.errors import InputError, StoreError
from repcap.jobs.store import Store
from repcap.laws.fitting.data import published_models
from repcap.verbs.survey.study import store_published
from repcap.verbs.survey.trend import Point, contrast, group_trend, trend, trend_of


def group(found, name, without=False):
    groups = found.groups_without if without else found.groups
    return next(item for item in groups if item.group == name)


def point(name, d, epsilon, klass="low", tied=None):
    return Point(name, name, d, epsilon, epsilon * math.sqrt(d) / 2, klass, tied)


def test_published_table_gives_the_known_numbers():
    """design.md, section 2: -0.22 (p = 0.24) for epsilon, +0.66 (p = 5e-5) for its ratio to the null, 31 models."""
    low = group(trend(), "low")
    assert low.n == 31
    assert low.epsilon.rho == pytest.approx(-0.217, abs=5e-4)
    assert low.epsilon.p == pytest.approx(0.240, abs=5e-4)
    assert low.ratio.rho == pytest.approx(0.66, abs=5e-3)
    assert low.ratio.p == pytest.approx(5e-5, rel=0.1)
    assert trend().split == {"low": 31, "between": 0, "high": 14}


def test_published_table_agrees_with_scipy():
    rows = [model for model in published_models() if model.epsilon < 0.1]
    d = np.array([model.d_model for model in rows], dtype=float)
    epsilon = np.array([model.epsilon for model in rows])
    low = group(trend(), "low")
    for ours, theirs in (
        (low.epsilon, stats.spearmanr(d, epsilon)),
        (low.ratio, stats.spearmanr(d, epsilon * np.sqrt(d) / 2)),
    ):
        assert ours.rho == pytest.approx(theirs.statistic, abs=1e-12)
        assert ours.p == pytest.approx(theirs.pvalue, rel=1e-9)
    line = stats.linregress(np.log(d), np.log(epsilon))
    assert low.slope.slope == pytest.approx(line.slope, rel=1e-10)
    reach = stats.t.ppf(0.975, len(rows) - 2) * line.stderr
    assert (low.slope.low, low.slope.high) == pytest.approx((line.slope - reach, line.slope + reach))
    t = (line.slope + 0.5) / line.stderr
    assert low.slope_p == pytest.approx(2 * stats.t.sf(abs(t), len(rows) - 2), rel=1e-9)
    # The slope of the ratio against 0 is the same question as the slope of epsilon against -0.5.
    ratio = stats.linregress(np.log(d), np.log(epsilon * np.sqrt(d) / 2))
    assert low.slope_p == pytest.approx(ratio.pvalue, rel=1e-6)


def test_outliers_are_left_out_by_name_or_source():
    found = trend(without=["LLAMA 2 70b", "google/gemma-2-27b"])
    assert set(found.without) == {"Llama 2 70B", "Gemma 2 27B"}
    assert (group(found, "low").n, group(found, "low", without=True).n) == (31, 29)
    rows = [m for m in published_models() if m.epsilon < 0.1 and m.model not in found.without]
    theirs = stats.spearmanr([m.d_model for m in rows], [m.epsilon for m in rows])
    assert group(found, "low", without=True).epsilon.rho == pytest.approx(theirs.statistic, abs=1e-12)
    assert trend().groups_without == ()


def test_a_wrong_name_says_what_was_meant():
    with pytest.raises(InputError, match="did you mean Llama 2 7B, Llama 2 13B, Llama 2 70B"):
        trend(without=["llama 2"])
    with pytest.raises(InputError, match="no model named 'xyz' among 45"):
        trend(without=["xyz"])


def test_random_directions_have_no_trend_against_the_null():
    points = [point(f"m{d}", d, 2 / math.sqrt(d) * (1 + 0.01 * (-1) ** d)) for d in range(500, 540)]
    every = group(trend_of(points), "all")
    assert every.slope.low < -0.5 < every.slope.high
    assert every.slope_p > 0.1
    assert abs(every.ratio.rho) < 0.3


def test_the_model_that_a_trend_hangs_on_is_named():
    falling = [point(f"m{i}", 1000 + i, 0.09 - 0.005 * i) for i in range(8)]
    every = group(trend_of([*falling, point("far", 9000, 0.09)]), "all")
    assert every.hangs_on == ("far", pytest.approx(-1.0))


def test_few_models_use_permutations_and_fewer_say_why():
    points = [point(f"m{i}", 1000 * (i + 1), 0.05 + 0.001 * i) for i in range(5)]
    every = group(trend_of(points), "all")
    assert every.epsilon.method == "permutation"
    assert 2 / 120 * 0.5 < every.epsilon.p < 2 / 120 * 2  # two of the 120 orders are as monotone
    none = group_trend("low", points[:2])
    assert none.epsilon is None
    assert "at least 3" in none.why
    one_width = group_trend("low", [point(f"m{i}", 64, 0.05 + i / 100) for i in range(4)])
    assert "constant" in one_width.why
    assert group_trend("high", []).d_range is None


def test_twins_are_counted():
    points = [point("a", 64, 0.05), point("b", 64, 0.05), point("c", 128, 0.06), point("d", 256, 0.07)]
    assert group(trend_of(points), "all").alike == 1


def test_contrast_agrees_with_scipy_and_survives_empty_groups():
    one, other = [1.0, 2.0, 5.0, 9.0], [3.0, 4.0, 10.0, 11.0, 12.0]
    found = contrast("d", ("a", "b"), one, other)
    assert found.p == pytest.approx(stats.mannwhitneyu(one, other, method="exact").pvalue)
    assert found.medians == (3.5, 10.0)
    assert contrast("d", ("a", "b"), [], other).p is None


def test_tied_against_untied_and_roles_from_a_store(tmp_path):
    path = tmp_path / "s.sqlite"
    with Store(path) as store:
        for i in range(8):
            tied = i % 2 == 0
            base = {"source": f"m{i}", "name": f"m{i}", "dim": 100 + i, "epsilon_ratio": 1.0 + i, "tied": tied}
            base |= {"class": "high" if tied else "low", "epsilon": 0.3 + i / 100 if tied else 0.05}
            store.put(f"u{i}-e", "measure", {**base, "role": "embedding"}, unit=f"u{i}")
            store.put(f"u{i}-u", "measure", {**base, "role": "unembedding", "epsilon": 0.01}, unit=f"u{i}")
        # Measured again with other options: a model still counts once, with its newest numbers.
        again = {"source": "m0", "name": "m0", "dim": 100, "epsilon": 0.9, "epsilon_ratio": 9.0}
        store.put("v0-e", "measure", {**again, "tied": True, "class": "high", "role": "embedding"}, unit="v0")
    found = trend(path)
    assert group(found, "all").n == 8
    epsilon = next(item for item in found.tying if item.quantity == "epsilon")
    assert epsilon.sizes == (4, 4)
    assert epsilon.medians == (0.05, pytest.approx((0.34 + 0.36) / 2))
    assert trend(path, role="unembedding").groups[0].n == 8
    store_published(path)
    assert trend(path).groups[0].n == 8
    assert trend(path, kind="published").groups[0].n == 45
    assert trend(path, kind="published").to_dict()["groups"][1] == trend().to_dict()["groups"][1]


def test_stores_without_models(tmp_path):
    with pytest.raises(StoreError, match="no result store"):
        trend(tmp_path / "none.sqlite")
    Store(tmp_path / "s.sqlite").close()
    with pytest.raises(InputError, match="holds no measured models"):
        trend(tmp_path / "s.sqlite")
    with pytest.raises(InputError, match="kind"):
        trend(tmp_path / "s.sqlite", kind="pack")


def test_store_of_matrices_that_are_no_embeddings(tmp_path, repcap):
    np.save(tmp_path / "a.npy", np.random.default_rng(0).standard_normal((20, 4)))
    path = tmp_path / "s.sqlite"
    (tmp_path / "models.txt").write_text(str(tmp_path / "a.npy"))
    assert repcap("survey", tmp_path / "models.txt", "--store", path, "--engine", "inline").code == 0
    with pytest.raises(InputError, match="holds 1 results, none of them of an embedding"):
        trend(path)


def test_what_all_pairs_tell_over_the_width(tmp_path, repcap):
    with Store(tmp_path / "s.sqlite") as store:
        for d in (64, 128, 256, 512):
            points = [{"alpha": 1e-4, "epsilon": 0.5, "dim": d**0.5, "random": 0.1}]
            told = {"tails": [{"gauge": "stored", "points": points}], "at_once": {"best": {"s_max": d // 32}}}
            values = {
                "source": f"m{d}",
                "role": "embedding",
                "dim": d,
                "epsilon": 0.1,
                "epsilon_ratio": 1.0,
                "class": "low",
            }
            store.put(f"k{d}", "measure", {**values, **told})
        store.put("k", "measure", {**values, "source": "bare", "tails": [1], "at_once": {}})
    found = trend(tmp_path / "s.sqlite")
    tail, most = found.pairs
    assert (tail.quantity, tail.n, most.quantity, most.n) == ("d_alpha / d", 4, "s_max", 4)
    assert (tail.slope.slope, most.slope.slope) == (pytest.approx(-0.5), pytest.approx(1.0))
    assert most.rank.rho == pytest.approx(1.0)
    assert "Of all pairs, over d" in repcap("survey", "trend", tmp_path / "s.sqlite").out
    assert repcap("survey", "trend", tmp_path / "s.sqlite", "--json").json["pairs"][1]["n"] == 4


def test_a_survey_without_all_pairs_has_no_such_table(repcap):
    assert [one.n for one in trend().pairs] == [0, 0]
    assert "Of all pairs" not in repcap("survey", "trend").out
