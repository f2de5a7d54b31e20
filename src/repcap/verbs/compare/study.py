"""`compare`: two matrices side by side, row against row, and neighbourhood against neighbourhood."""

from __future__ import annotations

import dataclasses
from typing import Annotated, Any

import numpy as np

from repcap import geometry, sources
from repcap.errors import SourceError, VectorsError
from repcap.matrix import Matrix, ProgressFn, stages
from repcap.numerics import Z_DEFAULT
from repcap.options import Device, MatrixName, Option, Seed, Z, verb
from repcap.result import Result
from repcap.studies.measured import Measured, with_capacity
from repcap.studies.pairing import Pairing, pair_rows
from repcap.studies.row_cosines import RowCosines, summarise_rows

SecondMatrix = Annotated[str | None, Option("The same of B, where it differs.", listed=False, metavar="NAME")]
Match = Annotated[str, Option("Pair rows by row, by token text, or auto.", choices=("auto", "row", "text"))]
NeighboursOfRow = Annotated[int, Option("Nearest neighbours a row.", least=1)]
SampledRows = Annotated[int, Option("Rows whose neighbours are compared; 0: none.", least=0)]
Worst = Annotated[int, Option("Name so many rows that differ most.", least=0)]


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


@dataclasses.dataclass(frozen=True, repr=False)
class Comparison(Result):
    """Two matrices compared.

    corresponding: the cosines of corresponding rows, `rows` of the record; None where the widths differ or `tied`, and
    then `reason` says why. b and neighbours are None where both are one matrix (`tied`).
    difference: epsilon of b less that of a over corresponding rows, with its paired standard error.
    """

    kind = "compare"

    a: Measured
    b: Measured | None
    tied: bool
    pairing: Pairing | None
    corresponding: RowCosines | None
    reason: str
    neighbours: NeighbourOverlap | None
    notes: tuple[str, ...]
    difference: geometry.Difference | None = None

    @property
    def title(self) -> str:
        return self.a.title if self.b is None else f"{self.a.title}, against {self.b.title}"

    @property
    def numbers(self) -> str:
        cosine = (
            "" if self.corresponding is None else f", mean cosine of corresponding rows {self.corresponding.mean:.6f}"
        )
        second = "" if self.b is None else f" and {self.b.epsilon:.6f}"
        return f"epsilon {self.a.epsilon:.6f}{second}{cosine}"

    @property
    def reading(self) -> str:
        """The result in words."""
        if self.tied or self.b is None:
            return (
                f"{self.a.info.source} is tied ({self.a.info.evidence}): embedding and unembedding are one matrix, "
                "so every corresponding row has cosine 1 and there is nothing to compare."
            )
        parts = []
        if self.corresponding is not None:
            above = f"95 % of them above {self.corresponding.low:.5f}"
            parts.append(f"corresponding rows have a mean cosine of {self.corresponding.mean:.5f} ({above})")
        if self.neighbours is not None:
            share = self.neighbours.mean
            parts.append(f"the {self.neighbours.top} nearest neighbours agree to {share:.0%} (Jaccard)")
        first, second = self.a.class_name, self.b.class_name
        classes = f"class {first} both" if first == second else f"class {first} and {second}"
        parts.append(f"epsilon is {self.a.epsilon:.4f} and {self.b.epsilon:.4f} ({classes})")
        if self.difference is not None:
            found = self.difference
            far = abs(found.epsilon) > 2.0 * found.se
            parts.append(
                f"the difference over corresponding rows is {found.epsilon:+.3g} ± {found.se:.2g}, "
                f"{'more than' if far else 'within'} twice its paired standard error"
            )
        text = "; ".join(parts)
        return text[0].upper() + text[1:] + "."

    def values(self) -> dict[str, Any]:
        return {
            "a": self.a.to_dict(),
            "b": self.b.to_dict() if self.b else None,
            "tied": self.tied,
            "pairing": self.pairing.to_dict() if self.pairing else None,
            "rows": self.corresponding.to_dict() if self.corresponding else None,
            "difference": None if self.difference is None else dataclasses.asdict(self.difference),
            "reason": self.reason,
            "neighbours": self.neighbours.to_dict() if self.neighbours else None,
            "notes": list(self.notes),
        }


