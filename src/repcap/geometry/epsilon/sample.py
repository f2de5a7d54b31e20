"""A quick look: epsilon of the whole matrix from some of its rows, with an interval.

Local files give single rows. Where scattered rows are dear the sample is whole blocks of neighbouring rows.
Neighbouring token ids are alike, so a block says less than as many single rows, and pairs within a block are likelier
in the sample than in the matrix. Both are taken into account: pairs between blocks and within blocks are averaged apart
and weighted as in the whole matrix, and the interval comes from leaving out whole blocks.

The blocks are drawn at random from all of them. One from each of equal stretches would vary less where row numbers are
sorted, but two rows of one stretch would never be in a sample together: where neighbours are alike beyond a block
(clusters of rows), the pairs with the largest cosines would be missed and the interval would not hold the truth.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import torch
from scipy.special import stdtrit

from repcap.errors import InputError, VectorsError
from repcap.geometry.epsilon.jackknife import row_terms
from repcap.geometry.epsilon.moments import Moments, MomentsBuilder
from repcap.geometry.rows.reader import RowReader
from repcap.matrix import Matrix

CONFIDENCE = 0.95
MIN_ROWS = 20
_BLOCKS = 400
_BLOCK_ROWS = 50
_KEPT_BYTES = 256 << 20
_NOISE_ROWS = 1024


@dataclasses.dataclass(frozen=True)
class Estimate:
    """epsilon of a matrix, estimated from a sample of its rows.

    rows: sampled rows with a direction. blocks: how many independent draws they make. block_rows: rows a block.
    population: rows sampled from. mean, std, epsilon: estimates for all rows.
    se: standard error of epsilon. low, high: 95 % interval for epsilon of all rows.
    """

    rows: int
    blocks: int
    block_rows: int
    population: int
    mean: float
    std: float
    epsilon: float
    se: float
    low: float
    high: float
    confidence: float = CONFIDENCE

    def to_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)


@dataclasses.dataclass(frozen=True)
class Blocks:
    """Sampled rows. rows: (m,) row numbers, ascending. owner: (m,) number of each row's block. size: rows a block."""

    rows: torch.Tensor
    owner: torch.Tensor
    count: int
    size: int


