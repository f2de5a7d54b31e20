"""`pairs`: the exact distribution of all pairwise cosines of a source, here or spread over an engine."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from repcap import geometry
from repcap._version import __version__
from repcap.errors import InputError, RepcapError, VectorsError
from repcap.geometry.epsilon.epsilon import Spread, check_z
from repcap.geometry.pairs.histogram import PAPER_BINS, Extreme, PairCounts, Wanted
from repcap.geometry.pairs.pair_intervals import SampleIntervals, sample_intervals
from repcap.geometry.pairs.tail import Tail, measured_tail, normal_tail, random_moments, random_tail
from repcap.matrix import Matrix, ProgressFn
from repcap.numerics import Z_DEFAULT, check_seed, finite

if TYPE_CHECKING:
    import torch

QUANTILES = (1e-6, 1e-4, 0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99, 0.9999, 0.999999)


@dataclasses.dataclass(frozen=True)
class NamedPair:
    """Two rows, the text of their tokens where it is known, and their cosine."""

    cosine: float
    i: int
    j: int
    token_i: str | None = None
    token_j: str | None = None


@dataclasses.dataclass(frozen=True)
class PairDistribution:
    """All pairs of rows that have a direction: `count` rows of dimension `dim`, `pairs` unordered pairs.

    dropped: rows without a direction. spread: mean and std, those of `repcap measure`. coherence: the largest |cosine|.
    edges, counts: histogram of 300 bins over [-1, 1], as published. Of a sample of pairs (`sampled`) spread and all
    else are of the sample, `count` is the rows to draw from, dropped and coherence are not known, and `intervals` says
    how far the rest can be trusted; it is None where every pair was counted.
    """

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
    edges: tuple[float, ...] = dataclasses.field(repr=False)
    counts: tuple[int, ...] = dataclasses.field(repr=False)
    sampled: bool
    intervals: SampleIntervals | None
    seed: int | None
    seconds: float
    options: dict[str, Any]
    revision: str | None = None

    @property
    def standard_error(self) -> float | None:
        """Of the epsilon of a sample of pairs; None where every pair was counted."""
        return None if self.intervals is None else self.intervals.epsilon_se

    @property
    def sentence(self) -> str:
        """What the tail means, in words."""
        share, random = self.tail.both, self.tail_random.both
        many = f"{share:.3%} of {'the sample' if self.sampled else 'all pairs'} are beyond ±epsilon"
        if random < 1e-12 * share:
            against = "random directions of this dimension have practically none there"
        else:
            against = f"random directions of this dimension would have {random:.3%}"
        return f"{many}; a normal curve of the same mean and spread would have {self.tail_normal.both:.3%}, {against}."

    def to_dict(self) -> dict[str, Any]:
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
            "largest": [dataclasses.asdict(pair) for pair in self.largest],
            "smallest": [dataclasses.asdict(pair) for pair in self.smallest],
            "histogram": {"edges": list(self.edges), "counts": list(self.counts)},
            "options": self.options,
            "seconds": self.seconds,
            "repcap_version": __version__,
        }


@dataclasses.dataclass(frozen=True)
class PairOptions:
    """What `pairs` may be told beyond the source.

    keep: pairs to name at either end. sample: draw so many pairs instead of counting all. tokenizer_rows: leave out
    rows beyond the tokenizer. engine: `local[:N]`, `ray[:ADDRESS]`, or None for this process.
    """

    z: float = Z_DEFAULT
    keep: int = 10
    sample: int | None = None
    seed: int = 0
    device: str = "auto"
    tokenizer_rows: bool = False
    exclude_ids: tuple[int, ...] = ()
    engine: str | None = None
    panel: int = 8192

    def check(self) -> None:
        """Raise InputError or DomainError for a value that means nothing."""
        check_z(self.z)
        check_seed(self.seed)
        if self.keep < 0:
            raise InputError(f"--top {self.keep}: give how many pairs to name, 0 for none")
        if self.sample is not None and self.engine is not None:
            raise InputError("--sample draws its pairs in this process: leave out --engine, or count all pairs")

    def to_dict(self) -> dict[str, Any]:
        """For the record, with the number of excluded rows instead of their list."""
        record = dataclasses.asdict(self)
        record["excluded"] = len(record.pop("exclude_ids"))
        return record


def pairs(
    source: Any, matrix: str = "embedding", *, on_progress: ProgressFn | None = None, **options: Any
) -> PairDistribution:
    """The distribution of the cosines of all pairs of rows of `matrix` in `source`; options: see `PairOptions`.

    Cost: n^2 d operations (`sample` M pairs: 2 M d). Memory: 1 GiB of unit rows at most, never n x n.

    Raises
    ------
    SourceError, VectorsError, InputError
        for what cannot be read, has no geometry, or cannot be asked for.
    """
    from repcap.sources import open_source

    chosen = PairOptions(**options)
    chosen.check()
    started = time.perf_counter()
    with open_source(source, matrix) as opened:
        rows = _rows(opened, chosen)
        if chosen.sample is not None:
            counted, spread = _sampled(opened, rows, chosen, on_progress)
        else:
            counted, spread = _counted((source, matrix), opened, rows, chosen, on_progress)
        return summarise(opened, counted, spread, chosen, time.perf_counter() - started)


def _rows(matrix: Matrix, options: PairOptions) -> torch.Tensor:
    """Row numbers to use, (m,) int64, ascending."""
    geometry.check_matrix(matrix)
    known = None
    if options.tokenizer_rows:
        if matrix.tokens is None:
            raise InputError(f"{matrix.info.source} has no tokenizer beside it: leave out --tokenizer-rows")
        known = min(matrix.tokens.count, matrix.count)
    return geometry.select_rows(matrix.count, options.exclude_ids, vocab_size=known)


def _mask(matrix: Matrix, rows: torch.Tensor) -> np.ndarray | None:
    if len(rows) == matrix.count:
        return None
    mask = np.zeros(matrix.count, dtype=bool)
    mask[rows.numpy()] = True
    return mask


def _sampled(
    matrix: Matrix, rows: torch.Tensor, options: PairOptions, on_progress: ProgressFn | None
) -> tuple[PairCounts, Spread]:
    assert options.sample is not None
    every = len(rows) * (len(rows) - 1) // 2
    if options.sample > max(every, 2):
        raise InputError(f"--sample {options.sample}: there are only {every} pairs; leave it out to count each of them")
    counted = geometry.sample_pairs(
        matrix,
        options.sample,
        mask=_mask(matrix, rows),
        wanted=Wanted(max(1, options.keep)),
        seed=options.seed,
        on_progress=on_progress,
    )
    mean, std = counted.moments()[:2]
    return counted, Spread("all", len(rows), matrix.dim, mean, std, options.z, sampled=True)


def _counted(
    origin: tuple[Any, str], matrix: Matrix, rows: torch.Tensor, options: PairOptions, on_progress: ProgressFn | None
) -> tuple[PairCounts, Spread]:
    """All pairs. Their mean and spread come first, in closed form, so that those beyond epsilon can be counted.

    origin: the source and the name under which `matrix` was opened.
    """
    if options.engine is not None and not isinstance(origin[0], str):
        raise InputError("an engine needs a source that its workers can open: give a path or a name, not a tensor")
    spread = geometry.spread_of(geometry.plain_reader(matrix, options.device, rows), "all", options.z)
    if spread is None:
        raise VectorsError(f"{matrix.info.title} has no pair of rows that have a direction")
    wanted, mask = Wanted(max(1, options.keep), spread.mean, spread.epsilon), _mask(matrix, rows)
    if options.engine is not None:
        pinned = (_pinned(origin[0], matrix), origin[1])
        return _over_engine(pinned, matrix, mask, wanted, options, on_progress), spread
    counted = geometry.count_pairs(
        matrix, mask=mask, wanted=wanted, panel=options.panel, device=options.device, on_progress=on_progress
    )
    return counted, spread


def _pinned(source: str, opened: Matrix) -> str:
    """The source for workers, who open it later: of a Hub repository the commit that is open here."""
    from repcap.sources.spec import parse_spec

    spec = parse_spec(source)
    if spec.scheme != "hub" or opened.info.revision is None:
        return source
    folder = f"/{spec.folder}" if spec.folder else ""
    tensor = f"::{spec.tensor}" if spec.tensor else ""
    return f"hf://{spec.location}@{opened.info.revision}{folder}{tensor}"


def _over_engine(
    origin: tuple[str, str],
    opened: Matrix,
    mask: np.ndarray | None,
    wanted: Wanted,
    options: PairOptions,
    on_progress: ProgressFn | None,
) -> PairCounts:
    """Share the panel pairs out over an engine. Each unit opens the source itself."""
    from repcap.jobs.engine import Fault, Unit, parse_engine, run

    assert options.engine is not None
    chosen = geometry.panel_pairs(opened.count, options.panel)
    lots = min(len(chosen), max(16, 8 * parse_engine(options.engine).workers))
    units = [
        Unit(
            str(lot),
            (*origin, chosen[lot::lots], mask, wanted, options),
            f"lot {lot + 1} of {lots}",
            len(chosen[lot::lots]),
        )
        for lot in range(lots)
    ]
    total = PairCounts.empty(wanted)
    faults: list[Fault] = []
    done = 0

    def on_result(_unit: Unit, value: dict[str, Any]) -> None:
        nonlocal total, done
        total, done = total + PairCounts.from_dict(value), done + 1
        if on_progress is not None:
            on_progress(done, lots)

    run(units, count_lot, options.engine, on_result=on_result, on_failure=lambda _unit, fault: faults.append(fault))
    if faults:
        raise RepcapError(f"{len(faults)} of {lots} lots of pairs failed; the first: {faults[0].reason}")
    return total


def count_lot(payload: tuple[str, str, Sequence[Any], Any, Wanted, PairOptions]) -> dict[str, Any]:
    """Worker: count one lot of panel pairs. Returns the counts as plain lists."""
    from repcap.sources import open_source

    source, matrix, chosen, mask, wanted, options = payload
    with open_source(source, matrix) as opened:
        return geometry.count_panels(
            opened,
            [geometry.PanelPair(*pair) for pair in chosen],
            mask=mask,
            wanted=wanted,
            panel=options.panel,
            device=options.device,
        ).to_dict()


def summarise(
    matrix: Matrix, counted: PairCounts, spread: Spread, options: PairOptions, seconds: float
) -> PairDistribution:
    """Moments, quantiles, tails and named pairs of counted pairs of `matrix`."""
    _, _, skewness, kurtosis = counted.moments()
    sampled, tail = options.sample is not None, measured_tail(counted, spread.epsilon)
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
        largest=_named(matrix, counted.largest[: options.keep]),
        smallest=_named(matrix, counted.smallest[: options.keep]),
        edges=tuple(edges.tolist()),
        counts=tuple(counts.tolist()),
        sampled=sampled,
        intervals=sample_intervals(counted, options.z, tail, QUANTILES) if sampled else None,
        seed=options.seed if sampled else None,
        seconds=seconds,
        options=options.to_dict(),
        revision=matrix.info.revision,
    )


def _named(matrix: Matrix, extremes: Sequence[Extreme]) -> tuple[NamedPair, ...]:
    text = matrix.tokens.text if matrix.tokens is not None else lambda _index: None
    return tuple(NamedPair(e.cosine, e.i, e.j, text(e.i), text(e.j)) for e in extremes)
