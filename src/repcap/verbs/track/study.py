"""`track`: one matrix over many checkpoints of one model: epsilon over steps, and how far the rows turn."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from repcap import geometry, sources
from repcap.errors import InputError, RepcapError, VectorsError
from repcap.matrix import Matrix, ProgressFn
from repcap.numerics import Z_DEFAULT
from repcap.options import Device, MatrixName, Seed, Z, recorded, verb
from repcap.result import Result
from repcap.studies.digest import HashedMatrix
from repcap.studies.pairing import pair_rows
from repcap.studies.row_cosines import summarise_rows
from repcap.verbs.track.steps import expand

if TYPE_CHECKING:
    from repcap.geometry.measurement.measurement import Measurement
    from repcap.geometry.measurement.measuring import MeasureOptions

NAMED = 8
"""Checkpoints whose epsilon the short form gives."""


@dataclasses.dataclass(frozen=True)
class Drift:
    """Cosines of the rows of one checkpoint with the same rows of another. low: their 5 % quantile."""

    source: str
    rows: int
    mean: float
    low: float
    norm_ratio: float

    def to_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)


@dataclasses.dataclass(frozen=True)
class TrackPoint:
    """One checkpoint. to_first, to_previous: None at the first, and where the shapes do not allow it."""

    source: str
    step: int | None
    measurement: Measurement
    to_first: Drift | None
    to_previous: Drift | None
    sha256: str | None = None
    """Of the rows, as they were read."""

    def to_dict(self) -> dict[str, Any]:
        found = self.measurement
        return {
            "source": self.source,
            "revision": found.info.revision,
            "step": self.step,
            "matrix": found.info.name,
            "count": found.count,
            "dim": found.dim,
            "mean": found.mean,
            "std": found.std,
            "epsilon": found.epsilon,
            "epsilon_se": found.epsilon_se,
            "epsilon_null": found.epsilon_null,
            "epsilon_ratio": found.epsilon_ratio,
            "class": found.class_name,
            "effective_dim": found.effective_dim,
            "to_first": self.to_first.to_dict() if self.to_first else None,
            "to_previous": self.to_previous.to_dict() if self.to_previous else None,
            "tensor_sha256": self.sha256,
        }


@dataclasses.dataclass(frozen=True, repr=False)
class Track(Result):
    """points: in order of steps. failures: (source, why) of checkpoints that could not be measured."""

    kind = "track"

    points: tuple[TrackPoint, ...]
    failures: tuple[tuple[str, str], ...]
    notes: tuple[str, ...]

    @property
    def title(self) -> str:
        named = [self.points[0].source, *([self.points[-1].source] if len(self.points) > 1 else [])]
        return f"{len(self.points)} checkpoints, {' to '.join(named)}"

    @property
    def numbers(self) -> str:
        return "epsilon " + ", ".join(f"{point.measurement.epsilon:.4f}" for point in self.points[:NAMED])

    @property
    def reading(self) -> str:
        """The course of epsilon in words."""
        first, last = self.points[0], self.points[-1]
        if len(self.points) == 1:
            return f"One checkpoint: epsilon {first.measurement.epsilon:.4f} (class {first.measurement.class_name})."
        change = last.measurement.epsilon - first.measurement.epsilon
        errors = [p.measurement.epsilon_se for p in (first, last)]
        text = (
            f"epsilon goes from {first.measurement.epsilon:.4f} to {last.measurement.epsilon:.4f} ({change:+.4f}"
            + ("" if None in errors else f", standard errors {errors[0]:.1g} and {errors[1]:.1g}")
            + ")"
        )
        if last.to_first is not None:
            text += f"; the rows' mean cosine with where they began is {last.to_first.mean:.6f}"
        return text + "."

    def values(self) -> dict[str, Any]:
        return {
            "points": [point.to_dict() for point in self.points],
            "failures": [{"source": source, "reason": why} for source, why in self.failures],
            "notes": list(self.notes),
        }

    def rows(self) -> list[dict[str, Any]]:
        """One row a checkpoint; of the drifts the mean cosine."""
        means = ({"to_first": point.to_first, "to_previous": point.to_previous} for point in self.points)
        return [
            {**point.to_dict(), **{name: None if drift is None else drift.mean for name, drift in drifts.items()}}
            for point, drifts in zip(self.points, means, strict=True)
        ]


class TrackInterrupted(KeyboardInterrupt):
    """Ctrl-C after some checkpoints were measured; `track` holds them."""

    def __init__(self, track: Track) -> None:
        super().__init__()
        self.track = track


@verb
def track(
    checkpoints: str | Sequence[str],
    matrix: MatrixName = "embedding",
    *,
    z: Z = Z_DEFAULT,
    seed: Seed = 0,
    device: Device = "auto",
    on_progress: ProgressFn | None = None,
) -> Track:
    """Measure `matrix` in each checkpoint, and the cosine of its rows with those of the first and of the one before.

    Parameters
    ----------
    checkpoints : str or sequence of str
        sources, patterns (`run/checkpoint-*`) or a run directory; sorted by the steps in their names.
    matrix, z, seed, device
        as of `repcap.measure`.
    on_progress : callable, optional
        called with (checkpoints done, checkpoints).

    Notes
    -----
    A checkpoint that fails is listed and left out.

    Raises
    ------
    InputError
        if nothing is named.
    SourceError, VectorsError
        the first failure, where no checkpoint could be measured.
    TrackInterrupted
        a KeyboardInterrupt that holds the checkpoints which were measured before it.

    Cost: a measurement (O(n d^2)) and two passes (O(n d)) a checkpoint. Memory: three checkpoints are open at once,
    blocks of rows are read.
    """
    asked, started = dict(locals()), time.perf_counter()
    named = expand([checkpoints] if isinstance(checkpoints, str) else checkpoints)
    walk = _Walk(matrix, geometry.MeasureOptions(z=z, device=device, seed=seed))
    try:
        for done, (source, step) in enumerate(named):
            walk.visit(source, step)
            if on_progress is not None:
                on_progress(done + 1, len(named))
    except KeyboardInterrupt:
        if not walk.points:
            raise
        walk.notes.append(f"interrupted after {len(walk.points) + len(walk.failed)} of {len(named)} checkpoints")
        # What is raised does not pass through `verb`, which would write down the call.
        found = _result(walk, named).with_call(recorded(track, asked), time.perf_counter() - started)
        raise TrackInterrupted(found) from None
    finally:
        walk.close()
    if not walk.points:
        raise walk.errors[0]
    return _result(walk, named)


def _result(walk: _Walk, named: Sequence[tuple[str, int | None]]) -> Track:
    notes = [*_equal(walk.points), *dict.fromkeys(walk.notes)]
    if len(named) > 1 and any(step is None for _, step in named):
        without = next(source for source, step in named if step is None)
        notes.append(f"no training step in the name {without}: the checkpoints are shown in the order given")
    failures = tuple((source, str(error)) for source, error in zip(walk.failed, walk.errors, strict=True))
    return Track(tuple(walk.points), failures, tuple(notes))


def _equal(points: Sequence[TrackPoint]) -> list[str]:
    """One sentence for each lot of checkpoints whose rows are equal: a curve over those says nothing."""
    lots: dict[str, list[TrackPoint]] = {}
    for point in points:
        if point.sha256 is not None:
            lots.setdefault(point.sha256, []).append(point)
    return [f"{_named(lot, points)} hold the same bytes" for lot in lots.values() if len(lot) > 1]


def _named(lot: Sequence[TrackPoint], points: Sequence[TrackPoint]) -> str:
    """`step 57000 to 143000` where they follow one another, else each by its step or source."""
    first = points.index(lot[0])
    if all(point.step is not None for point in lot):
        together = len(lot) > 2 and list(points[first : first + len(lot)]) == list(lot)
        steps = [str(point.step) for point in lot]
        return f"steps {steps[0]} to {steps[-1]}" if together else f"steps {', '.join(steps)}"
    return ", ".join(point.source for point in lot)


class _Walk:
    """Goes from checkpoint to checkpoint; keeps the first and the previous one open."""

    def __init__(self, matrix: str, options: MeasureOptions) -> None:
        self._matrix, self._options = matrix, options
        self._first: Matrix | None = None
        self._previous: Matrix | None = None
        self.points: list[TrackPoint] = []
        self.failed: list[str] = []
        self.errors: list[RepcapError] = []
        self.notes: list[str] = []

    def visit(self, source: str, step: int | None) -> None:
        opened: Matrix | None = None
        try:
            opened = sources.open_source(source, self._matrix)
            if self._repeats(opened):
                self._again(source, step, opened)
                return
            hashed = HashedMatrix(opened)
            found = geometry.measure_matrix(hashed, self._options)
            to_first = self._drift(self._first, opened)
            to_previous = to_first if self._previous is self._first else self._drift(self._previous, opened)
        except RepcapError as error:
            self.failed.append(source)
            self.errors.append(error)
            if opened is not None:
                opened.close()
            return
        self.points.append(TrackPoint(source, step, found, to_first, to_previous, hashed.sha256))
        if self._first is None:
            self._first = opened
        if self._previous is not None and self._previous is not self._first:
            self._previous.close()
        self._previous = opened

    def _repeats(self, opened: Matrix) -> bool:
        """Whether it is known, before a row is read, that the rows are those of the checkpoint before."""
        previous = self._previous
        return previous is not None and opened.identity is not None and opened.identity == previous.identity

    def _again(self, source: str, step: int | None, opened: Matrix) -> None:
        """A checkpoint whose bytes are those of the one before: nothing is fetched."""
        last, previous = self.points[-1], self._previous
        measured = dataclasses.replace(last.measurement, info=opened.info)
        opened.close()
        to_previous = self._drift(previous, previous) if previous is not None else None
        to_first = to_previous if previous is self._first else last.to_first
        self.points.append(TrackPoint(source, step, measured, to_first, to_previous, last.sha256))

    def _drift(self, earlier: Matrix | None, later: Matrix) -> Drift | None:
        if earlier is None:
            return None
        if earlier.dim != later.dim:
            self.notes.append(
                f"{earlier.info.source} has rows of {earlier.dim} columns, {later.info.source} of {later.dim}: no drift"
            )
            return None
        try:
            pairing = pair_rows(earlier, later)
            rows = summarise_rows(geometry.corresponding(*pairing.views(earlier, later)), pairing, earlier, 0)
        except (InputError, VectorsError) as error:
            self.notes.append(f"{later.info.source} against {earlier.info.source}: {error}")
            return None
        self.notes += pairing.notes
        return Drift(earlier.info.source, rows.rows, rows.mean, rows.low, rows.norm_ratio)

    def close(self) -> None:
        for matrix in {id(m): m for m in (self._first, self._previous) if m is not None}.values():
            matrix.close()
