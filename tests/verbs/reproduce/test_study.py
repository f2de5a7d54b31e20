"""Every published number at the precision that it is printed with, and every corrected one by another route."""

from __future__ import annotations

import dataclasses
import itertools
import json
import math

import numpy as np
import pytest
from scipy import stats

import repcap
from repcap.errors import InputError
from repcap.laws import ratio
from repcap.laws.fitting.data import optimized_packing, published_models, random_packing
from repcap.verbs.reproduce.claims import STATUSES, matches, show
from repcap.verbs.reproduce.fits import random_median
from repcap.verbs.reproduce.models import _row, table_rows
from repcap.verbs.reproduce.packings import penalty_exponent
from repcap.verbs.reproduce.study import GROUPS, reproduce


@pytest.fixture(scope="module")
def done():
    return reproduce(bootstrap=60)


PUBLISHED = {
    "random.C": "3.029",
    "random.r2": "0.9985",
    "random.mape": "1.3 %",
    "random.nrmse": "0.9 %",
    "jl.mape": "975 %",
    "ratio.C": "1.293",
    "ratio.r2": "0.9984",
    "ratio.mape": "7.9 %",
    "ratio.factor": "123",
    "full.r2": "0.9998",
    "full.mape": "5.4 %",
    "llama.jl_proven": "8.4",
    "llama.jl_random": "277",
    "llama.full": "3.99e7",
    "wide.full": "2e20",
}


@pytest.mark.parametrize(("key", "printed"), PUBLISHED.items())
def test_published_numbers_are_recomputed(done, key, printed):
    claim = done.claim(key)
    assert claim.published == printed
    assert claim.status == "agrees"
    assert matches(printed, claim.values["recomputed"])


@pytest.mark.parametrize(("name", "value"), [("C", 0.45809143), ("a", 1.0668005), ("b", 1.44738666), ("c", 0.97197234)])
def test_constants_of_full_to_what_the_data_fix(done, name, value):
    claim = done.claim(f"full.{name}")
    assert float(claim.published) == value
    assert claim.status == "agrees"
    assert claim.values["recomputed"] == pytest.approx(value, rel=1e-5)
    # That no further digit means anything: the released ones are as good to 1e-10 of the sum of squares.
    assert 0.0 <= claim.values["squares_above_minimum"] < 1e-9
    low, high = claim.values["ci"]
    assert low < value < high


@pytest.mark.parametrize(
    ("key", "printed", "follows"),
    [
        ("wider.from", "2.0e7", True),
        ("wider.to", "6.0e8", True),
        ("looser.from", "2.4e8", False),
        ("looser.to", "2.0e14", True),
    ],
)
def test_steps_with_inferred_inputs_say_so(done, key, printed, follows):
    claim = done.claim(key)
    assert (claim.published, claim.status) == (printed, "inferred")
    assert "inferred" in claim.note
    assert matches(printed, claim.values["recomputed"]) is follows is claim.values["matches_published"]


def test_all_45_rows_of_table_1(done):
    assert [row.model for row in done.models] == [model.model for model in published_models()]
    assert all(row.agrees for row in done.models)
    finite = [row for row in done.models if row.published != "indeterminate"]
    assert len(finite) == 31
    for row in finite:
        # The definition, written out: full at the two ends of the epsilons that round to the printed one.
        ends = []
        for eps in (row.epsilon - 5e-6, row.epsilon + 5e-6):
            power = (row.d**0.97197234 * eps**2 / 0.45809143) ** (1 / 1.44738666)
            ends.append((math.log(row.d) + power) / 1.0668005)
        half = 0.5 * 10 ** (math.floor(math.log10(float(row.published))) - 2)
        assert math.exp(ends[0]) <= float(row.published) + half
        assert math.exp(ends[1]) >= float(row.published) - half
    # No interval is so wide that anything would pass: half a percent at most.
    assert max(row.log10_k_range[1] - row.log10_k_range[0] for row in finite) < math.log10(1.005)


def test_class_split(done):
    claim = done.claim("table.classes")
    assert claim.status == "agrees"
    assert (claim.values["high"], claim.values["low"], claim.values["between"]) == (14, 31, 0)


def test_corrected_errors_without_the_degenerate_cells(done):
    assert f"{done.claim('jl.mape').values['on_k_above_d']:.1%}" == "52.4%"
    assert f"{done.claim('ratio.mape').values['on_k_above_d']:.1%}" == "4.5%"
    assert f"{done.claim('full.mape').values['on_k_above_d']:.1%}" == "1.8%"
    assert round(done.claim("ratio.factor").values["on_k_above_d"]) == 12
    assert "52.4 % on k > d" in done.claim("jl.mape").corrected
    assert "6 of the 166 cells" in done.claim("jl.mape").note


