"""One checkpoint of a run: what is measured of it, in whatever process that is."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Mapping
from typing import Any

from repcap import geometry, sources
from repcap.errors import InputError, RepcapError, VectorsError
from repcap.matrix import Matrix
from repcap.studies.digest import HashedMatrix
from repcap.studies.pairing import pair_rows
from repcap.studies.row_cosines import summarise_rows

BOTH = "both"


@dataclasses.dataclass(frozen=True)
class Drift:
    """Cosines of the rows of one matrix with the same rows of another. low: their 5 % quantile."""

    source: str
    rows: int
    mean: float
    low: float
    norm_ratio: float


@dataclasses.dataclass(frozen=True)
class TrackPoint:
    """One checkpoint, or its unembedding. Cosines and epsilon have no unit; see `repcap.measure`."""

    source: str
    revision: str | None
    step: int | None
    matrix: str
    count: int
    dim: int
    mean: float
    std: float
    epsilon: float
    epsilon_se: float | None
    epsilon_null: float
    epsilon_ratio: float
    class_name: str
    effective_dim: float
    to_first: Drift | None
    """Against the first checkpoint; None at the first, and where the shapes do not allow it."""
    to_previous: Drift | None
    tensor_sha256: str | None = None
    """Of the rows, as they were read."""
    unembedding: TrackPoint | None = None
    """Where both were asked for and it is another matrix."""
    alignment: Drift | None = None
    """Rows of the embedding against the same rows of the unembedding."""

    def to_dict(self) -> dict[str, Any]:
        found = dataclasses.asdict(self)
        found["class"] = found.pop("class_name")
        found["unembedding"] = self.unembedding.to_dict() if self.unembedding else None
        return found


def point_of(values: Mapping[str, Any], source: str, step: int | None) -> TrackPoint:
    """The point that `to_dict` wrote."""
    held: dict[str, Any] = {field.name: values.get(field.name) for field in dataclasses.fields(TrackPoint)}
    held |= {"source": source, "step": step, "class_name": values["class"]}
    for name in ("to_first", "to_previous", "alignment"):
        held[name] = Drift(**held[name]) if held[name] else None
    held["unembedding"] = point_of(held["unembedding"], source, step) if held["unembedding"] else None
    return TrackPoint(**held)


def same_again(point: TrackPoint, first: TrackPoint, source: str, step: int | None, revision: str | None) -> TrackPoint:
    """A checkpoint whose bytes are those of `point`, the one before it."""
    same = Drift(point.source, point.count, 1.0, 1.0, 1.0)
    return dataclasses.replace(
        point,
        source=source,
        revision=revision,
        step=step,
        to_first=same if point is first else point.to_first,
        to_previous=same,
        unembedding=point.unembedding
        and same_again(point.unembedding, first.unembedding or point.unembedding, source, step, revision),
    )


def measure_step(payload: Mapping[str, Any]) -> dict[str, Any]:
    """The work of one unit: {point, notes}.

    payload: source, first, previous (sources as this process must name them, or None), label and names (of the first
    and the previous one, for people), step, matrix, options of the measurement.
    """
    notes: list[str] = []
    matrix = payload["matrix"]
    with contextlib.ExitStack() as stack:
        pinned = sources.pin_source(payload["source"])
        opened = stack.enter_context(sources.open_source(pinned, "embedding" if matrix == BOTH else matrix))
        point = _measured(opened, payload, opened.info.role if matrix == BOTH else matrix, notes)
        if matrix == BOTH and opened.info.tied is False:
            other = stack.enter_context(sources.open_source(pinned, "unembedding"))
            unembedding = _measured(other, payload, "unembedding", notes)
            alignment = _drift(opened, other, payload["label"], notes)
            point = dataclasses.replace(point, unembedding=unembedding, alignment=alignment)
    return {"point": point.to_dict(), "notes": notes}


def _measured(opened: Matrix, payload: Mapping[str, Any], matrix: str, notes: list[str]) -> TrackPoint:
    hashed = HashedMatrix(opened)
    found = geometry.measure_matrix(hashed, geometry.MeasureOptions(**payload["options"]))
    to_first = _from(payload["first"], payload, opened, matrix, notes)
    again = payload["previous"] == payload["first"]
    return TrackPoint(
        source=payload["label"],
        revision=found.info.revision,
        step=payload["step"],
        matrix=found.info.name,
        count=found.count,
        dim=found.dim,
        mean=found.mean,
        std=found.std,
        epsilon=found.epsilon,
        epsilon_se=found.epsilon_se,
        epsilon_null=found.epsilon_null,
        epsilon_ratio=found.epsilon_ratio,
        class_name=found.class_name,
        effective_dim=found.effective_dim,
        to_first=to_first,
        to_previous=to_first if again else _from(payload["previous"], payload, opened, matrix, notes),
        tensor_sha256=hashed.sha256,
    )


def _from(source: str | None, payload: Mapping[str, Any], later: Matrix, matrix: str, notes: list[str]) -> Drift | None:
    """How the rows have turned since another checkpoint."""
    if source is None:
        return None
    try:
        with sources.open_source(source, matrix) as earlier:
            return _drift(earlier, later, payload["names"][source], notes)
    except RepcapError as error:
        notes.append(f"{payload['label']} against {payload['names'][source]}: {error}")
        return None


def _drift(earlier: Matrix, later: Matrix, source: str, notes: list[str]) -> Drift | None:
    if earlier.dim != later.dim:
        notes.append(f"{source} has rows of {earlier.dim} columns, {later.info.source} of {later.dim}: no drift")
        return None
    try:
        pairing = pair_rows(earlier, later)
        rows = summarise_rows(geometry.corresponding(*pairing.views(earlier, later)), pairing, earlier, 0)
    except (InputError, VectorsError) as error:
        notes.append(f"{later.info.source} against {earlier.info.source}: {error}")
        return None
    notes += pairing.notes
    return Drift(source, rows.rows, rows.mean, rows.low, rows.norm_ratio)
