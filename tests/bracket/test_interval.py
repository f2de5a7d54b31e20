"""The bracket at a point, its warnings, and what `measure` takes from it."""

from __future__ import annotations

import json
import math

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from repcap.bracket.interval import at_least, bracket
from repcap.errors import DomainError
from repcap.laws.fitting.ranges import fitted, outside


def warned(found, *words):
    return any(all(word in warning for word in words) for warning in found.warnings)


def test_llama_2_7b():
    found = bracket(4096, 0.0645)
    assert round(found.explicit.log10_k, 2) == 13.55
    assert round(found.exists, 2) == 4.44
    assert round(found.upper.log10_k, 2) == 23.32
    assert f"{10 ** found.laws['full']:.3g}" == "3.99e+07"
    assert warned(found, "ratio gives 2.17e9", "full gives 3.99e7", "below", "3.52e13", "Delsarte-Goethals r=2")
    assert warned(found, "extrapolation", "k/d = 0.488 to 7.81")


def test_to_dict_is_plain_json():
    found = json.loads(json.dumps(bracket(64, 0.125).to_dict()))
    assert set(found) == {
        "d", "epsilon", "explicit", "exists", "ratio", "full", "upper", "warnings"
    }  # fmt: skip
    assert found["explicit"]["coherence"] == 0.125
    assert round(10 ** found["explicit"]["log10_k"]) == round(10 ** found["upper"]["log10_k"]) == 2112
    assert set(found["upper"]) == {"log10_k", "k", "name", "exact"}


def test_summary_for_a_measurement():
    found = bracket(4096, 0.0645).summary()
    assert list(found) == ["explicit", "exists", "law", "upper"]
    for end in found.values():
        assert isinstance(end["log10_k"], float)
        assert end["k"] == pytest.approx(10 ** end["log10_k"])
    assert found["explicit"]["log10_k"] == pytest.approx(13.5463, abs=1e-4)
    assert found["explicit"]["name"] == "Delsarte-Goethals r=2"
    assert (found["law"]["name"], found["law"]["indeterminate"], found["law"]["below_proven"]) == ("full", False, True)
    assert at_least(found) is found["explicit"]
    assert bracket(640, 0.4153).summary()["law"]["indeterminate"]


def test_at_least_is_the_larger_of_what_is_proven_where_the_explicit_set_is_small():
    """SmolLM2 and Gemma 7B, whose explicit sets say far less than what exists; the ends against mpmath's caps."""
    for d, epsilon, log10_k in ((576, 0.7287, 95.88), (3072, 0.99918, 4278.7)):
        found = bracket(d, epsilon).summary()
        with mpmath.workdps(60):
            share = mpmath.betainc(mpmath.mpf(d - 1) / 2, 0.5, 0, 1 - mpmath.mpf(epsilon) ** 2, regularized=True)
            exists = -mpmath.log10(share)
        assert found["exists"]["log10_k"] == pytest.approx(float(exists), rel=1e-10)
        assert float(exists) == pytest.approx(log10_k, abs=0.06)
        assert at_least(found) is found["exists"]
        assert found["exists"]["name"] == "random coding"
        assert found["explicit"]["log10_k"] < found["exists"]["log10_k"] < found["upper"]["log10_k"]
    assert found["exists"]["k"] is None
    assert bracket(576, 0.7287).summary()["law"]["below_proven"]


def test_exact_where_as_many_are_known_as_are_possible():
    assert bracket(64, 0.125).to_dict()["upper"]["exact"]
    assert not bracket(4096, 0.0645).to_dict()["upper"]["exact"]


def test_warnings_name_what_is_wrong_and_only_that():
    # Inside the fitted data and above what exists: nothing to warn of.
    quiet = bracket(4000, 0.0222)
    assert not warned(quiet, "extrapolation")
    below = bracket(8192, 0.2)
    assert warned(below, "full gives", "below", "random coding")
    assert warned(below, "indeterminate")
    assert warned(bracket(8192, 0.05), "d = 8192 is not within 32 to 4096")
    tight = bracket(300, 1 / 400)  # Welch: 300 lines at most are 1.002 x 300 here, ratio has 300.4
    assert warned(tight, "full gives", "300 lines that are proven to exist (orthonormal basis)")


