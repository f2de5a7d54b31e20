"""Estimates from some rows: unbiased pair means, the jackknife in closed form, and intervals that keep their word."""

from __future__ import annotations

import itertools
import math
import statistics

import pytest
import torch
from scipy.stats import t as student

from repcap.errors import InputError
from repcap.geometry.epsilon.sample import Blocks, estimate, keep_rows, plan_blocks, take_blocks
from repcap.geometry.measurement.measuring import MeasureOptions, measure_matrix
from repcap.geometry.rows.reader import RowReader
from repcap.matrix import Matrix, TensorMatrix


class Counting(TensorMatrix):
    """A matrix that says that scattered rows are dear and counts what is read."""

    contiguous = True

    def __init__(self, rows: torch.Tensor) -> None:
        super().__init__(rows)
        self.calls: list[tuple[int, int]] = []

    def read(self, start: int, stop: int) -> torch.Tensor:
        self.calls.append((start, stop))
        return super().read(start, stop)


def alike_neighbours(n: int, d: int, seed: int, run: int = 10) -> torch.Tensor:
    """Rows of which each run of `run` neighbours shares a direction, as tokens do."""
    g = torch.Generator().manual_seed(seed)
    own = torch.randn((n, d), generator=g, dtype=torch.float64)
    shared = torch.randn((-(-n // run), d), generator=g, dtype=torch.float64).repeat_interleave(run, 0)[:n]
    return own + shared + 0.3


def reader_of(matrix: Matrix, dtype: torch.dtype = torch.float64, block: int = 64) -> RowReader:
    return RowReader(matrix, torch.arange(matrix.count), torch.device("cpu"), dtype, block)


def by_hand(rows: torch.Tensor, numbers: list[int], size: int, population: int) -> tuple[float, float]:
    """(mean, second) by going over all pairs: between blocks and within blocks apart, weighted as in the matrix."""
    u = rows / rows.norm(dim=1, keepdim=True)
    owner = {row: number for number in numbers for row in range(number * size, min(number * size + size, len(rows)))}
    kinds: dict[bool, list[float]] = {True: [], False: []}
    for i, j in itertools.permutations(owner, 2):
        kinds[owner[i] == owner[j]].append(float(u[i] @ u[j]))
    weight = (size - 1) / (population - 1)
    means = []
    for power in (1, 2):
        parts = {kind: sum(c**power for c in found) / len(found) if found else 0.0 for kind, found in kinds.items()}
        means.append(weight * parts[True] + (1 - weight) * parts[False])
    return means[0], means[1]


def between_blocks(rows: torch.Tensor, numbers: list[int], size: int, mean: float, std: float) -> float:
    """Variance of the linear part of mean + 2 std, averaged over the pairs of two blocks, one pair after the other."""
    u = rows / rows.norm(dim=1, keepdim=True)
    means = []
    for a, b in itertools.combinations(numbers, 2):
        found = [float(u[i] @ u[j]) for i in range(a * size, a * size + size) for j in range(b * size, b * size + size)]
        means.append(sum(c + (c * c - 2 * mean * c) / std for c in found) / len(found))
    return statistics.variance(means)


@pytest.mark.parametrize(("size", "block"), [(1, 64), (1, 2), (4, 64), (4, 6), (4, 3)])
def test_estimate_and_error_are_those_by_hand(size, block):
    rows = alike_neighbours(80, 5, seed=1)
    numbers = [0, 3, 4, 9, 11, 14, 19]
    blocks = take_blocks(torch.arange(80), torch.tensor(numbers), size)
    found, _ = estimate(reader_of(TensorMatrix(rows), block=block), blocks, z=2.0)

    def epsilon(chosen: list[int]) -> float:
        mean, second = by_hand(rows, chosen, size, 80)
        return mean + 2 * math.sqrt(second - mean**2)

    assert (found.mean, found.std**2 + found.mean**2) == pytest.approx(by_hand(rows, numbers, size, 80), abs=1e-12)
    assert found.epsilon == pytest.approx(epsilon(numbers), abs=1e-12)
    without = [epsilon(numbers[:place] + numbers[place + 1 :]) for place in range(7)]
    centre = sum(without) / 7
    square = 6 / 7 * sum((value - centre) ** 2 for value in without)
    own = max(0.0, (between_blocks(rows, numbers, size, found.mean, found.std) - 3.5 * square) / (1 - 2 / 7))
    square = max(square - 2 * own / 42, square / 2)  # the jackknife counts what only a pair has twice
    assert found.se == pytest.approx(math.sqrt(square * (1 - 7 * size / 80)), rel=1e-9)
    fourth = (
        sum((value - centre) ** 4 for value in without) / 7 / (sum((value - centre) ** 2 for value in without) / 7) ** 2
    )
    half = float(student.ppf(0.975, 2 / (2 / 6 + max(fourth - 3, 0) / 7))) * found.se
    assert (found.low, found.high) == pytest.approx((found.epsilon - half, found.epsilon + half), abs=1e-12)


def test_blocks_of_like_neighbours_do_not_bias_the_mean(brute):
    """The plain mean over a sample of blocks holds too many pairs of neighbours; this one does not."""
    rows = alike_neighbours(600, 8, seed=3)
    truth = brute(rows)
    found, plain = [], []
    for seed in range(60):
        order = torch.randperm(60, generator=torch.Generator().manual_seed(seed))[:10].sort()[0]
        blocks = take_blocks(torch.arange(600), order, 10)
        result, moments = estimate(reader_of(TensorMatrix(rows)), blocks, z=2.0)
        found.append(result.mean)
        plain.append(moments.mean)
    error = torch.tensor(found).std().item() / math.sqrt(60)
    assert sum(found) / 60 == pytest.approx(truth.mean, abs=3 * error)
    assert sum(plain) / 60 - sum(found) / 60 > 0.02


def covered(rows: torch.Tensor, truth: float, contiguous: bool, draws: int = 100, wanted: int = 1000) -> float:
    """Share of `draws` intervals that hold the truth."""
    matrix = Counting(rows) if contiguous else TensorMatrix(rows)
    reader = reader_of(matrix, torch.float32, block=2048)
    hits = 0
    for seed in range(draws):
        blocks = plan_blocks(reader.rows, wanted, contiguous, seed)
        found, _ = estimate(keep_rows(reader, blocks), blocks, z=2.0)
        hits += found.low <= truth <= found.high
    return hits / draws


def leaning(n: int, d: int) -> torch.Tensor:
    """Rows sorted along one direction."""
    rows = torch.randn((n, d), generator=torch.Generator().manual_seed(2))
    rows[:, 0] += torch.linspace(-4.0, 8.0, n)
    return rows


KINDS = {
    "clusters of 50": lambda: alike_neighbours(4000, 16, 4, run=50) - 0.3,
    "clusters of 73": lambda: alike_neighbours(4000, 16, 5, run=73) - 0.3,
    "sorted": lambda: leaning(4000, 16),
    "independent": lambda: torch.randn((4000, 16), generator=torch.Generator().manual_seed(3)),
}


@pytest.mark.parametrize("contiguous", [False, True], ids=["rows", "blocks"])
@pytest.mark.parametrize("kind", KINDS)
def test_interval_covers_what_it_promises(kind, contiguous):
    """95 %, and not much more: between 90 and 98 % of 150 draws (benchmarks/coverage.py has the long study)."""
    rows = KINDS[kind]()
    truth = measure_matrix(TensorMatrix(rows), MeasureOptions(device="cpu")).epsilon
    assert 0.90 <= covered(rows, truth, contiguous, draws=150, wanted=400) <= 0.985


@pytest.mark.parametrize("contiguous", [False, True], ids=["rows", "blocks"])
def test_interval_covers_the_full_value_on_smollm2(smollm2_rows, contiguous):
    assert 0.90 <= covered(smollm2_rows, 0.728677, contiguous, draws=60) <= 0.99


def test_a_sample_is_nearly_all_rows_and_the_interval_closes(brute):
    rows = alike_neighbours(300, 6, seed=5)
    found = measure_matrix(TensorMatrix(rows), MeasureOptions(device="cpu", rows=297, dtype="float64"))
    assert found.estimate.high - found.estimate.low < 0.02
    assert found.epsilon == pytest.approx(brute(rows).epsilon(), abs=0.01)
    assert (
        measure_matrix(TensorMatrix(rows), MeasureOptions(device="cpu", rows=300)).estimate is None
    )  # all rows: exact


def test_seed_chooses_the_rows():
    rows = alike_neighbours(400, 6, seed=5)
    first, again, other = (
        measure_matrix(TensorMatrix(rows), MeasureOptions(device="cpu", rows=50, seed=s)) for s in (1, 1, 2)
    )
    assert first.epsilon == again.epsilon != other.epsilon
    assert first.spread.rows == "sample"
    assert any("an estimate from 50 of 400 rows" in note for note in first.notes)


def test_a_dear_matrix_is_read_once_in_whole_blocks():
    matrix = Counting(alike_neighbours(5000, 6, seed=5))
    found = measure_matrix(matrix, MeasureOptions(device="cpu", rows=800))
    assert found.estimate.block_rows == 2
    assert found.estimate.blocks == 400
    assert sum(stop - start for start, stop in matrix.calls) == 800
    assert all(start % 2 == stop % 2 == 0 for start, stop in matrix.calls)


def test_rows_without_direction_in_the_sample_are_named():
    rows = alike_neighbours(200, 6, seed=5)
    rows[::4] = 0.0
    for matrix in (TensorMatrix(rows), Counting(rows)):
        found = measure_matrix(matrix, MeasureOptions(device="cpu", rows=100))
        assert found.findings.dropped_count > 10
        assert found.count + found.findings.dropped_count == found.estimate.blocks * found.estimate.block_rows
        assert found.estimate.rows == found.count


@pytest.mark.parametrize("contiguous", [False, True])
def test_plan_holds_whole_blocks_of_the_chosen_rows(contiguous):
    rows = torch.arange(0, 2060, 2)  # every other row of a matrix, and a last block that is short
    found: Blocks = plan_blocks(rows, 800, contiguous, seed=1)
    assert found.size == (2 if contiguous else 1)
    assert len(found.rows) == 800
    assert torch.equal(found.rows, found.rows.unique())
    assert set(found.rows.tolist()) <= set(rows.tolist())
    for number in range(found.count):
        mine = found.rows[found.owner == number]
        assert len(mine) == found.size
        assert int(mine[0]) // 2 % found.size == 0
    everything = take_blocks(torch.arange(7), torch.arange(3), 3)
    assert everything.rows.tolist() == list(range(7))
    assert everything.owner.tolist() == [0, 0, 0, 1, 1, 1, 2]


def test_too_small_a_sample_is_refused():
    with pytest.raises(InputError, match="--rows 19 is too few for an interval: sample at least 20 rows"):
        plan_blocks(torch.arange(100), 19, contiguous=False, seed=0)
