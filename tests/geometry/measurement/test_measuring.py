"""The whole measurement against brute force, and what must not change it."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from repcap.errors import InputError, OptionError, VectorsError
from repcap.geometry.measurement.measuring import MeasureOptions, measure_matrix
from repcap.matrix import Matrix, MatrixInfo, TensorMatrix


class Words:
    """A tokenizer that knows `count` ids."""

    def __init__(self, count: int) -> None:
        self.count = count

    def text(self, index: int) -> str | None:
        return f"word{index}" if index < self.count else None


def measure(stored: torch.Tensor, /, tokens: Words | None = None, on_progress=None, **options):
    asked = MeasureOptions(device="cpu", **options)
    return measure_matrix(TensorMatrix(stored, tokens=tokens), asked, on_progress=on_progress)


KINDS = ("noise", "offset", "cluster", "copies", "equal", "signs", "orthonormal", "simplex", "antipodal", "sparse")


def make_rows(kind: str, n: int, d: int, seed: int) -> torch.Tensor:
    """(n, d) float64 rows of one awkward kind."""
    g = torch.Generator().manual_seed(seed)
    x = torch.randn((n, d), generator=g, dtype=torch.float64)
    if kind == "offset":
        return x + 3.0 * torch.randn((1, d), generator=g, dtype=torch.float64)
    if kind == "cluster":  # cosines that differ in the sixth digit
        return 1e-3 * x + torch.randn((1, d), generator=g, dtype=torch.float64) + 0.1
    if kind == "copies":
        return x[torch.randint(0, max(1, n // 3), (n,), generator=g)]
    if kind == "equal":
        return x[:1].expand(n, d).clone()
    if kind == "signs":
        return torch.where(x < 0, -1.0, 1.0).double()
    if kind == "orthonormal":
        return torch.linalg.qr(torch.randn((d, d), generator=g, dtype=torch.float64))[0][:n]
    if kind == "simplex":
        m = min(n, d)
        return torch.eye(m, dtype=torch.float64) - 1.0 / m if m > 2 else x
    if kind == "antipodal":
        return torch.cat([x, -x])[:n]
    if kind == "sparse":
        return x * (torch.rand((n, d), generator=g) < 0.2)
    return x


@st.composite
def matrices(draw: st.DrawFn) -> torch.Tensor:
    kind = draw(st.sampled_from(KINDS))
    n, d = draw(st.integers(2, 200)), draw(st.integers(1, 70))
    rows = make_rows(kind, n, d, draw(st.integers(0, 2**20)))
    if draw(st.booleans()):
        rows = rows.clone()
        rows[:: draw(st.integers(2, 9))] = draw(st.sampled_from([0.0, math.nan, math.inf]))
    return rows.to(draw(st.sampled_from([torch.float64, torch.float32, torch.float16, torch.bfloat16])))


def directions(rows: torch.Tensor) -> int:
    return int((torch.isfinite(rows).all(1) & (rows != 0).any(1)).sum())


@settings(max_examples=150)
@given(rows=matrices(), z=st.sampled_from([2.0, 0.0, 3.5]), block=st.sampled_from([None, 1, 7, 64]))
def test_epsilon_is_that_of_all_pairs(rows, z, block, brute):
    if directions(rows) < 2:
        with pytest.raises(VectorsError, match="a cosine needs two"):
            measure(rows, z=z, block_rows=block)
        return
    truth = brute(rows)
    single = measure(rows, z=z, block_rows=block)
    assert single.count == directions(rows)
    assert single.findings.dropped_count == len(rows) - single.count
    assert single.epsilon == pytest.approx(truth.epsilon(z), rel=0, abs=1e-6)
    double = measure(rows, z=z, block_rows=block, dtype="float64")
    assert double.mean == pytest.approx(truth.mean, rel=0, abs=1e-12)
    assert double.std == pytest.approx(truth.std, rel=0, abs=1e-12)
    assert double.epsilon == pytest.approx(truth.epsilon(z), rel=0, abs=1e-12)


@pytest.mark.parametrize("kind", ["noise", "offset", "cluster", "copies", "equal", "signs"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_many_rows_in_few_dimensions_over_many_blocks(kind, dtype, brute):
    rows = make_rows(kind, 1700, 24, seed=5)
    found = measure(rows, block_rows=128, dtype=dtype)
    tolerance = 1e-6 if dtype == "float32" else 1e-12
    assert found.epsilon == pytest.approx(brute(rows).epsilon(), rel=0, abs=tolerance)


def test_known_sets():
    """Cosines that are known without computing: orthonormal basis, simplex, icosahedron's six lines, E8's roots."""
    basis = measure(torch.eye(12))
    assert (basis.mean, basis.std, basis.epsilon, basis.class_name) == (0.0, 0.0, 0.0, "low")
    simplex = measure(torch.eye(12, dtype=torch.float64) - 1.0 / 12)
    assert simplex.mean == pytest.approx(-1.0 / 11, abs=1e-13)
    assert simplex.std == pytest.approx(0.0, abs=1e-13)
    phi = (1 + math.sqrt(5)) / 2
    lines = torch.tensor([[0, 1, phi], [0, 1, -phi], [1, phi, 0], [1, -phi, 0], [phi, 0, 1], [-phi, 0, 1]])
    assert measure(lines.double(), dtype="float64").spread.second == pytest.approx(
        1 / 5, abs=1e-13
    )  # equiangular at 1/sqrt(5)
    pairs = [(i, j, a, b) for i in range(8) for j in range(i) for a in (1, -1) for b in (1, -1)]
    roots = torch.zeros((112, 8), dtype=torch.float64)
    for row, (i, j, a, b) in enumerate(pairs):
        roots[row, i], roots[row, j] = a, b
    signs = torch.cartesian_prod(*[torch.tensor([0.5, -0.5], dtype=torch.float64)] * 8)
    e8 = torch.cat([roots, signs[(signs < 0).sum(1) % 2 == 0]])
    found = measure(e8, dtype="float64")
    assert found.count == 240  # a tight frame: sum of squared cosines n^2 / d
    assert found.spread.second == pytest.approx((240**2 / 8 - 240) / (240 * 239), abs=1e-13)
    assert found.mean == pytest.approx(-1 / 239, abs=1e-13)


@settings(max_examples=40)
@given(seed=st.integers(0, 10**6), n=st.integers(3, 90), d=st.integers(2, 40))
def test_order_scale_and_rotation_do_not_matter(seed, n, d):
    rows = make_rows("offset", n, d, seed)
    g = torch.Generator().manual_seed(seed)
    want = measure(rows, dtype="float64").epsilon
    shuffled = rows[torch.randperm(n, generator=g)]
    scaled = rows * torch.exp(10 * torch.randn((n, 1), generator=g, dtype=torch.float64))
    rotation = torch.linalg.qr(torch.randn((d, d), generator=g, dtype=torch.float64))[0]
    for changed in (shuffled, scaled, rows @ rotation):
        assert measure(changed, dtype="float64").epsilon == pytest.approx(want, rel=0, abs=1e-11)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("length", [1e-30, 1e-20, 1e18, 1e36])
def test_length_is_no_direction(dtype, length, brute):
    rows = (torch.randn((60, 20), generator=torch.Generator().manual_seed(1)) * length).to(dtype)
    assert measure(rows).epsilon == pytest.approx(brute(rows).epsilon(), abs=1e-6)


@pytest.mark.parametrize("length", [1e-300, 1e-160, 1e160, 1e307])
def test_length_is_no_direction_in_float64(length, brute):
    rows = torch.randn((60, 20), generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    rows = rows / rows.abs().max() * length
    for dtype, tolerance in (("float32", 1e-6), ("float64", 1e-12)):
        assert measure(rows, dtype=dtype).epsilon == pytest.approx(brute(rows).epsilon(), abs=tolerance)


def test_same_matrix_in_three_precisions_agrees(smollm2_rows):
    rows = smollm2_rows[:1500]
    for dtype in (torch.bfloat16, torch.float16, torch.float32):
        stored = rows.to(dtype)
        want = measure(stored, dtype="float64").epsilon
        assert measure(stored).epsilon == pytest.approx(want, abs=1e-6)


def test_smollm2_has_its_published_shape(smollm2_rows):
    found = measure(smollm2_rows, tokens=Words(49152))
    assert found.mean == pytest.approx(0.442314, abs=2e-6)
    assert found.std == pytest.approx(0.143181, abs=2e-6)
    assert found.epsilon == pytest.approx(0.728677, abs=2e-6)
    assert (found.count, found.dim, found.class_name) == (49152, 576, "high")
    by_label = {spread.rows: spread for spread in found.variants}
    # One direction holds nearly half of the squared length; without it the matrix is no longer class high.
    assert found.spectrum.top_share == pytest.approx(0.464, abs=1e-3)
    assert by_label["top 1"].class_name == "between"
    assert by_label["centred"].epsilon == pytest.approx(0.2058, abs=2e-4)
    assert found.common is not None
    assert found.common.startswith("One common direction accounts for nearly all of the crowding")


def test_padding_and_duplicates_have_their_own_lines(brute):
    rows = make_rows("offset", 300, 16, seed=3).float()
    rows[250:] = rows[250]  # fifty padded rows that are all alike
    rows[10] = 4.0 * rows[11]  # the same direction at another length
    found = measure(rows, tokens=Words(250), block_rows=64)
    by_label = {spread.rows: spread for spread in found.variants}
    keep = torch.ones(300, dtype=torch.bool)
    keep[11] = keep[251:] = False
    assert found.epsilon == pytest.approx(brute(rows).epsilon(), abs=1e-6)
    assert by_label["tokenizer"].epsilon == pytest.approx(brute(rows[:250]).epsilon(), abs=1e-6)
    assert by_label["distinct"].epsilon == pytest.approx(brute(rows[keep]).epsilon(), abs=1e-6)
    assert by_label["tokenizer, distinct"].epsilon == pytest.approx(brute(rows[:250][keep[:250]]).epsilon(), abs=1e-6)
    assert (found.findings.padding_rows, found.findings.repeat_rows) == (50, 50)
    assert [(group.size, group.indices[:2]) for group in found.findings.repeats] == [(50, (250, 251)), (2, (10, 11))]
    assert found.findings.repeats[1].tokens == ("word10", "word11")


def test_dropped_and_tiny_rows_are_named():
    rows = make_rows("noise", 40, 8, seed=1)
    rows[3], rows[5, 2], rows[6, 0] = 0.0, math.nan, -math.inf
    rows[7] *= 1e-5
    found = measure(rows, tokens=Words(38))
    assert [note.to_dict() for note in found.findings.dropped] == [
        {"index": 3, "reason": "zero", "token": "word3"},
        {"index": 5, "reason": "non-finite", "token": "word5"},
        {"index": 6, "reason": "non-finite", "token": "word6"},
    ]
    assert [note.index for note in found.findings.tiny] == [7]
    assert found.count == 37  # the tiny row is measured


def test_choosing_rows(brute):
    rows = make_rows("offset", 120, 10, seed=2)
    assert measure(rows, vocab_size=50).epsilon == pytest.approx(brute(rows[:50]).epsilon(), abs=1e-6)
    assert measure(rows, only_ids=[3, 99, 4, 60]).epsilon == pytest.approx(
        brute(rows[[3, 4, 60, 99]]).epsilon(), abs=1e-6
    )
    kept = torch.ones(120, dtype=torch.bool)
    kept[[0, 119]] = kept[20:30] = False
    found = measure(rows, exclude_ids=[0, 119, *range(20, 30)], block_rows=11)
    assert found.epsilon == pytest.approx(brute(rows[kept]).epsilon(), abs=1e-6)


BAD = [
    (torch.empty((0, 5)), VectorsError, "has no rows"),
    (torch.empty((5, 0)), VectorsError, "has no columns"),
    (torch.ones((1, 5)), VectorsError, "1 row with a direction: a cosine needs two"),
    (torch.zeros((4, 5)), VectorsError, r"0 rows with a direction \(4 zero left out\)"),
    (torch.full((4, 5), math.nan), VectorsError, r"0 rows with a direction \(4 non-finite left out\)"),
    (torch.ones((4, 5), dtype=torch.complex64), VectorsError, "complex values"),
    (torch.ones((4, 5), dtype=torch.int8), VectorsError, "int8 values are codes"),
    (torch.ones((4, 5), dtype=torch.bool), VectorsError, "bool values are codes"),
]


@pytest.mark.parametrize(("rows", "error", "message"), BAD)
def test_what_has_no_geometry_is_refused(rows, error, message):
    with pytest.raises(error, match=message):
        measure(rows)


class Cube(Matrix):
    """A source that hands out blocks with three dimensions."""

    info = MatrixInfo("cube", "cube", 6, 4, "float32")

    def read(self, start: int, stop: int) -> torch.Tensor:
        return torch.zeros((stop - start, 4, 2))


def test_three_dimensions_are_refused():
    with pytest.raises(VectorsError, match=r"one vector a row, got 3 dimensions \(6x4x2\)"):
        measure_matrix(Cube(), MeasureOptions(device="cpu"))


OPTIONS = [
    ({"z": math.nan}, OptionError, "z = nan: give a finite number"),
    ({"z": -1.0}, OptionError, "z = -1.0: give a finite z >= 0"),
    ({"z": math.inf}, OptionError, "z = inf: give a finite number"),
    ({"exclude_ids": [40]}, InputError, r"--exclude-ids: 40 is no row of the matrix; rows are 0..39"),
    ({"only_ids": [-1]}, InputError, "--only-ids: -1 is no row"),
    ({"vocab_size": 41}, InputError, "vocabulary size 41 is outside 1..40"),
    ({"vocab_size": 0}, InputError, "vocabulary size 0"),
    ({"exclude_ids": range(40)}, VectorsError, "0 rows with a direction"),
    ({"only_ids": [4]}, VectorsError, "1 row with a direction"),
    ({"dtype": "float16"}, OptionError, "dtype = float16: use float32, float64"),
    ({"block_rows": 0}, OptionError, "block_rows = 0: a block"),
    ({"rows": 5}, InputError, "--rows 5 is too few"),
    ({"rows": 30, "influence": 3}, OptionError, "influence = 3: it needs all rows"),
    ({"influence": -1}, OptionError, "influence = -1: give how many"),
    ({"remove_top": -1}, OptionError, "remove_top = -1: give how many"),
    ({"remove_top": 8}, InputError, "--remove-top 8 leaves nothing"),
]


@pytest.mark.parametrize(("options", "error", "message"), OPTIONS)
def test_options_that_mean_nothing_are_refused(options, error, message):
    with pytest.raises(error, match=message):
        measure(make_rows("noise", 40, 8, seed=1), **options)


def test_one_dimension_has_an_answer_and_a_note():
    found = measure(torch.tensor([[1.0], [-2.0], [3.0], [4.0]]))
    assert found.mean == pytest.approx(0.0, abs=1e-12)  # three pairs at +1, three at -1
    assert found.std == pytest.approx(1.0)
    assert any("d = 1" in note for note in found.notes)


def test_narrow_matrices_carry_the_warning_about_class_borders():
    narrow = measure(make_rows("noise", 500, 64, seed=1))
    assert narrow.class_name == "high"
    assert any("do not depend on d" in note and "0.250" in note for note in narrow.notes)
    wide = measure(torch.randn((50, 400), generator=torch.Generator().manual_seed(0)))
    assert not any("do not depend on d" in note for note in wide.notes)


def test_class_is_that_of_two_standard_deviations_whatever_z():
    rows = make_rows("offset", 200, 16, seed=4)
    at_two, at_zero = measure(rows), measure(rows, z=0.0)
    assert at_zero.epsilon == pytest.approx(at_zero.mean)
    assert at_zero.class_name == at_two.class_name
    assert any("the class is still that of mean + 2 std" in note for note in at_zero.notes)
    assert math.isnan(at_zero.epsilon_ratio)  # the null of z = 0 is 0


def test_progress_counts_every_row_and_ends_full():
    calls: list[tuple[int, int]] = []
    measure(make_rows("offset", 500, 8, seed=1), block_rows=50, centre=True, on_progress=lambda *at: calls.append(at))
    done = [at[0] for at in calls]
    assert done == sorted(done)
    assert calls[-1][0] == calls[-1][1] >= 1500
    assert all(at <= total for at, total in calls)


def test_record_is_plain_json_with_the_promised_keys():
    record = measure(make_rows("offset", 50, 8, seed=1), influence=3, centre=True, remove_top=2).to_dict()
    again = json.loads(json.dumps(record))
    promised = (
        "source matrix count dim dropped dropped_count dtype mean std epsilon epsilon_null epsilon_ratio epsilon_se "
        "class tied effective_dim seconds bytes_read repcap_version"
    )
    assert set(promised.split()) <= set(again)
    assert again["epsilon"] == again["mean"] + 2 * again["std"]
    assert again["epsilon_null"] == 2 / math.sqrt(8)


def test_nothing_as_large_as_all_pairs_is_held(monkeypatch):
    """20,000 rows make 400 million cosines (3.2 GB in float64): no tensor may be a hundredth of that."""
    largest = 0
    for name in ("mm", "matmul", "empty", "zeros"):
        plain = getattr(torch, name)

        def watched(*args, plain=plain, **kwargs):
            nonlocal largest
            made = plain(*args, **kwargs)
            largest = max(largest, made.numel())
            return made

        monkeypatch.setattr(torch, name, watched)
    rows = np.random.default_rng(0).standard_normal((20_000, 12))
    measure(torch.from_numpy(rows), block_rows=1000)
    assert 0 < largest <= 20_000 * 12


def test_numbers_repeat_to_the_last_bit():
    rows = make_rows("offset", 900, 20, seed=8).float()
    first, second = (measure(rows, rows=200, seed=5).to_dict() for _ in range(2))
    first.pop("seconds"), second.pop("seconds")
    assert first == second
