"""Lines in the plane, against 60-digit arithmetic."""

from __future__ import annotations

import math

import pytest
from mpmath import mp

from repcap.errors import DomainError
from repcap.laws.limits.plane import lines_in_plane

COUNTS = [*range(2, 400), 999, 10_000, 70_283, 100_003]


def test_the_float_nearest_to_cos_pi_over_k_allows_k_lines_and_no_more():
    for k in COUNTS[1:]:
        assert lines_in_plane(math.cos(math.pi / k)) == k


@pytest.mark.parametrize("eps", [1e-300, 1e-9, 0.1, 0.4999, 0.6, 0.9, 0.999, 0.999999, 1 - 1e-9, 1 - 1e-12])
def test_as_many_as_fit_by_exact_arithmetic(eps):
    with mp.workdps(60):
        exact = int(mp.floor(mp.pi / mp.acos(mp.mpf(eps))))
        least = int(mp.floor(mp.pi / mp.acos(mp.mpf(eps) + mp.mpf(2) ** -53)))
    assert exact <= lines_in_plane(eps) <= max(exact, least)


def test_the_last_float_below_one_gives_a_finite_number():
    assert 1e8 < lines_in_plane(math.nextafter(1.0, 0.0)) < 1e9


@pytest.mark.parametrize("eps", [0.0, 1.0, -0.5, math.nan])
def test_outside_the_domain(eps):
    with pytest.raises(DomainError, match="0 < epsilon < 1"):
        lines_in_plane(eps)
