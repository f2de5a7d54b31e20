"""The best explicit set: printed values, never above the bounds, monotone, buildable descriptions."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from repcap.constructions import CONSTRUCTIONS
from repcap.constructions.best import best_coherence, best_construction
from repcap.constructions.direct_sum import best_parts
from repcap.errors import DomainError
from repcap.laws.fitting.data import optimized_packing
from repcap.laws.limits.bounds import coherence_lower_bound, upper_bound
from repcap.laws.limits.existence import gilbert_varshamov


@pytest.mark.parametrize(
    ("d", "eps", "k", "log10_k", "name"),
    [
        (4096, 0.0645, 2**45 + 4096, 13.55, "Delsarte-Goethals r=2"),
        (8192, 0.0996, 2**90, 27.09, "RS[128,13] over GF(128) with RM(1,6)"),
        (2048, 0.0633, 2**33 + 2048, 9.93, "quadratic forms h=4"),
        (64, 0.125, 2112, 3.32, "Kerdock (real MUBs)"),
    ],
)
def test_printed_values(d, eps, k, log10_k, name):
    found = best_construction(d, eps)
    assert (found.k, round(found.log10_k, 2), found.name) == (k, log10_k, name)


def test_what_is_left_over_holds_axes_or_more():
    # 0.0996 < 1/6: six coordinates hold axes, not a simplex.
    found = best_construction(8192, 0.0996, ("exponential_sums", "simplex"))
    assert (found.k, found.name) == (2 * 4093**7 + 6, "exponential sums q=4093 degree<=7 in R^8186 + 6 axes")


def test_a_direct_sum_is_the_best_of_its_blocks():
    # The largest block first, then the largest for the rest: 2300 + 162 + 4.
    found = best_construction(44, 1 / 3)
    assert (found.k, found.name) == (2816, "2 x Leech section in R^22")
    # Two members of one family, neither the largest that fits: 74 lines of R^37 and an axis are fewer.
    assert best_construction(38, 1 / math.sqrt(37), ("conference",)).k == 76


def test_dynamic_programming_against_every_partition():
    def most(d, cap, blocks):
        """Over all ways to write d as a sum of dimensions, none above the one before."""
        return max((blocks[part] + most(d - part, part, blocks) for part in range(1, min(d, cap) + 1)), default=0)

    families = ("simplex", "root_d", "conference", "sporadic", "hadamard")
    for eps in (0.2, 1 / 3, 0.45, 0.5, 0.6):
        blocks = {1: 1}
        for size in range(2, 19):
            held = [b.k for name in families for b in CONSTRUCTIONS[name].members(size, eps) if b.d == size]
            blocks[size] = max(held, default=0)
        for d in (7, 13, 18):
            assert best_construction(d, eps, families).k == most(d, d, blocks), (d, eps)


@pytest.mark.parametrize(
    ("k", "d", "coherence"),
    [
        (28, 7, 1 / 3),
        (276, 23, 1 / 5),
        (120, 8, 1 / 2),
        (2112, 64, 1 / 8),
        (98280, 24, 1 / 2),
        (6, 3, 5**-0.5),
        (16, 6, 1 / 3),
        (36, 15, 1 / 5),
        (4000, 775, 1 / 31),
        (65, 64, 1 / 64),
        (7, 2, math.cos(math.pi / 7)),
    ],
)
def test_sets_that_are_optimal_are_found_and_proven_so(k, d, coherence):
    found = best_coherence(k, d)
    assert found.coherence == pytest.approx(coherence, rel=1e-12)
    assert found.coherence == pytest.approx(coherence_lower_bound(k, d).value, rel=1e-9)
    assert found.exact
    assert best_construction(d, coherence).k == k


@pytest.mark.parametrize(
    ("k", "d", "printed"),
    [(2000, 64, 0.125), (2000, 128, 0.125), (2000, 256, 0.0625), (2000, 512, 0.0625), (4000, 256, 0.0625)],
)
def test_printed_coherences(k, d, printed):
    assert best_coherence(k, d).coherence == printed


def test_a_leech_section_beats_the_families_in_32_dimensions():
    # 1/2 from the families of power-of-two dimension; 2300 lines of R^23 at 1/3, padded, are better.
    assert best_coherence(2000, 32).coherence == pytest.approx(1 / 3)
    families = ("kerdock", "delsarte_goethals", "quadratic_forms", "dual_bch", "exponential_sums")
    assert best_coherence(2000, 32, families).coherence == 0.5


def test_explicit_sets_against_the_published_packings():
    table = optimized_packing()
    cells = [(k, int(d), e) for k, d, e in zip(table.k, table.d, table.epsilon, strict=True) if k > d]
    assert len(cells) == 160
    better = sum(best_coherence(k, d).coherence < e for k, d, e in cells)
    assert better >= 120
    families = ("hadamard", "kerdock", "delsarte_goethals", "quadratic_forms", "dual_bch", "exponential_sums")
    assert sum(best_coherence(k, d, families).coherence < e for k, d, e in cells) == 120
    assert best_coherence(32000, 4096).coherence == 1 / 64


dims = st.one_of(st.integers(1, 300), st.integers(1, 20_000))


@settings(max_examples=200)
@given(dims, st.floats(0.003, 0.97))
def test_lower_limits_never_pass_the_upper_bound(d, eps):
    most = upper_bound(d, eps).log10_k + 1e-9
    assert best_construction(d, eps).log10_k <= most
    assert gilbert_varshamov(d, eps) <= most


@settings(max_examples=100)
@given(st.integers(2, 400), st.sampled_from([1.0, math.sqrt(2.0), 2.0, 3.0, 4.0]))
def test_lower_limits_never_pass_the_upper_bound_where_families_sit(d, factor):
    eps = factor / math.sqrt(d)
    if eps < 0.99:
        assert best_construction(d, eps).log10_k <= upper_bound(d, eps).log10_k + 1e-9


def fewer(here: int, there: int) -> bool:
    """Whether there are fewer lines there; above 10^15 as far as float64 tells numbers apart."""
    return here * (1 if here < 10**15 else 1 - Fraction(2, 10**15)) > there


@settings(max_examples=100)
@given(dims, st.floats(0.003, 0.97), st.floats(0.0001, 0.02))
def test_more_room_never_holds_fewer(d, eps, more):
    here = lines(d, eps)
    assert not fewer(here, lines(d, min(eps + more, 0.98)))
    assert not fewer(here, lines(d + 1, eps))


def lines(d: int, eps: float) -> int:
    return best_parts(d, eps, tuple(CONSTRUCTIONS), False)[0]


def test_numbers_rise_over_a_thousand_points_and_stay_below_what_is_possible():
    # Sums are found otherwise from 129 dimensions on; 609 and 1729 are 129 more than a block.
    widths = [
        2,
        3,
        5,
        8,
        16,
        23,
        24,
        48,
        64,
        97,
        98,
        127,
        128,
        129,
        256,
        385,
        609,
        640,
        769,
        935,
        1729,
        4096,
        16384,
        16500,
    ]
    grid = sorted([*np.geomspace(0.01, 0.98, 30), 0.05, 0.1, 0.125, 0.2, 0.25, 0.3, 1 / 3, 0.35, 0.5, 0.7, 0.75, 0.9])
    assert len(widths) * len(grid) >= 1000
    before = [1] * len(widths)
    for eps in map(float, grid):
        here = [lines(d, eps) for d in widths]
        assert not any(map(fewer, before, here)), eps
        assert not any(map(fewer, here, here[1:])), eps
        for d, k in zip(widths, here, strict=True):
            # From one d to the next, too, where it may be one of another kind.
            assert not fewer(lines(d - 1, eps), k), (d, eps)
            assert math.log10(k) <= upper_bound(d, eps).log10_k + 1e-9, (d, eps)
        before = here


@settings(max_examples=100)
@given(dims, st.floats(0.003, 0.97))
def test_what_a_construction_says_of_itself_adds_up(d, eps):
    found = best_construction(d, eps)
    assert found.coherence <= eps * (1 + 1e-9)
    assert found.d == d
    assert found.log10_k >= math.log10(d) - 1e-12
    if found.k is not None:
        assert math.log10(found.k) == pytest.approx(found.log10_k, abs=1e-12)
    if found.family == "direct_sum":
        parts = found.params["parts"]
        assert sum(part["d"] * part["copies"] for part in parts) == d
        assert max(part["coherence"] for part in parts) == found.coherence
        if found.k is not None:
            assert sum(part["k"] * part["copies"] for part in parts) == found.k


@settings(max_examples=60)
@given(st.integers(2, 3000), st.integers(2, 10**7))
def test_best_coherence_has_enough_lines_and_is_tight(d, k):
    found = best_coherence(k, d)
    if found.family == "repeated":
        return
    assert found.k is None or found.k >= k
    assert coherence_lower_bound(k, d).value <= found.coherence + 1e-9
    if 0 < found.coherence < 0.99:
        fewer = best_construction(d, found.coherence * (1 - 1e-9))
        assert fewer.k is not None
        assert fewer.k < k  # nothing below this coherence has enough


def test_two_copies_of_a_small_set_stand_side_by_side():
    found = best_construction(14, 1 / 3)
    assert (found.k, found.family) == (56, "direct_sum")
    assert found.params["parts"][0]["copies"] == 2


def test_huge_numbers_keep_their_logarithm_only():
    found = best_construction(10**6, 0.9)
    assert found.k is None
    assert found.log10_k > 300


def test_a_single_dimension_holds_one_line():
    assert best_construction(1, 0.5).k == 1
    assert best_coherence(3, 1).family == "repeated"
    assert best_coherence(3, 1).coherence == 1.0


def test_more_lines_than_any_family_has():
    found = best_coherence(10**9, 3)
    assert (found.family, found.coherence, found.k) == ("repeated", 1.0, 10**9)


def test_families_can_be_chosen():
    assert best_construction(64, 0.125, families=("hadamard",)).k == 128
    assert best_construction(64, 0.1, families=()).k == 64
    with pytest.raises(DomainError, match="'kerdok'"):
        best_construction(64, 0.125, families=("kerdok",))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: best_construction(0, 0.5), "d = 0"),
        (lambda: best_construction(3.5, 0.5), "d = 3.5"),
        (lambda: best_construction(64, float("nan")), "epsilon = nan"),
        (lambda: best_construction(64, 1.0), "epsilon = 1"),
        (lambda: best_coherence(1, 64), "k = 1"),
        (lambda: best_coherence(float("nan"), 64), "k = nan"),
    ],
)
def test_domains(call, words):
    with pytest.raises(DomainError, match=words):
        call()
