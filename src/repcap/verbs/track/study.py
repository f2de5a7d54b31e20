"""`track`: one matrix over many checkpoints of one model: epsilon over steps, and how far the rows turn."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from repcap import geometry
from repcap._version import __version__
from repcap.errors import InputError, RepcapError, VectorsError
from repcap.matrix import Matrix, ProgressFn
from repcap.studies.pairing import pair_rows
from repcap.verbs.compare.study import QUANTILES, summarise_rows
from repcap.verbs.track.steps import expand

if TYPE_CHECKING:
    from repcap.geometry.measurement.measurement import Measurement


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


@dataclasses.dataclass(frozen=True)
class Track:
    """points: in order of steps. failures: (source, why) of checkpoints that could not be measured."""

    points: tuple[TrackPoint, ...]
    failures: tuple[tuple[str, str], ...]
    notes: tuple[str, ...]
    options: dict[str, Any]
    seconds: float

    @property
    def sentence(self) -> str:
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

    def to_dict(self) -> dict[str, Any]:
        return {
            "points": [point.to_dict() for point in self.points],
            "failures": [{"source": source, "reason": why} for source, why in self.failures],
            "sentence": self.sentence,
            "notes": list(self.notes),
            "options": self.options,
            "seconds": self.seconds,
            "repcap_version": __version__,
        }


class TrackInterrupted(KeyboardInterrupt):
    """Ctrl-C after some checkpoints were measured; `track` holds them."""

    def __init__(self, track: Track) -> None:
        super().__init__()
        self.track = track


def track(
    sources: Sequence[str],
    matrix: str = "embedding",
    *,
    z: float = 2.0,
    device: str = "auto",
    seed: int = 0,
    on_progress: ProgressFn | None = None,
) -> Track:
    """Measure `matrix` in each checkpoint, and the cosine of its rows with those of the first and of the one before.

    sources: specs, patterns (`run/checkpoint-*`) or a run directory; sorted by the steps in their names.
    on_progress: called with (checkpoints done, checkpoints).

    Cost: a measurement (O(n d^2)) and two passes (O(n d)) a checkpoint. Memory: three checkpoints are open at once,
    blocks of rows are read. A checkpoint that fails is listed and left out.

    Raises
    ------
    InputError
        if nothing is named.
    SourceError, VectorsError
        the first failure, where no checkpoint could be measured.
    TrackInterrupted
        a KeyboardInterrupt that holds the checkpoints which were measured before it.
    """
    started = time.perf_counter()
    named = expand([sources] if isinstance(sources, str) else sources)
    walk = _Walk(matrix, z, device, seed)
    try:
        for done, (source, step) in enumerate(named):
            walk.visit(source, step)
            if on_progress is not None:
                on_progress(done + 1, len(named))
    except KeyboardInterrupt:
        if not walk.points:
            raise
        walk.notes.append(f"interrupted after {len(walk.points) + len(walk.failed)} of {len(named)} checkpoints")
        raise TrackInterrupted(_result(walk, named, time.perf_counter() - started)) from None
    finally:
        walk.close()
    if not walk.points:
        raise walk.errors[0]
    return _result(walk, named, time.perf_counter() - started)


def _result(walk: _Walk, named: Sequence[tuple[str, int | None]], seconds: float) -> Track:
    notes = list(dict.fromkeys(walk.notes))
    if len(named) > 1 and any(step is None for _, step in named):
        without = next(source for source, step in named if step is None)
        notes.append(f"no training step in the name {without}: the checkpoints are shown in the order given")
    failures = tuple((source, str(error)) for source, error in zip(walk.failed, walk.errors, strict=True))
    return Track(tuple(walk.points), failures, tuple(notes), walk.options, seconds)


class _Walk:
    """Goes from checkpoint to checkpoint; keeps the first and the previous one open."""

    def __init__(self, matrix: str, z: float, device: str, seed: int) -> None:
        self.options = {"matrix": matrix, "z": z, "device": device, "seed": seed}
        self._matrix, self._z, self._device, self._seed = matrix, z, device, seed
        self._first: Matrix | None = None
        self._previous: Matrix | None = None
        self.points: list[TrackPoint] = []
        self.failed: list[str] = []
        self.errors: list[RepcapError] = []
        self.notes: list[str] = []

    def visit(self, source: str, step: int | None) -> None:
        from repcap.sources import open_source

        opened: Matrix | None = None
        try:
            opened = open_source(source, self._matrix)
            asked = geometry.MeasureOptions(z=self._z, device=self._device, seed=self._seed)
            found = geometry.measure_matrix(opened, asked)
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
        low = dict(rows.quantiles)[QUANTILES[2]]
        return Drift(earlier.info.source, rows.rows, rows.mean, low, rows.norm_ratio)

    def close(self) -> None:
        for matrix in {id(m): m for m in (self._first, self._previous) if m is not None}.values():
            matrix.close()
