"""All pairs, streamed, against all pairs at once in float64."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from repcap.errors import InputError, VectorsError
from repcap.geometry.pairs import blocks
from repcap.geometry.pairs.count import count_pairs, count_panels, panel_pairs
from repcap.geometry.pairs.histogram import FINE_BINS, PairCounts, Wanted
from repcap.matrix import TensorMatrix

WIDTH = 2.0 / FINE_BINS


def cosines(rows, mask=None):
    """(n, n) float64 brute force of the rows that have a direction, and their numbers."""
    rows = rows.double()
    good = torch.isfinite(rows).all(1) & (rows != 0).any(1)
    if mask is not None:
        good &= torch.from_numpy(mask)
    ids = good.nonzero()[:, 0].numpy()
    unit = rows[good]
    unit = unit / unit.abs().amax(1, keepdim=True)
    unit = unit / unit.norm(dim=1, keepdim=True)
    return (unit @ unit.T).numpy(), ids


def upper(table):
    return table[np.triu_indices(len(table), 1)]


def assert_counts(counted, expected, slack=2e-7):
    """Every cumulative count lies between those of the expected cosines moved by the slack of float32."""
    edges = np.linspace(-1, 1, FINE_BINS + 1)[1:-1]
    cumulative = np.cumsum(counted.counts)[:-1]
    expected = np.sort(expected)
    assert (cumulative >= np.searchsorted(expected, edges - slack)).all()
    assert (cumulative <= np.searchsorted(expected, edges + slack)).all()
    assert counted.pairs == len(expected)


@settings(max_examples=60)
@given(
    n=st.integers(2, 90),
    d=st.integers(1, 40),
    seed=st.integers(0, 999),
    dtype=st.sampled_from([torch.float64, torch.float32, torch.bfloat16, torch.float16]),
    panel=st.sampled_from([1, 7, 32, 1000]),
    spoil=st.booleans(),
)
def test_against_brute_force(n, d, seed, dtype, panel, spoil):
    rng = np.random.default_rng(seed)
    rows = torch.from_numpy(rng.standard_normal((n, d)) + 0.3).to(dtype)
    if spoil and n > 4:
        rows[1] = 0
        rows[2, 0] = float("nan")
        rows[3] = rows[0]
    table, ids = cosines(rows)
    counted = count_pairs(TensorMatrix(rows), panel=panel, wanted=Wanted(5), device="cpu")
    expected = upper(table)
    assert_counts(counted, expected)
    ranked = np.sort(expected)
    assert [e.cosine for e in counted.largest] == pytest.approx(ranked[::-1][:5].tolist(), abs=2e-7)
    assert [e.cosine for e in counted.smallest] == pytest.approx(ranked[:5].tolist(), abs=2e-7)
    at = {row: position for position, row in enumerate(ids)}
    for extreme in counted.largest + counted.smallest:
        assert extreme.i < extreme.j
        assert table[at[extreme.i], at[extreme.j]] == pytest.approx(extreme.cosine, abs=2e-7)


def test_blocks_inside_a_panel(monkeypatch):
    monkeypatch.setattr(blocks, "BLOCK", 13)
    rows = torch.randn(100, 8, generator=torch.Generator().manual_seed(0))
    counted = count_pairs(TensorMatrix(rows), panel=40, wanted=Wanted(8), device="cpu")
    assert_counts(counted, upper(cosines(rows)[0]))


def test_the_lane_of_an_accelerator_gives_the_same_counts(monkeypatch):
    rows = torch.randn(300, 8, generator=torch.Generator().manual_seed(1))
    plain = count_pairs(TensorMatrix(rows), wanted=Wanted(4), panel=128, device="cpu")
    monkeypatch.setattr(blocks, "_CpuLanes", blocks._DeviceLane)
    counted = count_pairs(TensorMatrix(rows), wanted=Wanted(4), panel=128, device="cpu")
    assert_counts(counted, upper(cosines(rows)[0]))
    assert [e.cosine for e in counted.largest] == pytest.approx([e.cosine for e in plain.largest], abs=1e-7)


def test_small_memory_reads_again_and_agrees():
    rows = torch.randn(200, 16, generator=torch.Generator().manual_seed(2))
    whole, thrifty = TensorMatrix(rows), TensorMatrix(rows)
    a = count_pairs(whole, panel=20, device="cpu")
    b = count_pairs(thrifty, panel=20, device="cpu", memory=0)
    assert a.to_dict() == b.to_dict()
    assert whole.bytes_read == rows.numel() * 4
    assert thrifty.bytes_read > whole.bytes_read


@given(n=st.integers(1, 60), panel=st.integers(1, 20))
def test_panel_pairs_cover_every_pair_once(n, panel):
    seen = np.zeros((n, n), dtype=int)
    for first, second in panel_pairs(n, panel):
        seen[first : first + panel, second : second + panel] += 1
    assert (seen[np.triu_indices(n, 1)] == 1).all()


def test_any_split_of_the_panels_adds_up_to_the_whole():
    rows = torch.randn(150, 10, generator=torch.Generator().manual_seed(3))
    whole = count_pairs(TensorMatrix(rows), panel=32, wanted=Wanted(6), device="cpu")
    chosen = panel_pairs(150, 32)
    parts = [count_panels(TensorMatrix(rows), chosen[i::3], panel=32, wanted=Wanted(6), device="cpu") for i in range(3)]
    shipped = [PairCounts.from_dict(json.loads(json.dumps(part.to_dict()))) for part in parts]
    total = PairCounts.empty(wanted=Wanted(6)) + shipped[2] + shipped[0] + shipped[1]
    assert total.to_dict() == whole.to_dict()


def test_of_equally_near_pairs_those_of_the_lowest_numbers_are_named():
    rows = torch.eye(4)[torch.arange(90) % 4]
    every = [(i, j) for i in range(90) for j in range(i + 1, 90)]
    near = [pair for pair in every if (pair[0] - pair[1]) % 4 == 0][:5]
    far = [pair for pair in every if (pair[0] - pair[1]) % 4][:5]
    for panel in (1, 7, 32, 1000):
        counted = count_pairs(TensorMatrix(rows), panel=panel, wanted=Wanted(5), device="cpu")
        assert [(e.i, e.j) for e in counted.largest] == near
        assert [(e.i, e.j) for e in counted.smallest] == far


@settings(max_examples=30)
@given(n=st.integers(2, 60), seed=st.integers(0, 99), epsilon=st.floats(-0.9, 0.9), panel=st.sampled_from([9, 100]))
def test_pairs_beyond_epsilon_and_moments(n, seed, epsilon, panel):
    rows = torch.from_numpy(np.random.default_rng(seed).standard_normal((n, 5)) + 0.4)
    expected = upper(cosines(rows)[0])
    counted = count_pairs(TensorMatrix(rows), panel=panel, wanted=Wanted(1, expected.mean(), epsilon), device="cpu")
    assert (expected > epsilon + 1e-6).sum() <= counted.above <= (expected > epsilon).sum()
    assert (expected < -epsilon - 1e-6).sum() <= counted.below <= (expected < -epsilon).sum()
    mean, std, skewness, kurtosis = counted.moments()
    assert (mean, std) == pytest.approx((expected.mean(), expected.std()), abs=1e-7)
    if expected.std() > 0.01:
        third, fourth = (((expected - expected.mean()) / expected.std()) ** power for power in (3, 4))
        assert (skewness, kurtosis) == pytest.approx((third.mean(), fourth.mean() - 3.0), abs=1e-4)


def test_mask_leaves_rows_out():
    rows = torch.randn(60, 5, generator=torch.Generator().manual_seed(4))
    mask = np.arange(60) % 3 != 0
    counted = count_pairs(TensorMatrix(rows), mask=mask, panel=16, device="cpu")
    assert_counts(counted, upper(cosines(rows, mask)[0]))
    assert all(mask[e.i] and mask[e.j] for e in counted.largest)


def test_identical_and_opposite_rows_fall_into_the_outer_bins():
    rows = torch.tensor([[3.0, 4.0]] * 3 + [[-3.0, -4.0]] * 2)
    counted = count_pairs(TensorMatrix(rows), device="cpu")
    assert counted.counts[-1] == 4
    assert counted.counts[0] == 6
    assert counted.largest[0].cosine <= 1.0


def test_number_of_threads_is_restored():
    before = torch.get_num_threads()
    count_pairs(TensorMatrix(torch.randn(10, 3)), device="cpu")
    assert torch.get_num_threads() == before


@pytest.mark.parametrize(
    ("rows", "options", "error", "message"),
    [
        (torch.zeros(5, 3), {}, VectorsError, "no pair of rows that have a direction"),
        (torch.ones(1, 3), {}, VectorsError, "no pair of rows that have a direction"),
        (torch.ones(4, 3), {"panel": 0}, InputError, "panel must be at least 1"),
        (torch.ones(4, 3), {"mask": np.ones(3, bool)}, InputError, r"mask must have shape \(4,\), got \(3,\)"),
        (torch.ones(4, 3, dtype=torch.int64), {}, VectorsError, "int64 values are codes"),
    ],
)
def test_bad_input(rows, options, error, message):
    with pytest.raises(error, match=message):
        count_pairs(TensorMatrix(rows), device="cpu", **options)


def test_kurtosis_of_real_rows_keeps_its_digits(smollm2_rows):
    """Sums in float64: the float32 dot product of 131072 fourth powers was 1e-5 short."""
    rows = smollm2_rows[::24]
    expected = upper(cosines(rows)[0])
    counted = count_pairs(TensorMatrix(rows), wanted=Wanted(centre=float(expected.mean())), device="cpu")
    skewness, kurtosis = counted.moments()[2:]
    third, fourth = (((expected - expected.mean()) / expected.std()) ** power for power in (3, 4))
    assert (skewness, kurtosis) == pytest.approx((third.mean(), fourth.mean() - 3.0), abs=5e-7)