def test_exponents_from_the_rule_on_the_grid(done):
    """By hand: 60/ln 32 = 17.3; 40/ln 32 = 11.5; 50/ln 4096 = 6.01; 40/ln 2048 = 5.2; 40/ln 3584 = 4.9."""
    assert penalty_exponent(32000, 32) == 17
    assert penalty_exponent(4000, 32) == penalty_exponent(2000, 32) == 11
    assert penalty_exponent(32000, 4096) == 6
    assert penalty_exponent(2000, 2048) == 5
    assert penalty_exponent(4000, 3584) == 4
    assert penalty_exponent(32000, 2) == 20
    claim = done.claim("packing.exponent")
    assert (claim.values["least"], claim.values["largest"]) == (4, 17)
    assert sum(claim.values["cells"].values()) == 166
    assert claim.values["cells"]["4"] == 6


def test_the_formula_is_no_upper_bound(done):
    kerdock = done.claim("upper.kerdock").values
    assert f"{kerdock['ratio']:.0f}" == "139"
    assert (kerdock["explicit"]["k"], kerdock["explicit"]["coherence"]) == (2112, 0.125)
    assert kerdock["upper"]["log10_k"] == pytest.approx(math.log10(2112), abs=1e-9)
    goethals = done.claim("upper.delsarte_goethals").values
    assert goethals["log2_k"] == pytest.approx(45, abs=1e-9)
    assert goethals["explicit"]["coherence"] <= 0.0645
    assert "2^45" in done.claim("upper.delsarte_goethals").note
    crossings = done.claim("upper.coding").values["crossings"]
    assert [crossings[d] for d in ("1024", "2048", "4096", "8192")] == pytest.approx(
        [0.218, 0.159, 0.115, 0.082], abs=1e-3
    )


def test_packings_against_bounds(done):
    distance = done.claim("packing.distance").values
    assert 1.0 < distance["least"] < distance["median"] < distance["largest"]
    assert round(distance["largest"], 1) == 2.5
    claim = done.claim("packing.explicit").values
    assert claim["cells"] == 160
    assert claim["beaten"] >= 120
    example = claim["example"]
    assert round(example["explicit"], 4) == 0.0156
    assert round(example["published"], 4) == 0.0250
    assert round(example["lower_bound"], 4) == 0.0146


def test_trends_against_scipy(done):
    low = [(model.d_model, model.epsilon) for model in published_models() if model.epsilon < 0.1]
    d, eps = map(np.array, zip(*low, strict=True))
    raw, null = stats.spearmanr(d, eps), stats.spearmanr(d, eps * np.sqrt(d) / 2)
    found = done.claim("trend.epsilon").values["spearman"]
    assert (found["n"], round(found["rho"], 3), round(found["p"], 2)) == (31, -0.217, 0.24)
    assert found["rho"] == pytest.approx(raw.statistic, abs=1e-12)
    found = done.claim("trend.null").values
    assert found["spearman"]["rho"] == pytest.approx(null.statistic, abs=1e-12)
    assert round(found["spearman"]["rho"], 2) == 0.66
    assert found["spearman"]["p"] == pytest.approx(5e-5, abs=0.5e-5)
    # Ratios rounded to two decimals before ranking give the other pair of digits that is in use.
    coarse = found["rounded_to_two_decimals"]
    assert (round(coarse["rho"], 3), f"{coarse['p']:.1e}") == (0.66, "5.3e-05")
    assert found["p_permutation"] < 1e-3


def test_isotropic_matrix(done):
    values = done.claim("table.isotropic").values
    assert round(values["factor"]) == 22
    assert values["factor_at_4096"] == pytest.approx(values["factor"], rel=1e-12)
    thresholds = done.claim("table.thresholds").values
    assert thresholds["random_above_low_for_d_below"] == pytest.approx(400)
    assert thresholds["random_above_high_for_d_below"] == pytest.approx(100)
    assert all(row.epsilon_ratio > 1 for row in done.models)


def test_every_published_capacity_lies_below_a_proven_set(done):
    """What the bracket figure's caption says."""
    for row in done.models:
        if row.published != "indeterminate":
            assert math.log10(float(row.published)) < row.explicit_log10_k < row.upper_log10_k
    assert done.claim("table.capacity").values["below_proven"] == 31


