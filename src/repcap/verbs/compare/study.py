"""`compare`: two matrices side by side, row against row, and neighbourhood against neighbourhood."""

from __future__ import annotations

import dataclasses
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from repcap import geometry
from repcap._version import __version__
from repcap.errors import InputError, SourceError, VectorsError
from repcap.matrix import Matrix, ProgressFn
from repcap.studies.measured import Measured, with_capacity
from repcap.studies.pairing import Pairing, pair_rows

if TYPE_CHECKING:
    from repcap.geometry.nearest.corresponding import Corresponding

QUANTILES = (0.0, 0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99, 1.0)
BINS = 200


@dataclasses.dataclass(frozen=True)
class RowChange:
    """One pair of corresponding rows. norm_ratio: length in b over length in a."""

    row_a: int
    row_b: int
    token: str | None
    cosine: float
    norm_ratio: float


@dataclasses.dataclass(frozen=True)
class RowCosines:
    """Cosines of corresponding rows. rows: pairs with a direction on both sides; dropped: pairs without.

    quantiles: (share, cosine). norm_ratio: median of the length in b over that in a. worst: the rows that differ most,
    the worst first. edges, counts: histogram.
    """

    rows: int
    dropped: int
    mean: float
    std: float
    quantiles: tuple[tuple[float, float], ...]
    norm_ratio: float
    worst: tuple[RowChange, ...]
    edges: tuple[float, ...] = dataclasses.field(repr=False)
    counts: tuple[int, ...] = dataclasses.field(repr=False)

    def to_dict(self) -> dict[str, Any]:
        return {
            "rows": self.rows,
            "dropped": self.dropped,
            "mean": self.mean,
            "std": self.std,
            "quantiles": [{"share": share, "cosine": cosine} for share, cosine in self.quantiles],
            "norm_ratio": self.norm_ratio,
            "worst": [dataclasses.asdict(row) for row in self.worst],
            "histogram": {"edges": list(self.edges), "counts": list(self.counts)},
        }


@dataclasses.dataclass(frozen=True)
class NeighbourOverlap:
    """How many of a row's nearest neighbours are the same in both: Jaccard index |A and B| / |A or B| of the `top`.

    rows: random common rows that were asked. chance: the index that random neighbours would have.
    least: (token, row in a, index) of the rows that keep fewest.
    """

    top: int
    rows: int
    mean: float
    median: float
    standard_error: float
    chance: float
    least: tuple[tuple[str | None, int, float], ...]

    def to_dict(self) -> dict[str, Any]:
        record = dataclasses.asdict(self)
        record["least"] = [{"token": token, "row_a": row, "jaccard": value} for token, row, value in self.least]
        return record


@dataclasses.dataclass(frozen=True)
class Comparison:
    """Two matrices compared. `rows` is None where the widths differ or `tied`; then `reason` says why.

    b and neighbours are None where both are one matrix (`tied`).
    """

    a: Measured
    b: Measured | None
    tied: bool
    pairing: Pairing | None
    rows: RowCosines | None
    reason: str
    neighbours: NeighbourOverlap | None
    notes: tuple[str, ...]
    options: dict[str, Any]
    seconds: float

    @property
    def sentence(self) -> str:
        """The result in words."""
        if self.tied or self.b is None:
            return (
                f"{self.a.info.source} is tied ({self.a.info.evidence}): embedding and unembedding are one matrix, "
                "so every corresponding row has cosine 1 and there is nothing to compare."
            )
        parts = []
        if self.rows is not None:
            low = dict(self.rows.quantiles)[0.05]
            parts.append(
                f"corresponding rows have a mean cosine of {self.rows.mean:.5f} (95 % of them above {low:.5f})"
            )
        if self.neighbours is not None:
            share = self.neighbours.mean
            parts.append(f"the {self.neighbours.top} nearest neighbours agree to {share:.0%} (Jaccard)")
        first, second = self.a.class_name, self.b.class_name
        classes = f"class {first} both" if first == second else f"class {first} and {second}"
        parts.append(f"epsilon is {self.a.epsilon:.4f} and {self.b.epsilon:.4f} ({classes})")
        text = "; ".join(parts)
        return text[0].upper() + text[1:] + "."

    def to_dict(self) -> dict[str, Any]:
        return {
            "a": self.a.to_dict(),
            "b": self.b.to_dict() if self.b else None,
            "tied": self.tied,
            "pairing": self.pairing.to_dict() if self.pairing else None,
            "rows": self.rows.to_dict() if self.rows else None,
            "reason": self.reason,
            "neighbours": self.neighbours.to_dict() if self.neighbours else None,
            "sentence": self.sentence,
            "notes": list(self.notes),
            "options": self.options,
            "seconds": self.seconds,
            "repcap_version": __version__,
        }


