"""Explicit sets: number of lines, coherence over all pairs against the theorem and the proven bounds."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from repcap.constructions import by_command
from repcap.constructions.best import best_coherence
from repcap.constructions.build import best_lines, build, can_build, most_lines, named_lines
from repcap.constructions.families.known import golay, leech
from repcap.constructions.families.sporadic import BUILT
from repcap.constructions.lines import Prefix, Table
from repcap.errors import InputError
from repcap.laws.limits.bounds import coherence_lower_bound
from repcap.packing.coherence import coherence


def over_all_pairs(lines) -> float:
    """max |cos| where every entry is 0, 1 or +-2^-m: float32 sums of such products are exact."""
    rows = lines.read(0, lines.count).float()
    assert set(rows.abs().unique().tolist()) <= {0.0, 1.0, lines.dim**-0.5}
    worst = 0.0
    for first in range(0, len(rows), 2048):
        cosines = rows[first : first + 2048] @ rows[first:].T
        cosines[:, :2048].fill_diagonal_(0.0)
        worst = max(worst, float(cosines.max()), -float(cosines.min()))
    return worst


@pytest.mark.parametrize(("m", "k"), [(1, 12), (2, 144), (3, 2112), (4, 33024)])
def test_kerdock_over_all_pairs(m, k):
    d = 4**m
    lines = named_lines("kerdock", d)
    assert lines.count == k == d * (d // 2 + 1)
    assert over_all_pairs(lines) == 1 / math.sqrt(d)


@pytest.mark.parametrize(("d", "r", "k"), [(16, 1, 1040), (64, 1, 65600)])
def test_delsarte_goethals_over_all_pairs(d, r, k):
    lines = named_lines("delsarte-goethals", d, r=r)
    assert lines.count == k
    assert over_all_pairs(lines) == 2**r / math.sqrt(d)


def test_kerdock_is_a_union_of_orthonormal_bases():
    rows = named_lines("kerdock", 16).read(0, 144)
    bases = rows.view(9, 16, 16)
    assert torch.allclose(bases @ bases.mT, torch.eye(16, dtype=rows.dtype).expand(9, 16, 16), atol=1e-14)
    cosines = (rows @ rows.T).abs()
    between = torch.kron(1 - torch.eye(9), torch.ones(16, 16)).bool()
    assert torch.allclose(cosines[between], torch.full((1,), 0.25, dtype=rows.dtype), atol=1e-14)


@pytest.mark.parametrize("name", ["kerdock", "delsarte-goethals"])
def test_dimension_1024_by_sampled_pairs(name):
    lines = named_lines(name, 1024)
    generator = np.random.default_rng(0)
    picked = torch.cat([lines.read(int(i), int(i) + 1) for i in generator.choice(lines.count, 300, replace=False)])
    assert coherence(picked).value <= lines.claimed + 1e-12
    block = int(generator.integers(lines.count // 1024))
    neighbours = lines.read(block * 1024 + 512, block * 1024 + 512 + 600)  # two different bases
    assert coherence(neighbours).value <= lines.claimed + 1e-12
    assert lines.claimed == {"kerdock": 1 / 32, "delsarte-goethals": 2 / 32}[name]


@pytest.mark.parametrize(
    ("name", "d", "params", "k"),
    [
        ("quadratic-forms", 8, {"h": 1}, 72),
        ("quadratic-forms", 32, {"h": 2}, 1056),
        ("bch", 32, {"t": 2}, 1056),
        ("bch", 64, {"t": 2}, 4160),
        ("exponential-sums", 10, {"n": 2}, 50),
        ("exponential-sums", 18, {"n": 2}, 162),
        ("exponential-sums", 14, {"n": 3}, 686),
        ("exponential-sums", 18, {"n": 3}, 162),
        ("exponential-sums", 50, {"n": 2}, 1250),
        ("hadamard", 8, {}, 16),
        ("orthonormal", 7, {}, 7),
        ("simplex", 9, {}, 10),
        ("root-d", 6, {}, 30),
        ("conference", 5, {}, 10),
        ("conference", 13, {}, 26),
    ],
)
def test_family_keeps_its_promise(name, d, params, k):
    lines = named_lines(name, d, **params)
    assert (lines.count, lines.dim) == (k, d)
    found = coherence(lines).value
    assert found <= lines.claimed + 1e-12
    if lines.exact:
        assert found == pytest.approx(lines.claimed, abs=1e-12)


@pytest.mark.parametrize(("k", "d"), sorted(key for key in BUILT if key[0] <= 2300))
def test_sporadic_sets(k, d):
    known = BUILT[k, d]
    claimed = known.coherence
    lines = Table(known.name, known.vectors(), claimed)
    assert (lines.count, lines.dim) == (k, d)
    assert coherence(lines).value == pytest.approx(claimed, abs=1e-12)
    if (k, d) in {(6, 3), (16, 6), (28, 7), (36, 15), (276, 23), (12, 4), (36, 6), (63, 7), (120, 8), (2300, 23)}:
        assert coherence_lower_bound(k, d).value == pytest.approx(claimed, rel=1e-6)


def test_leech_lattice_lines():
    rows = torch.from_numpy(leech())
    assert rows.shape == (98280, 24)
    assert bool(((rows**2).sum(dim=1) == 32).all())
    sample = rows[torch.from_numpy(np.random.default_rng(1).choice(98280, 60, replace=False))]
    products = {abs(int(v)) for v in (sample @ rows.T).unique()}
    assert products == {0, 8, 16, 32}
    # 32 only against itself: all lines differ.
    assert int(((sample @ rows.T).abs() == 32).sum()) == 60


def test_golay_code_weights():
    weights, counts = np.unique(golay().sum(axis=1), return_counts=True)
    assert dict(zip(weights.tolist(), counts.tolist(), strict=True)) == {0: 1, 8: 759, 12: 2576, 16: 759, 24: 1}


@pytest.mark.parametrize(
    ("k", "d", "most"),
    [(2000, 64, 0.125), (2000, 256, 0.0625), (64, 8, 0.5), (5, 9, 0.0), (10, 9, 1 / 9), (300, 20, 0.5), (50, 2, 0.999)],
)
def test_best_lines_are_as_good_as_promised(k, d, most):
    lines = best_lines(k, d)
    assert lines is not None
    assert (lines.count, lines.dim) == (k, d)
    assert coherence(lines).value <= min(most, lines.claimed) + 1e-9


@pytest.mark.parametrize(("d", "eps"), [(7, 0.34), (20, 0.4), (64, 0.13), (23, 0.2), (3, 0.6), (100, 0.15), (1, 0.5)])
def test_most_lines_stay_within_eps(d, eps):
    lines = most_lines(d, eps)
    assert lines.dim == d
    assert lines.count >= d
    if lines.count > 1:
        assert coherence(Prefix(lines, min(lines.count, 4000))).value <= eps + 1e-9


def test_laws_and_vectors_agree_on_number_and_coherence():
    seen = set()
    for d in (*range(2, 26), 32, 50, 64, 98):
        for k in (d, d + 1, 2 * d, d * d // 2, d * d // 2 + 1):
            described = best_coherence(k, d, built=True)
            if not can_build(described) or described.k is None or described.k * d > 2e6:
                continue
            seen.add(described.family)
            lines = build(described)
            assert (lines.count, lines.dim) == (described.k, d), described.name
            assert lines.claimed == pytest.approx(described.coherence, rel=1e-12)
            assert coherence(Prefix(lines, min(lines.count, 600))).value <= described.coherence + 1e-9, described.name
    assert {"orthonormal", "simplex", "sporadic", "kerdock", "direct_sum", "exponential_sums", "conference"} <= seen


def test_reading_any_rows_gives_the_same_vectors():
    for name, d in [("kerdock", 16), ("exponential-sums", 18), ("quadratic-forms", 32), ("exact", 7)]:
        lines = named_lines(name, d)
        whole = lines.read(0, lines.count)
        pieces = [lines.read(i, min(i + 7, lines.count)) for i in range(0, lines.count, 7)]
        assert torch.equal(torch.cat(pieces), whole)


@pytest.mark.parametrize(
    ("name", "d", "params", "match"),
    [
        ("kerdok", 64, {}, "no construction is called"),
        ("kerdock", 32, {}, "4\\^m"),
        ("kerdock", 60, {}, "2\\^M"),
        ("kerdock", 64, {"r": 1}, "takes no parameter"),
        ("delsarte-goethals", 16, {"r": 2}, "r < m"),
        ("quadratic-forms", 64, {}, "M odd"),
        ("bch", 8, {"t": 4}, "2t - 2"),
        ("exponential-sums", 12, {}, "odd prime power"),
        ("exponential-sums", 14, {"n": 9}, "nothing is proven"),  # x^7 = x: the same functions again
        ("exponential-sums", 18, {"n": 4}, "nothing is proven"),
        ("exact", 9, {}, "no exact set"),
        ("conference", 8, {}, "prime power"),
        ("simplex", 1, {}, "d >= 2"),
    ],
)
def test_what_cannot_be_built(name, d, params, match):
    with pytest.raises(InputError, match=match):
        named_lines(name, d, **params)
    assert "kerdock" in by_command()
