"""`pairs`: the exact distribution of all pairwise cosines of a source, here or spread over an engine."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from repcap._version import __version__
from repcap.errors import InputError, RepcapError
from repcap.geometry.epsilon import Spread, check_z
from repcap.geometry.histogram import PAPER_BINS, Extreme, PairCounts
from repcap.geometry.tail import Tail, measured_tail, normal_tail, random_tail
from repcap.matrix import Matrix, ProgressFn
from repcap.numerics import Z_DEFAULT, check_seed, finite

if TYPE_CHECKING:
    import numpy as np

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

    coherence: the largest |cosine|. histogram: 300 bins over [-1, 1], as published.
    standard_error: of the epsilon of a sample of pairs; None where every pair was counted.
    """

    source: str
    matrix: str
    role: str
    count: int
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
    standard_error: float | None
    seed: int | None
    seconds: float
    options: dict[str, Any]
    revision: str | None = None

    @property
    def sentence(self) -> str:
        """What the tail means, in words."""
        share, random = self.tail.both, self.tail_random.both
        many = f"{share:.3%} of all pairs are beyond ±epsilon"
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
            "quantiles": [{"share": share, "cosine": cosine} for share, cosine in self.quantiles],
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
    """What `pairs` may be told beyond the source. tokenizer_rows: leave out rows beyond the tokenizer."""

    z: float = Z_DEFAULT
    keep: int = 10
    sample: int | None = None
    seed: int = 0
    device: str = "auto"
    tokenizer_rows: bool = False
    exclude_ids: tuple[int, ...] = ()
    engine: str | None = None
    panel: int = 8192

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
    check_z(chosen.z)
    check_seed(chosen.seed)
    started = time.perf_counter()
    with open_source(source, matrix) as opened:
        mask = _mask(opened, chosen)
        if chosen.sample is not None:
            counted = _sampled(opened, mask, chosen, on_progress)
        elif chosen.engine is not None:
            counted = _spread(source, matrix, opened, mask, chosen, on_progress)
        else:
            from repcap.geometry.pairs import count_pairs

            counted = count_pairs(
                opened,
                mask=mask,
                keep=chosen.keep,
                panel=chosen.panel,
                device=chosen.device,
                on_progress=on_progress,
            )
        return summarise(opened, counted, chosen, time.perf_counter() - started)


def _mask(matrix: Matrix, options: PairOptions) -> np.ndarray | None:
    import numpy as np

    if not options.tokenizer_rows and not options.exclude_ids:
        return None
    mask = np.ones(matrix.count, dtype=bool)
    if options.tokenizer_rows:
        if matrix.tokens is None:
            raise InputError(f"{matrix.info.source} has no tokenizer beside it: leave out --tokenizer-rows")
        mask[matrix.tokens.count :] = False
    for index in options.exclude_ids:
        if not 0 <= index < matrix.count:
            raise InputError(f"row {index} is not in 0..{matrix.count - 1}: correct --exclude-ids")
        mask[index] = False
    return mask


def _sampled(
    matrix: Matrix, mask: np.ndarray | None, options: PairOptions, on_progress: ProgressFn | None
) -> PairCounts:
    from repcap.geometry.pair_sample import sample_pairs

    assert options.sample is not None
    return sample_pairs(
        matrix, options.sample, mask=mask, keep=options.keep, seed=options.seed, on_progress=on_progress
    )


def _spread(
    source: Any,
    matrix: str,
    opened: Matrix,
    mask: np.ndarray | None,
    options: PairOptions,
    on_progress: ProgressFn | None,
) -> PairCounts:
    """Share the panel pairs out over an engine. Each unit opens the source itself, so `source` must be a spec."""
    from repcap.engine import Fault, Unit, parse_engine, run
    from repcap.geometry.pairs import panel_pairs

    if not isinstance(source, str):
        raise InputError("an engine needs a source that its workers can open: give a path or a name, not a tensor")
    assert options.engine is not None
    chosen = panel_pairs(opened.count, options.panel)
    lots = min(len(chosen), max(16, 8 * parse_engine(options.engine).workers))
    units = [
        Unit(
            str(lot),
            (source, matrix, chosen[lot::lots], mask, options),
            f"lot {lot + 1} of {lots}",
            len(chosen[lot::lots]),
        )
        for lot in range(lots)
    ]
    total = PairCounts.empty(options.keep)
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


def count_lot(payload: tuple[str, str, Sequence[Any], Any, PairOptions]) -> dict[str, Any]:
    """Worker: count one lot of panel pairs. Returns the counts as plain lists."""
    from repcap.geometry.pairs import PanelPair, count_panels
    from repcap.sources import open_source

    source, matrix, chosen, mask, options = payload
    with open_source(source, matrix) as opened:
        return count_panels(
            opened,
            [PanelPair(*pair) for pair in chosen],
            mask=mask,
            keep=options.keep,
            panel=options.panel,
            device=options.device,
        ).to_dict()


def summarise(matrix: Matrix, counted: PairCounts, options: PairOptions, seconds: float) -> PairDistribution:
    """Moments, quantiles, tails and named pairs of counted pairs of `matrix`."""
    mean, std, skewness, kurtosis = counted.moments()
    sampled = options.sample is not None
    # p unordered pairs come from the n with n (n - 1) / 2 = p rows; a sample does not tell.
    count = matrix.count if sampled else round((1.0 + math.sqrt(1.0 + 8.0 * counted.pairs)) / 2.0)
    spread = Spread("all", count, matrix.dim, mean, std, options.z)
    edges, counts = counted.histogram(PAPER_BINS)
    extremes = [abs(e.cosine) for e in counted.largest[:1] + counted.smallest[:1]]
    return PairDistribution(
        source=matrix.info.source,
        matrix=matrix.info.name,
        role=matrix.info.role,
        count=count,
        dim=matrix.dim,
        pairs=counted.pairs,
        spread=spread,
        skewness=skewness,
        excess_kurtosis=kurtosis,
        coherence=max(extremes) if extremes and not sampled else None,
        quantiles=tuple((share, counted.quantile(share)) for share in QUANTILES),
        tail=measured_tail(counted, spread.epsilon),
        tail_normal=normal_tail(mean, std, spread.epsilon),
        tail_random=random_tail(matrix.dim, spread.epsilon),
        largest=_named(matrix, counted.largest),
        smallest=_named(matrix, counted.smallest),
        edges=tuple(edges.tolist()),
        counts=tuple(counts.tolist()),
        sampled=sampled,
        standard_error=_standard_error(std, skewness, kurtosis, options.z, counted.pairs) if sampled else None,
        seed=options.seed if sampled else None,
        seconds=seconds,
        options=options.to_dict(),
        revision=matrix.info.revision,
    )


def _standard_error(std: float, skewness: float, kurtosis: float, z: float, pairs: int) -> float:
    """Of mean + z std over independently drawn pairs, by the delta method.

    Var(mean) = s^2/M, Cov(mean, std) = s^2 g/(2M), Var(std) = s^2 (h + 2)/(4M), g skewness, h excess kurtosis.
    """
    return std * math.sqrt(max(0.0, 1.0 + z * skewness + z * z * (kurtosis + 2.0) / 4.0) / pairs)


def _named(matrix: Matrix, extremes: Sequence[Extreme]) -> tuple[NamedPair, ...]:
    text = matrix.tokens.text if matrix.tokens is not None else lambda _index: None
    return tuple(NamedPair(e.cosine, e.i, e.j, text(e.i), text(e.j)) for e in extremes)
