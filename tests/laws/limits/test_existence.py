"""Caps, Gilbert-Varshamov and random coherence, against mpmath, closed forms, published data and simulation."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from repcap.errors import DomainError
from repcap.laws import full
from repcap.laws.fitting.data import random_packing
from repcap.laws.limits.existence import (
    gilbert_varshamov,
    gilbert_varshamov_coherence,
    log_cap,
    log_half_cap,
    random_coherence,
)
from repcap.numerics import LN10


def reference(d, eps):
    with mpmath.workdps(60):
        x = 1 - mpmath.mpf(eps) ** 2
        return float(mpmath.log(mpmath.betainc(mpmath.mpf(d - 1) / 2, mpmath.mpf(1) / 2, 0, x, regularized=True)))


@pytest.mark.parametrize("d", [2, 3, 4, 5, 10, 23, 64, 401, 4096, 16384])
@pytest.mark.parametrize("eps", [1e-6, 0.01, 0.0645, 0.1, 0.3, 0.5, 0.9, 0.99, 0.999999])
def test_log_cap_against_mpmath(d, eps):
    assert log_cap(d, eps) == pytest.approx(reference(d, eps), rel=3e-14, abs=1e-15)


def test_log_cap_around_the_border_of_its_two_fractions():
    for d in (2, 3, 17, 1000, 5001):
        border = math.sqrt(3.0 / (d + 4))
        for factor in (0.9, 0.999, 1.001, 1.1):
            assert log_cap(d, border * factor) == pytest.approx(reference(d, border * factor), rel=1e-12)


@pytest.mark.parametrize("d", [2, 3, 23, 401, 4096])
@pytest.mark.parametrize("eps", [1e-9, 0.0645, 0.5, 0.99, 1 - 1e-9, 1 - 1e-14, math.nextafter(1.0, 0.0)])
def test_log_half_cap_keeps_its_digits_where_the_cosine_rounds_to_one(d, eps):
    with mpmath.workdps(60):
        x = (1 - mpmath.mpf(eps)) / 2
        exact = mpmath.log(mpmath.betainc(mpmath.mpf(d - 1) / 2, mpmath.mpf(1) / 2, 0, x, regularized=True))
    assert log_half_cap(d, eps) == pytest.approx(float(exact), rel=3e-14)


def test_log_cap_in_a_million_dimensions():
    # mpmath's own series does not get there; integrating (1 - x^2)^((d-3)/2) from eps to 1 does.
    d, eps = 10**6, 0.005
    with mpmath.workdps(40):
        tail = mpmath.quad(lambda x: mpmath.exp((d - 3) / 2 * mpmath.log1p(-x * x)), [eps, 0.006, 0.008, 0.012, 0.02])
        whole = mpmath.beta(mpmath.mpf(1) / 2, mpmath.mpf(d - 1) / 2) / 2
        assert log_cap(d, eps) == pytest.approx(float(mpmath.log(tail / whole)), rel=1e-11)


@settings(max_examples=60)
@given(st.floats(1e-6, 1 - 1e-6))
def test_log_cap_closed_forms(eps):
    assert math.exp(log_cap(2, eps)) == pytest.approx(2 * math.acos(eps) / math.pi, rel=1e-9)
    assert math.exp(log_cap(3, eps)) == pytest.approx(1 - eps, rel=1e-9)  # Archimedes: zones of equal height
    assert log_cap(1, eps) == 0.0


def test_log_cap_is_vectorised():
    table = log_cap(np.array([[2.0], [64.0], [16384.0]]), np.array([0.01, 0.5]))
    assert table.shape == (3, 2)
    for i, d in enumerate((2, 64, 16384)):
        for j, eps in enumerate((0.01, 0.5)):
            assert table[i, j] == pytest.approx(log_cap(d, eps), rel=1e-13)


@pytest.mark.parametrize(("d", "eps", "printed"), [(4096, 0.0645, 4.44), (8192, 0.0996, 18.79), (2048, 0.0633, 3.31)])
def test_gilbert_varshamov_printed_values(d, eps, printed):
    # In the third row 1/P is 241 only: there the number is the orthonormal basis, 2048 lines.
    assert round(gilbert_varshamov(d, eps), 2) == printed


@pytest.mark.parametrize(("d", "border"), [(1024, 0.218), (2048, 0.159), (4096, 0.115), (8192, 0.082)])
def test_where_random_coding_overtakes_full(d, border):
    grid = np.arange(border - 0.02, border + 0.02, 0.0005)
    ahead = gilbert_varshamov(d, grid) * LN10 > full.log_k(d, grid)
    assert not ahead[grid < border - 0.00075].any()
    assert ahead[grid > border + 0.00075].all()


@pytest.mark.parametrize(("k", "d"), [(1000, 16), (1e6, 64), (10**40, 512), (10**4, 3)])
def test_gilbert_varshamov_coherence_is_the_inverse(k, d):
    eps = gilbert_varshamov_coherence(k, d)
    assert log_cap(d, eps) == pytest.approx(-math.log(k), rel=1e-11)


def test_gilbert_varshamov_coherence_where_a_basis_is_enough_and_on_a_line():
    assert gilbert_varshamov_coherence(64, 64) == 0.0
    assert gilbert_varshamov_coherence(2, 1) == 1.0


def test_a_greedy_choice_reaches_gilbert_varshamov():
    # The argument itself: keep every random line that is within eps of none kept. In R^4 at 0.6, 1/P = 4.06.
    d, eps = 4, 0.6
    rng = np.random.default_rng(0)
    kept = np.eye(d)
    for line in rng.standard_normal((4000, d)):
        line /= np.linalg.norm(line)
        if np.abs(kept @ line).max() <= eps:
            kept = np.vstack([kept, line])
    assert len(kept) >= 10 ** gilbert_varshamov(d, eps)


def test_random_coherence_against_simulation():
    rng = np.random.default_rng(1)
    k, d, draws = 60, 10, 400
    found = []
    for _ in range(draws):
        x = rng.standard_normal((k, d))
        x /= np.linalg.norm(x, axis=1, keepdims=True)
        found.append(np.abs(x @ x.T - np.eye(k)).max())
    assert np.median(found) == pytest.approx(random_coherence(k, d), rel=0.01)
    best = np.min(np.reshape(found, (40, 10)), axis=1)
    assert np.median(best) == pytest.approx(random_coherence(k, d, trials=10), rel=0.015)


def test_random_coherence_of_one_pair_is_exact():
    # Two lines in space: |cos| is uniform on (0, 1).
    assert random_coherence(2, 3) == pytest.approx(0.5, rel=1e-9)


def test_random_coherence_against_the_published_draws():
    table = random_packing()
    ratios = np.array(
        [e / random_coherence(k, d, trials=1000) for k, d, e in zip(table.k, table.d, table.epsilon, strict=True)]
    )
    assert len(ratios) == 256
    assert round(float(ratios.mean()), 3) == 1.012
    assert round(float(ratios.std()), 3) == 0.008


@pytest.mark.parametrize(
    "call",
    [
        lambda: log_cap(64, 0.0),
        lambda: log_cap(0, 0.5),
        lambda: gilbert_varshamov(64, 1.0),
        lambda: gilbert_varshamov_coherence(1, 64),
        lambda: random_coherence(1.5, 64),
        lambda: random_coherence(10, 64, trials=0),
        lambda: random_coherence(float("nan"), 64),
    ],
)
def test_domains(call):
    with pytest.raises(DomainError):
        call()