def test_a_law_above_the_upper_bound_is_named():
    # Where 1/P and the upper bound are near each other, at eps near 1 in few dimensions.
    found = bracket(3, 0.2)
    assert found.laws["ratio"] > found.upper.log10_k
    assert warned(found, "ratio gives", "above", "possible at most")


def test_other_z_is_said():
    assert warned(bracket(4096, 0.05, z=3.0), "mean + 3 std")
    assert not warned(bracket(4096, 0.05), "std")


def test_the_fitted_range_is_that_of_the_published_packings():
    assert set(fitted()) == {32, 64, 128, 256, 512, 768, 1024, 1536, 2048, 2560, 3072, 3584, 4096}
    assert all(span == (2000.0, 32000.0) for span in fitted().values())


@pytest.mark.parametrize(
    ("d", "k", "inside"),
    [
        (4096, 32000, True),
        (4096, 32100, False),
        (32, 2000, True),
        (32, 1990, False),
        (31, 5000, False),
        (4097, 5000, False),
        (700, 8000, True),
        (700, 700, False),
    ],
)
def test_outside(d, k, inside):
    import math

    assert (outside(d, math.log(k)) is None) is inside


@settings(max_examples=60)
@given(st.integers(1, 20_000), st.floats(0.003, 0.97))
def test_the_ends_enclose_what_is_proven(d, eps):
    found = bracket(d, eps)
    assert found.proven[0] <= found.upper.log10_k + 1e-9
    # A law outside the bracket is always warned of.
    for law in ("ratio", "full"):
        value = found.laws[law]
        if value < found.proven[0] - 1e-6:
            assert warned(found, f"{law} gives", "below")
        if value > found.upper.log10_k + 1e-6:
            assert warned(found, f"{law} gives", "above")


@pytest.mark.parametrize("hair", [0.0, 1e-15, 5e-13, 1.1e-12, 1e-9])
@pytest.mark.parametrize("d", [*range(1, 10), 15, 16, 23, 24, 64, 1000])
def test_the_ends_stay_in_order_a_hair_beside_the_coherences_of_known_sets(d, hair):
    # What is admitted as rounding on one side alone would let 3 lines at 1/2 stand beside "2 at most" in the plane.
    known = [1 / 2, 1 / 3, 1 / 5, 1 / 7, 3 / 4, 1 / d]
    known += [square**-0.5 for square in (2, 3, 5, d, d + 2, 2 * d - 1)]
    known += [math.cos(math.pi / k) for k in range(4, 12)]
    for value in known:
        for eps in (value * (1 - hair), value * (1 + hair)):
            if eps < 1:
                found = bracket(d, eps)
                assert found.proven[0] <= found.upper.log10_k


@pytest.mark.parametrize("d", [1, 2, 3, 4, 8, 64, 1000, 10**6])
@pytest.mark.parametrize(
    "eps", [5e-324, 1e-300, 1e-9, 0.5, 0.999999, 1 - 1e-9, 1 - 1e-12, 1 - 2e-16, math.nextafter(1.0, 0.0)]
)
def test_the_ends_stay_finite_and_in_order_up_to_the_last_float_below_one(d, eps):
    found = bracket(d, eps)
    assert 0.0 <= found.proven[0] <= found.upper.log10_k + 1e-9 < math.inf
    assert found.explicit.coherence <= eps + 2**-53


@pytest.mark.parametrize(("d", "eps"), [(64, 0.0), (64, 1.0), (64, float("nan")), (0, 0.1), (63.5, 0.1)])
def test_domains(d, eps):
    with pytest.raises(DomainError):
        bracket(d, eps)
