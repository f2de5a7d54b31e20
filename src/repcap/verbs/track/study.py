"""`track`: one matrix over many checkpoints of one model: epsilon over steps, and how far the rows turn."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated, Any

from repcap import errors, sources
from repcap.errors import InputError, RepcapError, SourceError
from repcap.jobs.batch import EngineOptions, run_batch
from repcap.jobs.engine import Unit
from repcap.jobs.record import STEP, make, provenance
from repcap.jobs.store import Store, Stored, unit_key
from repcap.matrix import ProgressFn
from repcap.numerics import Z_DEFAULT
from repcap.options import Device, Engine, Option, Refresh, Retries, Seed, Timeout, Z, recorded, verb
from repcap.result import Result
from repcap.studies.places import Place, is_current, locate
from repcap.text import short_name
from repcap.verbs.track.points import BOTH, TrackPoint, measure_step, point_of, same_again
from repcap.verbs.track.steps import expand

TrackedMatrix = Annotated[
    str, Option("embedding, unembedding, both, or a tensor name (see repcap inspect).", listed=False, metavar="NAME")
]
TrackStore = Annotated[
    str | os.PathLike[str] | None,
    Option("Result store: what is in it is not measured again.", metavar="FILE", silent=True, listed=False),
]
NAMED = 8
"""Checkpoints whose epsilon the short form gives."""


@dataclasses.dataclass(frozen=True, repr=False)
class Track(Result):
    """points: in order of steps. failures: (source, why) of checkpoints that could not be measured."""

    kind = "track"
    tells = True

    points: tuple[TrackPoint, ...]
    failures: tuple[tuple[str, str], ...]
    notes: tuple[str, ...]

    @property
    def title(self) -> str:
        named = [self.points[0].source, *([self.points[-1].source] if len(self.points) > 1 else [])]
        return f"{len(self.points)} checkpoints, {' to '.join(named)}"

    @property
    def numbers(self) -> str:
        return "epsilon " + ", ".join(f"{point.epsilon:.4f}" for point in self.points[:NAMED])

    @property
    def reading(self) -> str:
        """The course of epsilon in words."""
        first, last = self.points[0], self.points[-1]
        if len(self.points) == 1:
            return f"One checkpoint: epsilon {first.epsilon:.4f} (class {first.class_name})."
        change = last.epsilon - first.epsilon
        errors = [p.epsilon_se for p in (first, last)]
        text = (
            f"epsilon goes from {first.epsilon:.4f} to {last.epsilon:.4f} ({change:+.4f}"
            + ("" if None in errors else f", standard errors {errors[0]:.1g} and {errors[1]:.1g}")
            + ")"
        )
        if last.to_first is not None:
            text += f"; the rows' mean cosine with where they began is {last.to_first.mean:.6f}"
        if first.alignment is not None and last.alignment is not None:
            text += (
                f"; the mean cosine of a row and the same row of the unembedding goes from {first.alignment.mean:.4f} "
                f"to {last.alignment.mean:.4f}"
            )
        return text + "."

    def values(self) -> dict[str, Any]:
        return {
            "points": [point.to_dict() for point in self.points],
            "failures": [{"source": source, "reason": why} for source, why in self.failures],
            "notes": list(self.notes),
        }

    def rows(self) -> list[dict[str, Any]]:
        """One row a checkpoint; of the drifts the mean cosine."""
        rows = [point.to_dict() for point in self.points]
        for row in rows:
            row |= {name: row[name] and row[name]["mean"] for name in ("to_first", "to_previous", "alignment")}
        return rows


class TrackInterrupted(KeyboardInterrupt):
    """Ctrl-C after some checkpoints were measured; `track` holds them."""

    def __init__(self, track: Track) -> None:
        super().__init__()
        self.track = track


@verb
def track(
    checkpoints: str | Sequence[str],
    matrix: TrackedMatrix = "embedding",
    *,
    z: Z = Z_DEFAULT,
    seed: Seed = 0,
    device: Device = "auto",
    store: TrackStore = None,
    engine: Engine = "inline",
    retries: Retries = 2,
    timeout: Timeout = None,
    refresh: Refresh = False,
    on_progress: ProgressFn | None = None,
) -> Track:
    """Measure `matrix` in each checkpoint, and the cosine of its rows with those of the first and of the one before.

    Parameters
    ----------
    checkpoints : str or sequence of str
        sources, patterns (`run/checkpoint-*`) or a run directory; sorted by the steps in their names.
    matrix : str
        as of `repcap.measure`, or `both`: embedding, unembedding where it is another matrix, and the cosine of their
        corresponding rows.
    z, seed, device
        as of `repcap.measure`.
    store : path, optional
        a result store: what is in it is not measured again, and a run that was killed goes on.
    engine, retries, timeout
        see `repcap.jobs.engine.run`; `inline` measures one after another in this process.
    refresh : bool
        measure again what is stored.
    on_progress : callable, optional
        called with (checkpoints done, checkpoints).

    Notes
    -----
    A checkpoint that fails is listed and left out. One that is known to hold the bytes of the one before it (files on
    the Hub have names for their content) is not fetched.

    Raises
    ------
    InputError
        if nothing is named.
    SourceError, VectorsError
        the first failure, where no checkpoint could be measured.
    TrackInterrupted
        a KeyboardInterrupt that holds the checkpoints which were measured before it.

    Cost: a measurement (O(n d^2)) and two passes (O(n d)) a checkpoint and matrix. Memory: two checkpoints are open at
    once in a worker, blocks of rows are read.
    """
    asked, started = dict(locals()), time.perf_counter()
    running = EngineOptions(engine, retries, timeout)
    named = expand([checkpoints] if isinstance(checkpoints, str) else checkpoints)
    run = _Run(matrix, {"z": z, "device": device, "seed": seed}, named)
    with contextlib.ExitStack() as stack:
        place = store or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="repcap-"))) / "run.sqlite"
        opened = stack.enter_context(Store(place))
        try:
            run.measure(opened, running, refresh, on_progress)
        except KeyboardInterrupt:
            points, notes = run.points(opened)
            if not points:
                raise
            notes.append(f"interrupted after {len(points) + len(run.failed)} of {len(named)} checkpoints")
            # What is raised does not pass through `verb`, which would write down the call.
            found = _result(points, notes, run)
            raise TrackInterrupted(found.with_call(recorded(track, asked), time.perf_counter() - started)) from None
        points, notes = run.points(opened)
    if not points:
        raise next(iter(run.failed.values()))
    return _result(points, notes, run)


def _result(points: list[TrackPoint], notes: list[str], run: _Run) -> Track:
    notes = [*_equal(points), *dict.fromkeys(notes), *run.told()]
    if len(run.named) > 1 and any(step is None for _, step in run.named):
        without = next(source for source, step in run.named if step is None)
        notes.append(f"no training step in the name {without}: the checkpoints are shown in the order given")
    return Track(tuple(points), tuple((source, str(error)) for source, error in run.failed.items()), tuple(notes))


def _equal(points: Sequence[TrackPoint]) -> list[str]:
    """One sentence for each lot of checkpoints whose rows are equal: a curve over those says nothing."""
    lots: dict[str, list[TrackPoint]] = {}
    for point in points:
        if point.tensor_sha256 is not None:
            lots.setdefault(point.tensor_sha256, []).append(point)
    return [f"{_named(lot, points)} hold the same bytes" for lot in lots.values() if len(lot) > 1]


def _named(lot: Sequence[TrackPoint], points: Sequence[TrackPoint]) -> str:
    """`step 57000 to 143000` where they follow one another, else each by its step or source."""
    first = points.index(lot[0])
    if all(point.step is not None for point in lot):
        together = len(lot) > 2 and list(points[first : first + len(lot)]) == list(lot)
        steps = [str(point.step) for point in lot]
        return f"steps {steps[0]} to {steps[-1]}" if together else f"steps {', '.join(steps)}"
    return ", ".join(point.source for point in lot)


@dataclasses.dataclass(frozen=True)
class _Look:
    """What the header of a checkpoint says: its commit, what names its bytes, what is to be known of it."""

    revision: str | None
    identity: tuple[str, ...] | None
    warnings: tuple[str, ...]


class _Run:
    """Looks at every checkpoint, then measures those whose bytes are not known already."""

    def __init__(self, matrix: str, options: Mapping[str, Any], named: Sequence[tuple[str, int | None]]) -> None:
        self.matrix, self.options, self.named = matrix, options, named
        self.failed: dict[str, RepcapError] = {}
        self._looks: dict[str, _Look] = {}
        self._units: dict[str, Unit] = {}

    def measure(self, store: Store, running: EngineOptions, refresh: bool, on_progress: ProgressFn | None) -> None:
        with ThreadPoolExecutor(max_workers=8, thread_name_prefix="repcap-look") as pool:
            for (source, _), found in zip(self.named, pool.map(self._look, self.named), strict=True):
                if isinstance(found, RepcapError):
                    self.failed[source] = found
                else:
                    self._looks[source] = found
        before = len(self.failed)
        for source, unit in self._plan():
            self._units[source] = unit
        settled = len(self._looks) - len(self._units) + before

        def on_unit(done: int, _: int) -> None:
            if on_progress is not None:
                on_progress(done + settled, len(self.named))

        batch = run_batch(
            store,
            STEP,
            list(self._units.values()),
            measure_step,
            _results,
            running,
            is_stored=lambda unit: not refresh and is_current(store, unit),
            replace=True,
            on_unit=on_unit,
        )
        reasons = {failure.key: failure for failure in batch.failures}
        for source, unit in self._units.items():
            if (failure := reasons.get(unit.key)) is not None:
                kind = getattr(errors, failure.error, SourceError)
                self.failed[source] = (kind if kind is not errors.OptionError else InputError)(failure.reason)

    def _look(self, named: tuple[str, int | None]) -> _Look | RepcapError:
        """Cost: headers alone."""
        roles = ("embedding", "unembedding") if self.matrix == BOTH else (self.matrix,)
        found: list[str | None] = []
        try:
            pinned = sources.pin_source(named[0])
            for role in roles:
                with sources.open_source(pinned, role) as opened:
                    found.append(opened.identity)
                    if opened.info.tied is not False:
                        break
        except RepcapError as error:
            return error
        return _Look(opened.info.revision, None if None in found else tuple(map(str, found)), opened.info.warnings)

    def told(self) -> list[str]:
        """What is to be known of the files, each once."""
        said: dict[str, list[str]] = {}
        for source, look in self._looks.items():
            for warning in look.warnings:
                said.setdefault(warning, []).append(source)
        more = {text: f" and {len(where) - 1} more" if len(where) > 1 else "" for text, where in said.items()}
        return [f"{where[0]}{more[text]}: {text}" for text, where in said.items()]

    def _plan(self) -> Iterator[tuple[str, Unit]]:
        """(source, unit) of every checkpoint that has to be read."""
        places = {source: locate(source) for source in self._looks}
        first = previous = None
        for source, step in self.named:
            if source not in self._looks:
                continue
            identity = self._looks[source].identity
            if previous is None or identity is None or identity != self._looks[previous].identity:
                yield source, self._unit(source, step, first, previous, places)
            first, previous = first or source, source

    def _unit(
        self, source: str, step: int | None, first: str | None, previous: str | None, places: Mapping[str, Place]
    ) -> Unit:
        place, beside = places[source], [name for name in (first, previous) if name is not None]
        against = [[places[name].identity, self._looks[name].revision, places[name].fingerprint] for name in beside]
        what = {"matrix": self.matrix, "z": self.options["z"], "seed": self.options["seed"], "against": against}
        key = unit_key(STEP, [place.identity, self._looks[source].revision], what)
        payload = {
            "source": place.opening,
            "label": source,
            "step": step,
            "first": None if first is None else places[first].opening,
            "previous": None if previous is None else places[previous].opening,
            "names": {places[name].opening: name for name in beside},
            "matrix": self.matrix,
            "options": dict(self.options),
            "fingerprint": place.fingerprint,
        }
        return Unit(key, payload, source, 0.0)

    def points(self, store: Store) -> tuple[list[TrackPoint], list[str]]:
        """What is measured so far, in order, and what is to be said of it."""
        found: list[TrackPoint] = []
        notes: list[str] = []
        whole = True
        for source, step in self.named:
            if source not in self._looks:
                continue
            if source in self._units:
                held = store.unit(self._units[source].key)
                whole = bool(held)
                if held:
                    found.append(point_of(held[0].record, source, step))
                    notes += held[0].record["notes"]
            elif found and whole:
                found.append(same_again(found[-1], found[0], source, step, self._looks[source].revision))
        return found, notes


def _results(unit: Unit, answer: Mapping[str, Any]) -> list[Stored]:
    point = answer["point"]
    record = make(STEP, point, name=short_name(unit.label), notes=answer["notes"])
    origin = provenance(
        revision=point["revision"],
        tensor_sha256=point["tensor_sha256"],
        options={**unit.payload["options"], "matrix": unit.payload["matrix"]},
        seed=unit.payload["options"]["seed"],
        fingerprint=unit.payload["fingerprint"],
    )
    return [Stored(unit.key, unit.key, STEP, record, origin)]
