"""`tokens`: tokens that were hardly ever trained, from the weights alone.

The gradient of an unembedding pushes all rows of tokens that never occur the same way, and weight decay draws the rows
of an embedding that is never read towards one point: rows that were not trained lie together, closer to a common centre
than any others. Where that centre is, the matrix itself says.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Annotated, Any

import numpy as np
from scipy.stats import norm

from repcap import sources
from repcap.errors import VectorsError
from repcap.matrix import Matrix, ProgressFn
from repcap.options import AllowTruncated, Option, verb
from repcap.result import Result

CORE_SHARE, CORE_LEAST = 1000, 16
"""The centre is that of one row in so many, of at least so many."""
MOST_ROUNDS = 20
STARTS = (0.0, 1.0, 1.5, 2.0, 3.0)
"""The common centre is looked for from these multiples of the mean of all rows: the push goes along the mean."""
QUANTILES = (0.25, 0.1, 0.05)
"""Where the spread of the bulk is read off, on its near side: the widest of the three counts."""
LEAST_ROWS = 100
LEAST_DISTANCE = 1e-6
"""Of the median: rows are told apart no further."""
BLOCK = 8192


@dataclasses.dataclass(frozen=True)
class Candidate:
    """A token that was hardly trained. distance: of its row from the centre. z: its place in the bulk."""

    row: int
    text: str | None
    distance: float
    z: float
    padding: bool
    """Whether the tokenizer has no such id."""


@dataclasses.dataclass(frozen=True)
class MatrixTokens:
    """Of one matrix. distances are of rows from their common centre; threshold: candidates lie below it."""

    matrix: str
    role: str
    count: int
    dim: int
    tied: bool | None
    centre_norm: float
    median: float
    spread: float
    """Standard deviation of the logarithm of the distance in the bulk."""
    threshold: float | None
    candidates: tuple[Candidate, ...]
    token_count: int | None


@dataclasses.dataclass(frozen=True, repr=False)
class UntrainedTokens(Result):
    """matrices: the embedding, and the unembedding where it is another one."""

    kind = "tokens"

    source: str
    revision: str | None
    fdr: float
    matrices: tuple[MatrixTokens, ...]

    @property
    def title(self) -> str:
        return self.source

    @property
    def numbers(self) -> str:
        return ", ".join(f"{len(part.candidates)} of {part.count} rows of the {part.role}" for part in self.matrices)

    @property
    def both(self) -> tuple[int, ...]:
        """Rows that are candidates in every matrix."""
        held = [{item.row for item in part.candidates} for part in self.matrices]
        return tuple(sorted(set.intersection(*held))) if held else ()

    @property
    def reading(self) -> str:
        """What was found, in words."""
        share = f"at a false-discovery rate of {self.fdr:g}"
        if not any(part.candidates for part in self.matrices):
            return f"No row stands out as never trained {share}."
        said = [f"{len(part.candidates)} rows of the {part.role}" for part in self.matrices]
        text = f"{' and '.join(said)} were hardly ever trained, by their weights alone, {share}"
        return text + (f"; {len(self.both)} are in both." if len(self.matrices) > 1 else ".")

    def values(self) -> dict[str, Any]:
        held = {name: value for name, value in super().values().items() if name != "matrices"}
        return {**held, "matrices": [dataclasses.asdict(part) for part in self.matrices], "both": list(self.both)}

    def rows(self) -> list[dict[str, Any]]:
        """One row a candidate."""
        return [
            {"matrix": part.matrix, **dataclasses.asdict(item)} for part in self.matrices for item in part.candidates
        ]


@verb
def tokens(
    source: Any,
    *,
    fdr: Annotated[
        float, Option("Share of false ones among what is named.", least=1e-6, most=0.5, why="give 1e-6 to 0.5")
    ] = 0.01,
    allow_truncated: AllowTruncated = False,
    on_progress: ProgressFn | None = None,
) -> UntrainedTokens:
    """Candidates for tokens that were never trained, with no list of ids given.

    Parameters
    ----------
    source
        a checkpoint, as of `repcap.measure`.
    fdr
        false-discovery rate: the share of trained tokens among the candidates, where the bulk is as it is assumed.
    allow_truncated
        read a truncated file where the matrix is whole.
    on_progress
        called with (passes done, passes at most).

    Notes
    -----
    The centre: from multiples of the mean of all rows, the median of the nearest thousandth, again until it stays; of
    these the one with the tightest core. The logarithm of the distance from it is close to normal in the bulk; its
    median and the spread of its near side give each row a chance, and Benjamini and Hochberg's rule the threshold. A
    token that was trained a few times lies between, and rows that were never trained but drawn as widely as the trained
    ones are not seen.

    Cost: up to 20 passes of O(5 n d). Memory: a block of rows, O(n), and n d / 1000 numbers.

    Raises
    ------
    SourceError, VectorsError
        if the matrix cannot be read, or has fewer than 100 rows with finite numbers.
    """
    with sources.open_source(source, "embedding", allow_truncated=allow_truncated) as first:
        found = [_look(first, fdr, on_progress)]
        info = first.info
    if info.role == "embedding" and info.tied is False:
        with sources.open_source(source, "unembedding", allow_truncated=allow_truncated) as second:
            found.append(_look(second, fdr, on_progress))
    return UntrainedTokens(info.source, info.revision, fdr, tuple(found))


def _look(matrix: Matrix, fdr: float, on_progress: ProgressFn | None) -> MatrixTokens:
    centres, distances = _centres(matrix, on_progress)
    places = [_place(distance) for distance in distances]
    best = int(np.argmin([np.sort(place.z)[: _core(matrix)].mean() for place in places]))
    place, distance = places[best], distances[best]
    # Each start is one more try: the rate is shared among them.
    chosen = _discoveries(place.z, fdr / len(STARTS))
    known = matrix.tokens
    candidates = tuple(
        Candidate(
            row=int(row),
            text=known.text(int(row)) if known is not None else None,
            distance=float(distance[row]),
            z=float(place.z[row]),
            padding=known is not None and row >= known.count,
        )
        for row in chosen
    )
    return MatrixTokens(
        matrix=matrix.info.name,
        role=matrix.info.role,
        count=matrix.count,
        dim=matrix.dim,
        tied=matrix.info.tied,
        centre_norm=float(np.linalg.norm(centres[best])),
        median=math.exp(place.median),
        spread=place.spread,
        threshold=float(distance[chosen[-1]]) if len(chosen) else None,
        candidates=candidates,
        token_count=known.count if known is not None else None,
    )


@dataclasses.dataclass(frozen=True)
class _Place:
    """Median and spread of the bulk's log distance; z of each row, +inf where it is not finite."""

    median: float
    spread: float
    z: np.ndarray