def plan_blocks(rows: torch.Tensor, wanted: int, contiguous: bool, seed: int) -> Blocks:
    """About `wanted` of `rows`, (n,) row numbers: random blocks, without replacement.

    contiguous: at least 400 blocks of up to 50 neighbouring rows; else single rows.

    Raises
    ------
    InputError
        if fewer than 20 rows are wanted.
    """
    if wanted < MIN_ROWS:
        raise InputError(f"--rows {wanted} is too few for an interval: sample at least {MIN_ROWS} rows")
    size = min(_BLOCK_ROWS, max(1, wanted // _BLOCKS)) if contiguous else 1
    blocks = -(-len(rows) // size)
    draws = min(blocks, max(2, wanted // size))
    generator = torch.Generator().manual_seed(seed)
    chosen = torch.randperm(blocks, generator=generator)[:draws].sort()[0]
    return take_blocks(rows, chosen, size)


def take_blocks(rows: torch.Tensor, chosen: torch.Tensor, size: int) -> Blocks:
    """Blocks number `chosen`, ascending, of `rows` cut into blocks of `size`; the last block may be shorter."""
    places = chosen[:, None] * size + torch.arange(size)  # (blocks, size)
    owner = torch.arange(len(chosen))[:, None].expand_as(places)
    inside = places < len(rows)
    return Blocks(rows[places[inside]], owner[inside], len(chosen), size)


@dataclasses.dataclass
class _BlockSums:
    """Per block: rows m_k, |s_k|^2, |G_k|_F^2, s . s_k and <G, G_k>, each (blocks,) float64."""

    size: torch.Tensor
    S: torch.Tensor
    F: torch.Tensor
    a: torch.Tensor
    b: torch.Tensor


def estimate(reader: RowReader, blocks: Blocks, z: float) -> tuple[Estimate, Moments]:
    """Estimate from sampled `blocks` of row numbers out of the `reader`'s rows; also the sample's moments.

    Two passes over the sample, O(m d^2) each, and one over 1024 of its rows. Memory O(d^2) and a few numbers a block:
    leaving out block k needs |s|^2 - 2 s.s_k + |s_k|^2 and |G|_F^2 - 2 <G, G_k> + |G_k|_F^2.

    Raises
    ------
    VectorsError
        if fewer than two of the sampled rows have a direction.
    """
    moments, sums = _first(reader, blocks)
    if moments.count < 2:
        raise VectorsError(f"{moments.count} of the sampled rows have a direction: at least two are needed")
    indices, a, b = row_terms(reader.replaced(rows=blocks.rows), moments)
    place = blocks.owner[torch.searchsorted(blocks.rows, indices)]
    sums.a.index_add_(0, place, a)
    sums.b.index_add_(0, place, b)
    weight = _within_weight(reader.count, blocks.size)
    mean, second = (float(value) for value in _combine(sums, moments, weight, leave_out=False))
    std = math.sqrt(max(second - mean**2, 0.0))
    means, seconds = _combine(sums, moments, weight, leave_out=True)
    without = means + z * (seconds - means**2).clamp_min(0.0).sqrt()
    noise = _pair_noise(reader, blocks, mean, std, z) if std > 0.0 else 0.0
    se = _block_error(without, noise, 1.0 - len(blocks.rows) / reader.count)
    value, half = mean + z * std, _t_quantile(_freedom(without)) * se
    result = Estimate(
        rows=moments.count,
        blocks=blocks.count,
        block_rows=blocks.size,
        population=reader.count,
        mean=mean,
        std=std,
        epsilon=value,
        se=se,
        low=value - half,
        high=value + half,
    )
    return result, moments


def _first(reader: RowReader, blocks: Blocks) -> tuple[Moments, _BlockSums]:
    """First pass over the sample: moments, and per block its size, |s_k|^2 and |G_k|_F^2."""
    builder = MomentsBuilder(reader.dim, reader.device, reader.dtype)
    sums = _BlockSums(*(torch.zeros(blocks.count, dtype=torch.float64) for _ in range(5)))
    whole_blocks = max(1, reader.block_rows // blocks.size) * blocks.size
    for unit in dataclasses.replace(reader, rows=blocks.rows, block_rows=whole_blocks).units():
        if not len(unit.indices):
            continue
        builder.add(unit.units.to(reader.device))
        place = blocks.owner[torch.searchsorted(blocks.rows, unit.indices)]
        _add_blocks(sums, unit.units, place)
    return builder.result(), sums


def _add_blocks(sums: _BlockSums, units: torch.Tensor, place: torch.Tensor) -> None:
    """Size, |s_k|^2 and |G_k|_F^2 of the blocks to which (m, d) `units` belong; each block is wholly among them."""
    names, local, sizes = place.unique_consecutive(return_inverse=True, return_counts=True)
    start = sizes.cumsum(0) - sizes
    padded = units.new_zeros((len(names), int(sizes.max()), units.shape[1]))  # (blocks, rows, d), short ones with 0
    padded[local, torch.arange(len(units)) - start[local]] = units
    sums.size[names] = sizes.double()
    sums.S[names] = padded.sum(1).double().square().sum(1)
    sums.F[names] = torch.bmm(padded, padded.transpose(1, 2)).double().square().sum((1, 2))


def _within_weight(population: int, size: int) -> float:
    """Share of the ordered pairs of the whole matrix that lie within its blocks of `size` rows."""
    whole, rest = divmod(population, size)
    return (whole * size * (size - 1) + rest * (rest - 1)) / (population * (population - 1))


def _mean_over_pairs(
    total: torch.Tensor, within: torch.Tensor, rows: torch.Tensor, within_pairs: torch.Tensor, weight: float
) -> torch.Tensor:
    """Mean of a pair statistic: pairs between blocks and within blocks averaged apart, weighted as in the matrix.

    total: its sum over all ordered pairs i, j, the n diagonal ones with value 1 included; within: the same over pairs
    of one block; rows: n; within_pairs: ordered pairs i != j of one block.
    """
    between = (total - within) / (rows * (rows - 1) - within_pairs)
    if weight == 0.0:
        return between
    return (1.0 - weight) * between + weight * (within - rows) / within_pairs


def _combine(sums: _BlockSums, moments: Moments, weight: float, leave_out: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """(mean, second) over the sample, each (1,); or with each block left out in turn, each (blocks,)."""
    S, F = moments.s @ moments.s, moments.G.flatten() @ moments.G.flatten()
    pairs = sums.size * (sums.size - 1)
    rows, within_pairs, S_in, F_in = (column.sum()[None] for column in (sums.size, pairs, sums.S, sums.F))
    S, F = S[None], F[None]
    if leave_out:
        rows, within_pairs, S_in, F_in = rows - sums.size, within_pairs - pairs, S_in - sums.S, F_in - sums.F
        S, F = S - 2.0 * sums.a + sums.S, F - 2.0 * sums.b + sums.F
    return (
        _mean_over_pairs(S, S_in, rows, within_pairs, weight),
        _mean_over_pairs(F, F_in, rows, within_pairs, weight),
    )


def _block_error(without: torch.Tensor, noise: float, left: float) -> float:
    """Standard error of a mean over pairs of blocks, from its values without each block.

    noise: variance of the mean over the pairs of two blocks, v. left: share of the matrix that was not sampled (Cochran
    1977). Of g blocks the mean varies by 4 a/g + 2 b/(g (g - 1)), a from what a block has by itself, b = v - 2 a from
    what only a pair has (Hoeffding 1948). The delete-a-group jackknife counts the second term twice (Efron and Stein
    1981): on independent rows, where it is all there is, it is 1.4 times too wide. So one of the two is taken off.
    """
    groups = len(without)
    jackknife = (groups - 1) / groups * float(((without - without.mean()) ** 2).sum())
    own = (noise - groups / 2.0 * jackknife) / (1.0 - 2.0 / groups) if groups > 2 else 0.0  # b
    once = 2.0 * max(own, 0.0) / (groups * (groups - 1))
    return math.sqrt(max(jackknife - once, jackknife / 2.0) * left)


def _pair_noise(reader: RowReader, blocks: Blocks, mean: float, std: float, z: float) -> float:
    """Variance of epsilon's linear part, averaged over the pairs of two blocks, from up to 1024 rows' blocks.

    The linear part of mean + z std in a cosine c is c + z (c^2 - 2 mean c) / (2 std). Cost: 1024^2 d operations and one
    more reading of those rows; memory 1024 rows and a few (1024, 1024) arrays.
    """
    count = min(blocks.count, max(2, _NOISE_ROWS // blocks.size))
    chosen = torch.arange(count) * blocks.count // count
    rows = blocks.rows[torch.isin(blocks.owner, chosen)]
    owner, units = [], []
    for block in reader.replaced(rows=rows).units():
        owner.append(torch.searchsorted(chosen, blocks.owner[torch.searchsorted(blocks.rows, block.indices)]))
        units.append(block.units.clone())
    place, u = torch.cat(owner), torch.cat(units)
    cosine = (u @ u.T).double()
    part = cosine + z * (cosine.square() - 2.0 * mean * cosine) / (2.0 * std)
    sums = torch.zeros((count, len(u)), dtype=torch.float64).index_add_(0, place, part)
    sums = torch.zeros((count, count), dtype=torch.float64).index_add_(0, place, sums.T.contiguous())
    size = torch.bincount(place, minlength=count).double()
    filled = (size > 0).nonzero()[:, 0]
    means = (sums / (size[:, None] * size))[filled][:, filled]
    i, j = torch.triu_indices(len(filled), len(filled), 1)
    return float(means[i, j].var()) if len(i) > 1 else 0.0


def _freedom(without: torch.Tensor) -> float:
    """Degrees of freedom of the standard error: 2 / (2/(g - 1) + k/g), k >= 0 the excess kurtosis of what a block does.

    That is 2 var^2 / Var(var) (Satterthwaite 1946): a few blocks that weigh much make the error itself uncertain, as in
    the rows of a real model.
    """
    groups, square = len(without), (without - without.mean()).square()
    excess = float(square.square().mean() / square.mean().square()) - 3.0 if float(square.sum()) > 0.0 else 0.0
    return 2.0 / (2.0 / max(groups - 1, 1) + max(excess, 0.0) / groups)


def _t_quantile(freedom: float) -> float:
    return float(stdtrit(freedom, 0.5 + CONFIDENCE / 2))


class _Kept(Matrix):
    """Rows of another matrix that were read once and stay in memory, under their own row numbers."""

    def __init__(self, matrix: Matrix, rows: torch.Tensor, stored: torch.Tensor) -> None:
        self.info, self.tokens = matrix.info, matrix.tokens
        self.contiguous = True  # there is nothing between the sampled rows: read no gaps
        self._rows, self._stored = rows, stored

    def read(self, start: int, stop: int) -> torch.Tensor:
        return self.take(range(start, stop))

    def take(self, indices: Sequence[int]) -> torch.Tensor:
        wanted = torch.tensor(indices)
        return self._stored[torch.searchsorted(self._rows, wanted)]


def keep_rows(reader: RowReader, blocks: Blocks) -> RowReader:
    """The same reader with the sampled rows in memory (stored dtype), or as it is if they take more than 256 MiB.

    A sample is read twice or more; a remote matrix should send it once.
    """
    if 4 * reader.dim * len(blocks.rows) > _KEPT_BYTES:
        return reader
    stored = torch.cat([block for _, block in reader.replaced(rows=blocks.rows).stored()])
    return dataclasses.replace(reader, matrix=_Kept(reader.matrix, blocks.rows, stored))