@dataclasses.dataclass(frozen=True)
class CompareOptions:
    """matrix, matrix_b: what to open of a and b (b's default is a's; `unembedding` where there is no b).

    match: `auto`, `row` or `text`, how rows are paired (see `pair_rows`). top: neighbours a row. sample: rows whose
    neighbours are compared, 0 for none. worst: rows to name.
    """

    matrix: str = "embedding"
    matrix_b: str | None = None
    match: str = "auto"
    top: int = 10
    sample: int = 256
    worst: int = 10
    z: float = 2.0
    seed: int = 0
    device: str = "auto"

    def check(self) -> None:
        """Raise InputError for a value that means nothing."""
        for name, least in (("top", 1), ("sample", 0), ("worst", 0)):
            if getattr(self, name) < least:
                raise InputError(f"--{name} {getattr(self, name)}: give a number of at least {least}")


def compare(a: Any, b: Any = None, *, on_progress: ProgressFn | None = None, **options: Any) -> Comparison:
    """Compare two matrices, (n_a, d_a) and (n_b, d_b): epsilon, corresponding rows, nearest neighbours.

    With one source its embedding is compared with its unembedding. Two sources: base against chat model, checkpoint
    against checkpoint, quantised against full. Options: see `CompareOptions`.

    Cost: two measurements, one pass over the common rows of both (O(n d)), and 2 `sample` n d operations on each side
    for the neighbours. Memory: blocks of rows, a few numbers a row; never n x n, never a whole matrix.

    Raises
    ------
    SourceError, VectorsError, InputError
        for what cannot be read, has no geometry, or cannot be asked for.
    """
    from repcap.sources import open_source

    started, chosen = time.perf_counter(), CompareOptions(**options)
    chosen.check()
    with open_source(a, chosen.matrix) as left:
        if b is None and chosen.matrix_b in (None, "unembedding") and left.info.tied:
            return Comparison(
                a=_measured(left, chosen, on_progress),
                b=None,
                tied=True,
                pairing=None,
                rows=None,
                reason="tied: embedding and unembedding are one matrix",
                neighbours=None,
                notes=(),
                options=dataclasses.asdict(chosen),
                seconds=time.perf_counter() - started,
            )
        second = chosen.matrix_b or ("unembedding" if b is None else chosen.matrix)
        with open_source(a if b is None else b, second) as right:
            _need_two(left, right, b)
            return _compare(left, right, chosen, started, on_progress)


def _need_two(left: Matrix, right: Matrix, b: Any) -> None:
    if b is None and left.info.name == right.info.name:
        raise SourceError(
            f"{left.info.source} has one such matrix, {left.info.name}: name a second source, or --matrix-b"
        )


def _measured(matrix: Matrix, options: CompareOptions, on_progress: ProgressFn | None) -> Measured:
    asked = geometry.MeasureOptions(z=options.z, device=options.device, seed=options.seed)
    return with_capacity(geometry.measure_matrix(matrix, asked, on_progress=on_progress))