def test_random_median_by_simulation():
    """The median of the best of 20 draws of 40 lines in R^8, from 300 such experiments."""
    from repcap.laws.fitting.data import PackingTable

    rng = np.random.default_rng(0)
    best = []
    for _ in range(300):
        x = rng.standard_normal((20, 40, 8))
        x /= np.linalg.norm(x, axis=2, keepdims=True)
        gram = np.abs(x @ x.transpose(0, 2, 1)) - np.eye(40)
        best.append(gram.max(axis=(1, 2)).min())
    table = PackingTable(np.array([40.0]), np.array([8.0]), np.array([0.5]))
    assert random_median(table, 20)[0] == pytest.approx(float(np.median(best)), abs=0.006)


def test_random_data_follow_the_cap_without_a_fit(done):
    values = done.claim("random.r2").values
    assert (round(values["ratio_mean"], 3), round(values["ratio_std"], 3)) == (1.012, 0.008)
    assert len(random_packing()) == values["cells"] == 256


@pytest.mark.parametrize(
    ("printed", "value", "expected"),
    [
        ("0.9985", 0.99845, True),
        ("0.9985", 0.99856, False),
        ("8.4", 8.4499, True),
        ("8.4", 8.46, False),
        ("277", 277.5, True),
        ("277", 276.4, False),
        ("2e20", 2.045e20, True),
        ("2e20", 2.6e20, False),
        ("3.99e7", 3.994e7, True),
        ("3.99e7", 3.996e7, False),
        ("7.9 %", 0.0795, True),
        ("7.9 %", 0.0796, False),
        ("975 %", 9.753, True),
        ("123", math.nan, False),
        ("-0.22", -0.217, True),
    ],
)
def test_matches_at_printed_precision(printed, value, expected):
    assert matches(printed, value) is expected


def test_show_adds_the_digits_that_decide():
    pairs = [("3.029", 3.02948), ("2e20", 2.045e20), ("7.9 %", 0.079463), ("277", 277.49), ("3.99e7", 3.9943e7)]
    assert [show(printed, value) for printed, value in pairs] == ["3.02948", "2.0e20", "7.946 %", "277.49", "3.994e7"]
    with pytest.raises(InputError, match="no printed number"):
        show("about 7", 7.0)


def test_a_changed_number_departs():
    """The comparison can fail: the capacity of Llama 2 7B does not follow from another epsilon."""
    llama = next(model for model in published_models() if model.model == "Llama 2 7B")
    assert _row(llama).agrees
    for epsilon in (0.06452, 0.06448, 0.11):
        assert not _row(dataclasses.replace(llama, epsilon=epsilon)).agrees


def test_groups_and_record(done):
    assert done.departures == ()
    assert {claim.status for claim in done.claims} <= set(STATUSES)
    keys = [claim.key for claim in done.claims]
    assert len(set(keys)) == len(keys)
    record = json.loads(json.dumps(done.to_dict()))
    assert (len(record["claims"]), len(record["rows"])) == (len(keys), 45)
    assert record["rows"][0]["class"] == "low"
    only = reproduce(("capacities",), bootstrap=0)
    assert only.models == ()
    assert {claim.group for claim in only.claims} == {"Capacities in the text"}
    with pytest.raises(InputError, match="no group 'nope'"):
        reproduce(("nope",))
    with pytest.raises(InputError, match=r"no claim 'nope': there are random\.C"):
        done.claim("nope")
    assert repcap.reproduce is reproduce


def test_same_numbers_each_time_and_groups_stay_together(done):
    again = reproduce(bootstrap=60)
    assert again.values() == done.values()
    groups = [group for group, _ in itertools.groupby(claim.group for claim in done.claims)]
    assert len(groups) == len(set(groups)) == len(GROUPS)


def test_progress_is_reported():
    seen = []
    reproduce(("capacities", "packings"), on_progress=lambda part, whole: seen.append((part, whole)))
    assert seen == [(1, 2), (2, 2)]


def test_ratio_at_the_null_is_what_the_text_says():
    for d in (512, 4096, 16384):
        assert math.exp(ratio.log_k(d, 2 / math.sqrt(d))) / d == pytest.approx(math.exp(4 / 1.293), rel=1e-12)


def test_rows_are_the_tables(done):
    assert table_rows() == list(done.models)
    assert optimized_packing().degenerate.sum() == 6
