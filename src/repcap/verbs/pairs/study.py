"""`pairs`: the exact distribution of all pairwise cosines of a source, here or spread over an engine."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from repcap import geometry, sources
from repcap.errors import InputError, OptionError, VectorsError
from repcap.geometry.epsilon.epsilon import Spread
from repcap.geometry.pairs.histogram import PAPER_BINS, Extreme, PairCounts, Wanted
from repcap.geometry.pairs.pair_intervals import SampleIntervals, sample_intervals
from repcap.geometry.pairs.tail import ALPHAS, GaugeTail, Tail, measured_tail, normal_tail, random_moments, random_tail
from repcap.matrix import Matrix, ProgressFn, titled
from repcap.numerics import Z_DEFAULT, finite
from repcap.options import Device, EngineName, ExcludeIds, MatrixName, Option, Seed, TokenizerRows, Z, verb
from repcap.result import Result
from repcap.verbs.pairs.gauged import Alpha, Gauge, Lot, Sweep, pinned, sweep_engine, sweep_here

if TYPE_CHECKING:
    import torch

Extremes = Annotated[
    int, Option("Name so many of the largest and smallest.", least=0, most=10_000, why="give 0 to 10000, 0 for none")
]
Sample = Annotated[
    int | None, Option("Draw so many pairs instead of counting them all.", least=2, why="give 2 or more pairs")
]
PanelRows = Annotated[int, Option("Rows a block of pairs has on either side.", least=1, silent=True, shown=False)]

QUANTILES = (1e-6, 1e-4, 0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99, 0.9999, 0.999999)


@dataclasses.dataclass(frozen=True)
class NamedPair:
    """Two rows, the text of their tokens where it is known, and their cosine."""

    cosine: float
    i: int
    j: int
    token_i: str | None = None
    token_j: str | None = None


@dataclasses.dataclass(frozen=True, repr=False)
class PairDistribution(Result):
    """All pairs of rows that have a direction: `count` rows of dimension `dim`, `pairs` unordered pairs.

    dropped: rows without a direction. spread: mean and std, those of `repcap measure`. coherence: the largest |cosine|.
    edges, counts: histogram of 300 bins over [-1, 1], as published. Of a sample of pairs (`sampled`) spread and all
    else are of the sample, `count` is the rows to draw from, dropped and coherence are not known, and `intervals` says
    how far the rest can be trusted; it is None where every pair was counted.
    """

    kind = "pairs"

    source: str
    matrix: str
    role: str
    count: int
    dropped: int | None
    dim: int
    pairs: int
    spread: Spread
    skewness: float
    excess_kurtosis: float
    coherence: float | None
    quantiles: tuple[tuple[float, float], ...]
    tail: Tail
    tail_normal: Tail
    tail_random: Tail
    largest: tuple[NamedPair, ...]
    smallest: tuple[NamedPair, ...]
    edges: tuple[float, ...]
    counts: tuple[int, ...]
    sampled: bool
    intervals: SampleIntervals | None
    seed: int | None
    revision: str | None = None
    tails: tuple[GaugeTail, ...] = ()

    @property
    def title(self) -> str:
        of = "a sample of" if self.sampled else "all"
        return f"{titled(self.matrix, self.source)}, {self.count} x {self.dim}: {of} {self.pairs:,} pairs"

    @property
    def numbers(self) -> str:
        spread = self.spread
        closest = "" if self.coherence is None else f", coherence {self.coherence:.6f}"
        return f"mean {spread.mean:.6f}, std {spread.std:.6f}, epsilon {spread.epsilon:.6f}{closest}"

    @property
    def standard_error(self) -> float | None:
        """Of the epsilon of a sample of pairs; None where every pair was counted."""
        return None if self.intervals is None else self.intervals.epsilon_se

    @property
    def reading(self) -> str:
        """What the tail means, in words."""
        share, random = self.tail.both, self.tail_random.both
        many = f"{share:.3%} of {'the sample' if self.sampled else 'all pairs'} are beyond ±epsilon"
        if random < 1e-12 * share:
            against = "random directions of this dimension have practically none there"
        else:
            against = f"random directions of this dimension would have {random:.3%}"
        return f"{many}; a normal curve of the same mean and spread would have {self.tail_normal.both:.3%}, {against}."

    def values(self) -> dict[str, Any]:
        spread = self.spread
        return {
            "source": self.source,
            "matrix": self.matrix,
            "role": self.role,
            "revision": self.revision,
            "count": self.count,
            "dropped_count": self.dropped,
            "dim": self.dim,
            "pairs": self.pairs,
            "sampled": self.sampled,
            "seed": self.seed,
            "z": spread.z,
            "mean": spread.mean,
            "std": spread.std,
            "epsilon": spread.epsilon,
            "epsilon_se": self.standard_error,
            "epsilon_null": spread.null,
            "epsilon_ratio": finite(spread.ratio),
            "class": spread.class_name,
            "skewness": finite(self.skewness),
            "excess_kurtosis": finite(self.excess_kurtosis),
            "coherence": self.coherence,
            "intervals": None if self.intervals is None else self.intervals.to_dict(),
            "quantiles": [{"share": share, "cosine": cosine} for share, cosine in self.quantiles],
            "random": random_moments(self.dim),
            "tail": {
                "measured": self.tail.to_dict(),
                "normal": self.tail_normal.to_dict(),
                "random": self.tail_random.to_dict(),
            },
            "tails": [tail.to_dict() for tail in self.tails],
            "largest": [dataclasses.asdict(pair) for pair in self.largest],
            "smallest": [dataclasses.asdict(pair) for pair in self.smallest],
            "histogram": {"edges": list(self.edges), "counts": list(self.counts)},
        }


@verb
def pairs(
    source: Any,
    matrix: MatrixName = "embedding",
    *,
    top: Extremes = 10,
    z: Z = Z_DEFAULT,
    alpha: Alpha = ALPHAS,
    gauge: Gauge = ("stored",),
    sample: Sample = None,
    seed: Seed = 0,
    tokenizer_rows: TokenizerRows = False,
    exclude_ids: ExcludeIds = (),
    engine: EngineName = None,
    device: Device = "auto",
    panel: PanelRows = 8192,
    on_progress: ProgressFn | None = None,
) -> PairDistribution:
    """The distribution of the cosines of all pairs of rows of `matrix` in `source`, and what its tail holds.

    Parameters
    ----------
    source, matrix
        as of `repcap.measure`.
    top : int
        pairs to name at either end.
    z : float
        epsilon = mean + z std, beyond which pairs are counted.
    alpha, gauge
        shares of pairs whose |cosine| to give, with the dimension in which random directions have the same; of the rows
        as `stored`, `centred`, without their strongest direction (`top1`), `whitened`: one sweep more for each.
    sample, seed : int
        draw so many pairs instead of counting all, with intervals.
    tokenizer_rows, exclude_ids
        leave out the rows beyond the tokenizer; row numbers to leave out.
    engine : str, optional
        `local[:N]`, `ray[:ADDRESS]`, or None for this process.
    device, panel
        `auto`, `cpu`, `cuda`, `cuda:N`, `mps`; rows of a block of pairs.
    on_progress : callable, optional
        called with (pairs done, pairs) of all gauges together, with an engine (lots done, lots).

    Raises
    ------
    SourceError, VectorsError, InputError
        for what cannot be read, has no geometry, or cannot be asked for.

    Cost: n^2 d operations a gauge (`sample` M pairs: 2 M d). Memory: 1 GiB of unit rows at most, never n x n.
    """
    if sample is not None and engine is not None:
        raise OptionError("sample", sample, "its pairs are drawn in this process: leave out `engine`, or `sample`")
    if engine is not None and not isinstance(source, str):
        raise InputError("an engine needs a source that its workers can open: give a path or a name, not a tensor")
    with sources.open_source(source, matrix) as opened:
        rows = _rows(opened, exclude_ids or (), tokenizer_rows)
        mask = _mask(opened, rows)
        names = tuple(dict.fromkeys(("stored", *gauge)))  # what else a record says is of the rows as stored
        changes = geometry.gauge_changes(geometry.plain_reader(opened, device, rows), names)
        if sample is not None:
            _check_sample(sample, len(rows))
            sweeps = _sweeps(changes, Wanted(max(1, top)))
            draw = partial(geometry.sample_pairs, pairs=sample, mask=mask, seed=seed)
            counts = sweep_here(opened, sweeps, draw, on_progress)
            mean, std = counts[0].moments()[:2]
            spread = Spread("all", len(rows), opened.dim, mean, std, z, sampled=True)
        else:
            spread = _spread(opened, rows, z, device)
            sweeps = _sweeps(changes, Wanted(max(1, top), spread.mean, spread.epsilon))
            if engine is not None:
                lot = Lot(pinned(source, opened), matrix, sweeps[0], (), mask, panel, device)
                counts = sweep_engine(lot, sweeps, opened.count, engine, on_progress)
            else:
                count = partial(geometry.count_pairs, mask=mask, panel=panel, device=device)
                counts = sweep_here(opened, sweeps, count, on_progress)
        of = dict(zip(names, counts, strict=True))
        tails = tuple(geometry.gauge_tail(of[name], name, opened.dim, alpha) for name in gauge)
        return dataclasses.replace(_summarise(opened, counts[0], spread, top, seed), tails=tails)


def _sweeps(changes: Mapping[str, Any], stored: Wanted) -> list[Sweep]:
    """`stored` is what is wanted of the rows as they are; of those in another gauge it is the histogram alone."""
    return [Sweep(change, stored if change is None else Wanted(0)) for change in changes.values()]


def _check_sample(sample: int, count: int) -> None:
    every = count * (count - 1) // 2
    if sample > max(every, 2):
        raise OptionError("sample", sample, f"there are only {every} pairs; leave it out to count each of them")


def _rows(matrix: Matrix, exclude_ids: Iterable[int], tokenizer_rows: bool) -> torch.Tensor:
    """Row numbers to use, (m,) int64, ascending."""
    geometry.check_matrix(matrix)
    known = None
    if tokenizer_rows:
        if matrix.tokens is None:
            raise InputError(f"{matrix.info.source} has no tokenizer beside it: leave out `tokenizer_rows`")
        known = min(matrix.tokens.count, matrix.count)
    return geometry.select_rows(matrix.count, exclude_ids, vocab_size=known)


def _mask(matrix: Matrix, rows: torch.Tensor) -> np.ndarray | None:
    if len(rows) == matrix.count:
        return None
    mask = np.zeros(matrix.count, dtype=bool)
    mask[rows.numpy()] = True
    return mask


def _spread(matrix: Matrix, rows: torch.Tensor, z: float, device: str) -> Spread:
    """Mean and spread of all pairs, in closed form; they come first, so that pairs beyond epsilon can be counted."""
    spread = geometry.spread_of(geometry.plain_reader(matrix, device, rows), "all", z)
    if spread is None:
        raise VectorsError(f"{matrix.info.title} has no pair of rows that have a direction")
    return spread


def _summarise(matrix: Matrix, counted: PairCounts, spread: Spread, top: int, seed: int) -> PairDistribution:
    """Moments, quantiles, tails and named pairs of counted pairs of `matrix`."""
    _, _, skewness, kurtosis = counted.moments()
    sampled, tail = spread.sampled, measured_tail(counted, spread.epsilon)
    edges, counts = counted.histogram(PAPER_BINS)
    ends = [abs(end.cosine) for end in (counted.largest[0], counted.smallest[0])]
    return PairDistribution(
        source=matrix.info.source,
        matrix=matrix.info.name,
        role=matrix.info.role,
        count=spread.count,
        dropped=None if sampled else spread.dropped,
        dim=matrix.dim,
        pairs=counted.pairs,
        spread=spread,
        skewness=skewness,
        excess_kurtosis=kurtosis,
        coherence=None if sampled else max(ends),
        quantiles=tuple((share, counted.quantile(share)) for share in QUANTILES),
        tail=tail,
        tail_normal=normal_tail(spread.mean, spread.std, spread.epsilon),
        tail_random=random_tail(matrix.dim, spread.epsilon),
        largest=_named(matrix, counted.largest[:top]),
        smallest=_named(matrix, counted.smallest[:top]),
        edges=tuple(edges.tolist()),
        counts=tuple(counts.tolist()),
        sampled=sampled,
        intervals=sample_intervals(counted, spread.z, tail, QUANTILES) if sampled else None,
        seed=seed if sampled else None,
        revision=matrix.info.revision,
    )


def _named(matrix: Matrix, extremes: Sequence[Extreme]) -> tuple[NamedPair, ...]:
    text = matrix.tokens.text if matrix.tokens is not None else lambda _index: None
    return tuple(NamedPair(e.cosine, e.i, e.j, text(e.i), text(e.j)) for e in extremes)