def _compare(
    left: Matrix, right: Matrix, options: CompareOptions, started: float, on_progress: ProgressFn | None
) -> Comparison:
    pairing = pair_rows(left, right, options.match)
    a, b = pairing.views(left, right)
    rows, reason = None, ""
    if left.dim == right.dim:
        rows = summarise_rows(geometry.corresponding(a, b, on_progress=on_progress), pairing, left, options.worst)
    else:
        reason = (
            f"the rows have {left.dim} and {right.dim} columns, so no cosine between them; "
            "epsilon and nearest neighbours are compared all the same"
        )
    return Comparison(
        a=_measured(left, options, on_progress),
        b=_measured(right, options, on_progress),
        tied=False,
        pairing=pairing,
        rows=rows,
        reason=reason,
        neighbours=neighbour_overlap(a, b, pairing, left, options) if options.sample else None,
        notes=(*pairing.notes, *([reason] if reason else [])),
        options=dataclasses.asdict(options),
        seconds=time.perf_counter() - started,
    )


def summarise_rows(found: Corresponding, pairing: Pairing, named: Matrix, worst: int) -> RowCosines:
    """Distribution and worst rows of corresponding cosines; token texts are those of `named`."""
    usable = np.flatnonzero(~np.isnan(found.cosine))
    if not len(usable):
        raise VectorsError("no row has a direction in both matrices: nothing to compare")
    cosine = found.cosine[usable]
    low = float(min(cosine.min(), 1.0 - 1e-6))
    counts, edges = np.histogram(cosine, bins=BINS, range=(low, 1.0))
    order = usable[np.argsort(cosine, kind="stable")[:worst]]
    text = named.tokens.text if named.tokens is not None else lambda _row: None
    changes = tuple(
        RowChange(
            row_a=int(pairing.a[at]),
            row_b=int(pairing.b[at]),
            token=text(int(pairing.a[at])),
            cosine=float(found.cosine[at]),
            norm_ratio=float(found.norm_b[at] / found.norm_a[at]),
        )
        for at in order
    )
    return RowCosines(
        rows=len(usable),
        dropped=len(found.cosine) - len(usable),
        mean=float(cosine.mean()),
        std=float(cosine.std()),
        quantiles=tuple((share, float(np.quantile(cosine, share))) for share in QUANTILES),
        norm_ratio=float(np.median(found.norm_b[usable] / found.norm_a[usable])),
        worst=changes,
        edges=tuple(edges.tolist()),
        counts=tuple(counts.tolist()),
    )


def neighbour_overlap(
    a: Matrix, b: Matrix, pairing: Pairing, named: Matrix, options: CompareOptions
) -> NeighbourOverlap | None:
    """Jaccard index of the nearest neighbours of random common rows; None where there are too few rows.

    a, b: the paired rows, (m, d_a) and (m, d_b); the widths may differ. Two passes, 2 sample m d operations each.
    """
    count, top = a.count, min(options.top, a.count - 2)
    if top < 1:
        return None
    order = np.sort(np.random.default_rng(options.seed).permutation(count)[: options.sample])
    left = geometry.directions(a, order)
    right = geometry.directions(b, order)
    both, at_a, at_b = np.intersect1d(left.indices.numpy(), right.indices.numpy(), return_indices=True)
    if not len(both):
        return None
    itself = [frozenset([int(row)]) for row in both]
    near_a = geometry.ranked(a, left.units[at_a], top, exclude=itself)
    near_b = geometry.ranked(b, right.units[at_b], top, exclude=itself)
    index = np.array(
        [
            len(set(x.indices) & set(y.indices)) / len(set(x.indices) | set(y.indices))
            for x, y in zip(near_a, near_b, strict=True)
        ]
    )
    text = named.tokens.text if named.tokens is not None else lambda _row: None
    least = [(text(int(pairing.a[both[at]])), int(pairing.a[both[at]]), float(index[at])) for at in index.argsort()]
    share = top / (count - 1)
    return NeighbourOverlap(
        top=top,
        rows=len(both),
        mean=float(index.mean()),
        median=float(np.median(index)),
        standard_error=float(index.std(ddof=1) / np.sqrt(len(index))) if len(index) > 1 else 0.0,
        chance=share / (2.0 - share),
        least=tuple(least[: options.worst]),
    )
