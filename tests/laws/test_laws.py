"""jl, ratio, full: published values, inverses, vectorisation, domains."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from repcap.errors import DomainError
from repcap.laws import full, jl, ratio
from repcap.laws.fitting.data import published_models

LAWS = {"jl": jl.LAW, "ratio": ratio.LAW, "full": full.LAW}

# (d, eps): k by jl C = 8, jl C = 3.029, ratio, full, as printed in the study of the published laws.
PRINTED = [
    (4096, 0.0645, "8.42", "277", "2.17e+09", "3.99e+07"),
    (8192, 0.0996, "2.58e+04", "4.49e+11", "1.62e+31", "8.07e+15"),
    (2048, 0.0633, "2.79", "15", "1.17e+06", "4.82e+05"),
]


@pytest.mark.parametrize(("d", "eps", "proven", "random", "by_ratio", "by_full"), PRINTED)
def test_printed_values(d, eps, proven, random, by_ratio, by_full):
    found = [
        jl.log_k(d, eps),
        jl.log_k(d, eps, C=jl.C_RANDOM),
        ratio.log_k(d, eps),
        full.log_k(d, eps),
    ]
    assert [f"{math.exp(value):.3g}" for value in found] == [proven, random, by_ratio, by_full]


def test_full_gives_every_finite_capacity_of_the_published_table():
    rows = [model for model in published_models() if model.capacity is not None]
    assert len(rows) == 31
    for model in rows:
        # epsilon is printed to five digits after the point: the capacity must lie in what its rounding allows.
        low, high = (full.log_k(model.d_model, model.epsilon + half) for half in (-0.5e-5, 0.5e-5))
        digits = len(model.capacity_text.split("e")[0].replace(".", "").lstrip("0"))
        rounding = 0.5 * 10.0 ** (1 - digits)
        assert math.exp(low) * (1 - rounding) <= model.capacity <= math.exp(high) * (1 + rounding), model.model


def test_full_reduces_to_ratio_and_ratio_to_jl():
    # a = b = c = 1 makes full the ratio law; k' = k d turns ratio into jl.
    d, eps = 300, 0.17
    assert full.log_k(d, eps, C=1.293, a=1.0, b=1.0, c=1.0) == pytest.approx(ratio.log_k(d, eps), rel=1e-14)
    assert ratio.log_k(d, eps, C=8.0) - math.log(d) == pytest.approx(jl.log_k(d, eps), rel=1e-13)


def test_a_logarithm_near_the_largest_float_does_not_overflow_on_the_way():
    c, a, b, p = (full.PARAMS[name] for name in "Cabc")
    expected = math.exp((math.log(c) + b * (math.log(a) + 300 * math.log(10)) - p * math.log(512)) / 2)
    assert full.epsilon(log_k=1e300, d=512) == pytest.approx(expected, rel=1e-12)


@settings(max_examples=150)
@given(st.sampled_from(sorted(LAWS)), st.floats(1.0, 1e6), st.floats(1e-3, 0.99))
def test_epsilon_undoes_log_k_and_back(name, d, eps):
    law = LAWS[name]
    log_k = law.log_k(d, eps)
    if log_k <= 0:
        return
    back = law.epsilon(log_k=log_k, d=d)
    assert law.log_k(d, min(back, 0.999999)) == pytest.approx(log_k, rel=1e-12)


@settings(max_examples=100)
@given(st.sampled_from(sorted(LAWS)), st.floats(1.0, 690.0), st.floats(1e-3, 0.99))
def test_dim_undoes_log_k(name, log_k, eps):
    law = LAWS[name]
    try:
        d = law.dim(log_k=log_k, eps=eps)
    except DomainError:
        assert law.log_k(1.0, eps) > log_k
        return
    assert law.log_k(d, eps) == pytest.approx(log_k, rel=1e-12)


def test_dim_of_jl_is_the_closed_form():
    assert jl.dim(1e6, 0.06) == pytest.approx(8.0 * math.log(1e6) / 0.06**2, rel=1e-13)


def test_dim_without_a_root_says_so():
    with pytest.raises(DomainError, match="no d >= 1"):
        full.dim(1.001, 0.9)


@pytest.mark.parametrize("law", LAWS.values(), ids=list(LAWS))
def test_extremes_neither_overflow_nor_warn(law):
    with np.errstate(all="raise"):
        for d in (1, 2, 16384, 10**6):
            for eps in (1e-9, 0.5, 0.99, 1 - 1e-12):
                assert math.isfinite(law.log_k(d, eps))
                assert math.isfinite(law.epsilon(log_k=1e7, d=d))


@pytest.mark.parametrize("law", LAWS.values(), ids=list(LAWS))
def test_arrays_broadcast_and_agree_with_scalars(law):
    d, eps = np.array([[64.0], [4096.0]]), np.array([0.05, 0.1, 0.5])
    table = law.log_k(d, eps)
    assert table.shape == (2, 3)
    assert table.dtype == np.float64
    for i, j in np.ndindex(2, 3):
        assert table[i, j] == law.log_k(float(d[i, 0]), float(eps[j]))
    dims = law.dim(log_k=table, eps=eps)
    np.testing.assert_allclose(dims, np.broadcast_to(d, (2, 3)), rtol=1e-11)
    assert isinstance(law.log_k(64, 0.1), float)
    assert isinstance(law.epsilon(1e5, 64), float)


def test_fewer_vectors_than_dimensions_can_be_orthogonal():
    assert ratio.epsilon(100, 128) == 0.0
    assert ratio.epsilon(128, 128) == 0.0
    assert full.epsilon(50, 128) == 0.0
    assert full.epsilon(200, 128) > 0.0


def test_integers_beyond_float64_are_taken_exactly():
    assert jl.epsilon(10**400, 10**6) == pytest.approx(math.sqrt(8 * 400 * math.log(10) / 1e6), rel=1e-14)


NAN = float("nan")


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda law: law.log_k(64, 0.0), "epsilon = 0 "),
        (lambda law: law.log_k(64, -0.1), "epsilon = -0.1 "),
        (lambda law: law.log_k(64, 1.0), "epsilon = 1 "),
        (lambda law: law.log_k(64, 1.5), "epsilon = 1.5 "),
        (lambda law: law.log_k(64, NAN), "epsilon = nan "),
        (lambda law: law.log_k(0.5, 0.1), "d = 0.5 "),
        (lambda law: law.log_k(NAN, 0.1), "d = nan "),
        (lambda law: law.log_k(math.inf, 0.1), "d = inf "),
        (lambda law: law.log_k("x", 0.1), "d = 'x' "),
        (lambda law: law.epsilon(1, 64), "k = 1 "),
        (lambda law: law.epsilon(-3, 64), "k = -3 "),
        (lambda law: law.epsilon(NAN, 64), "k = nan "),
        (lambda law: law.epsilon(1e5, 0), "d = 0 "),
        (lambda law: law.epsilon(d=64, log_k=0.0), "log_k = 0 "),
        (lambda law: law.epsilon(10, 64, log_k=2.0), "one of the two"),
        (lambda law: law.epsilon(d=64), "one of the two"),
        (lambda law: law.dim(1e5, 1.0), "epsilon = 1 "),
        (lambda law: law.dim(0.5, 0.1), "k = 0.5 "),
        (lambda law: law.log_k(64, np.array([0.1, 0.2, 2.0])), "epsilon = 2 "),
        (lambda law: law.log_k(64, 0.1, C=0.0), "constant C = 0"),
        (lambda law: law.log_k(64, 0.1, q=1.0), "no constant 'q'"),
    ],
)
@pytest.mark.parametrize("law", LAWS.values(), ids=list(LAWS))
def test_outside_the_domain_one_line_names_the_value(law, call, words):
    with pytest.raises(DomainError) as caught:
        call(law)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