@verb
def compare(
    a: Any,
    b: Any = None,
    *,
    matrix: MatrixName = "embedding",
    matrix_b: SecondMatrix = None,
    match: Match = "auto",
    top: NeighboursOfRow = 10,
    sample: SampledRows = 256,
    worst: Worst = 10,
    z: Z = Z_DEFAULT,
    seed: Seed = 0,
    device: Device = "auto",
    on_progress: ProgressFn | None = None,
) -> Comparison:
    """Compare two matrices, (n_a, d_a) and (n_b, d_b): epsilon, corresponding rows, nearest neighbours.

    With one source its embedding is compared with its unembedding. Two sources: base against chat model, checkpoint
    against checkpoint, quantised against full.

    Parameters
    ----------
    a, b
        sources as of `repcap.measure`.
    matrix, matrix_b : str
        what to open of a and of b; b's default is a's, or `unembedding` where there is no b.
    match : str
        `auto`, `row` or `text`, how rows are paired: see `repcap.studies.pairing.pair_rows`.
    top, sample : int
        neighbours a row; rows whose neighbours are compared, 0 for none.
    worst : int
        rows to name that differ most.
    z, seed, device
        as of `repcap.measure`; `seed` draws the sampled rows, too.

    Raises
    ------
    SourceError, VectorsError, InputError
        for what cannot be read, has no geometry, or cannot be asked for.

    Cost: two measurements, two passes more for the error of their difference, one over the common rows (O(n d)), and
    2 `sample` n d operations on each side for the neighbours. Memory: blocks of rows, a few numbers a row; never
    n x n, never a whole matrix.
    """
    asked = geometry.MeasureOptions(z=z, device=device, seed=seed)

    pairing_rows, of_a, of_b = stages(on_progress, 1, 4, 4)

    def measured(of: Matrix, told: ProgressFn | None) -> Measured:
        return with_capacity(geometry.measure_matrix(of, asked, on_progress=told))

    with sources.open_source(a, matrix) as left:
        if b is None and matrix_b in (None, "unembedding") and left.info.tied:
            return _tied(measured(left, on_progress))
        second = matrix_b or ("unembedding" if b is None else matrix)
        with sources.open_source(a if b is None else b, second) as right:
            if b is None and left.info.name == right.info.name:
                raise SourceError(
                    f"{left.info.source} has one such matrix, {left.info.name}: name a second source, or `matrix_b`"
                )
            pairing = pair_rows(left, right, match)
            views = pairing.views(left, right)
            rows, reason = _rows(left, right, pairing, worst, pairing_rows)
            overlap = None
            if sample:
                overlap = _neighbour_overlap(*views, pairing, left, top=top, sample=sample, worst=worst, seed=seed)
            return Comparison(
                a=measured(left, of_a),
                b=measured(right, of_b),
                tied=False,
                pairing=pairing,
                corresponding=rows,
                reason=reason,
                neighbours=overlap,
                notes=(*pairing.notes, *([reason] if reason else [])),
                difference=_difference(*views, z, device, seed),
            )


def _difference(a: Matrix, b: Matrix, z: float, device: str, seed: int) -> geometry.Difference | None:
    """None where too few rows correspond for an error."""
    try:
        return geometry.epsilon_difference(a, b, z, device=device, seed=seed)
    except VectorsError:
        return None


def _tied(one: Measured) -> Comparison:
    """What there is to say where both are one matrix."""
    return Comparison(
        a=one,
        b=None,
        tied=True,
        pairing=None,
        corresponding=None,
        reason="tied: embedding and unembedding are one matrix",
        neighbours=None,
        notes=(),
    )


def _rows(
    left: Matrix, right: Matrix, pairing: Pairing, worst: int, on_progress: ProgressFn | None
) -> tuple[RowCosines | None, str]:
    """(the cosines of corresponding rows, why there are none)."""
    if left.dim != right.dim:
        return None, (
            f"the rows have {left.dim} and {right.dim} columns, so no cosine between them; "
            "epsilon and nearest neighbours are compared all the same"
        )
    found = geometry.corresponding(*pairing.views(left, right), on_progress=on_progress)
    return summarise_rows(found, pairing, left, worst), ""


def _neighbour_overlap(
    a: Matrix, b: Matrix, pairing: Pairing, named: Matrix, *, top: int, sample: int, worst: int, seed: int
) -> NeighbourOverlap | None:
    """Jaccard index of the nearest neighbours of random common rows; None where there are too few rows.

    a, b: the paired rows, (m, d_a) and (m, d_b); the widths may differ. Two passes, 2 sample m d operations each.
    """
    count, top = a.count, min(top, a.count - 2)
    if top < 1:
        return None
    order = np.sort(np.random.default_rng(seed).permutation(count)[:sample])
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
        least=tuple(least[:worst]),
    )
