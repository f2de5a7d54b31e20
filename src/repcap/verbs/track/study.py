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
    notes = list(dict.fromkeys(walk.notes))
    if len(named) > 1 and any(step is None for _, step in named):
        without = next(source for source, step in named if step is None)
        notes.append(f"no training step in the name {without}: the checkpoints are shown in the order given")
    failures = tuple((source, str(error)) for source, error in zip(walk.failed, walk.errors, strict=True))
    return Track(tuple(walk.points), failures, tuple(notes))


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
            found = geometry.measure_matrix(opened, self._options)
            to_first = self._drift(self._first, opened)
            to_previous = to_first if self._previous is self._first else self._drift(self._previous, opened)
        except RepcapError as error:
            self.failed.append(source)
            self.errors.append(error)
            if opened is not None:
                opened.close()
            return
        self.points.append(TrackPoint(source, step, found, to_first, to_previous))
        if self._first is None:
            self._first = opened
        if self._previous is not None and self._previous is not self._first:
            self._previous.close()
        self._previous = opened

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