def _place(distance: np.ndarray) -> _Place:
    finite = np.isfinite(distance)
    logs = np.log(np.maximum(distance[finite], LEAST_DISTANCE * np.median(distance[finite]) or 1.0))
    median = float(np.median(logs))
    spread = max((median - float(np.quantile(logs, q))) / -float(norm.ppf(q)) for q in QUANTILES)
    z = np.full(len(distance), np.inf)
    z[finite] = (logs - median) / max(spread, 1e-12)
    return _Place(median, spread, z)


def _discoveries(z: np.ndarray, fdr: float) -> np.ndarray:
    """Rows whose chance is below the threshold of Benjamini and Hochberg, smallest first."""
    order = np.argsort(z, kind="stable")
    p = norm.cdf(z[order])
    below = np.flatnonzero(p <= fdr * np.arange(1, len(p) + 1) / len(p))
    return order[: below[-1] + 1] if len(below) else order[:0]


def _core(matrix: Matrix) -> int:
    return max(CORE_LEAST, matrix.count // CORE_SHARE)


def _mean(matrix: Matrix) -> np.ndarray:
    """Mean of the rows that are finite, (d,), float64."""
    total, count = np.zeros(matrix.dim), 0
    for _, block in matrix.blocks(BLOCK):
        rows = block.double().numpy()
        rows = rows[np.isfinite(rows).all(axis=1)]
        total += rows.sum(axis=0)
        count += len(rows)
    if count < LEAST_ROWS:
        raise VectorsError(f"{matrix.info.title} has {count} rows of finite numbers: {LEAST_ROWS} make a bulk")
    mean: np.ndarray = total / count
    return mean


def _centres(matrix: Matrix, on_progress: ProgressFn | None) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """From each start: (centre, (d,)) and (distance of each row from it, (n,), NaN for rows that are not finite)."""
    mean = _mean(matrix)
    centres = [start * mean for start in STARTS]
    distances: list[np.ndarray] = [np.empty(0)] * len(STARTS)
    moving = list(range(len(STARTS)))
    for done in range(MOST_ROUNDS):
        for start, distance in zip(moving, _distances(matrix, [centres[start] for start in moving]), strict=True):
            distances[start] = distance
        if on_progress is not None:
            on_progress(done + 1, MOST_ROUNDS)
        moving = [start for start in moving if _moved(matrix, centres, distances[start], start)]
        if not moving:
            break
    return centres, distances


def _moved(matrix: Matrix, centres: list[np.ndarray], distance: np.ndarray, start: int) -> bool:
    """Whether a centre went elsewhere: to the coordinate-wise median of the rows nearest to it."""
    order = np.argsort(np.where(np.isfinite(distance), distance, np.inf), kind="stable")[: _core(matrix)]
    new = np.median(matrix.take(order.tolist()).double().numpy(), axis=0)
    step = float(np.linalg.norm(new - centres[start]))
    if step <= 1e-9 * (1.0 + float(np.linalg.norm(new))):
        return False
    centres[start] = new
    return True


def _distances(matrix: Matrix, centres: list[np.ndarray]) -> list[np.ndarray]:
    """Of each row from each centre, float64. One pass."""
    out = np.empty((len(centres), matrix.count))
    for first, block in matrix.blocks(BLOCK):
        rows = block.double().numpy()
        for place, centre in enumerate(centres):
            out[place, first : first + len(rows)] = np.linalg.norm(rows - centre, axis=1)
    return list(np.where(np.isfinite(out), out, np.nan))
