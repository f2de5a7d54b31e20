"""Records in: where a report's rows come from, and the one flat form that figures and pages read.

A record is the dict that `repcap measure --json` prints (keys in docs/report.md). It may also hold `histogram`
(`edges`, `counts`), as `repcap pairs --json` writes it. The published table has fewer keys; everything that a record
does not say is None in its row and blank in the figure.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from repcap.errors import DomainError, InputError
from repcap.numerics import epsilon_class
from repcap.report.families import family_of

Record = Mapping[str, Any]


@dataclass(frozen=True)
class Limit:
    """One end of a capacity bracket: log10 of a number of directions, and what gave it."""

    log10_k: float | None
    name: str


@dataclass(frozen=True)
class Histogram:
    """Counts of pairwise cosines: `edges` has one entry more than `counts`."""

    edges: tuple[float, ...]
    counts: tuple[float, ...]

    @property
    def density(self) -> tuple[float, ...]:
        """Probability density of each bin; its integral is 1."""
        total = sum(self.counts)
        return tuple(
            count / total / (right - left)
            for count, left, right in zip(self.counts, self.edges[:-1], self.edges[1:], strict=True)
        )

    def coarser(self, bins: int) -> Histogram:
        """The same counts in at most `bins` bins, by joining neighbours, without the empty bins at both ends."""
        used = [place for place, count in enumerate(self.counts) if count > 0]
        first, last = used[0], used[-1] + 1
        step = max(1, math.ceil((last - first) / bins))
        cuts = [*range(first, last, step), last]
        joined = tuple(sum(self.counts[a:b]) for a, b in pairwise(cuts))
        return Histogram(tuple(self.edges[cut] for cut in cuts), joined)


@dataclass(frozen=True)
class Row:
    """What figures and pages show of one matrix. Cosines and epsilon are pure numbers; capacities are log10 k."""

    name: str
    family: str
    source: str
    matrix: str
    d: int
    epsilon: float
    epsilon_null: float
    epsilon_ratio: float
    klass: str
    published: bool = False
    n: int | None = None
    mean: float | None = None
    std: float | None = None
    epsilon_se: float | None = None
    tied: bool | None = None
    effective_dim: float | None = None
    dropped_count: int | None = None
    dtype: str | None = None
    revision: str | None = None
    version: str | None = None
    seconds: float | None = None
    max_abs_cosine: float | None = None
    published_capacity: float | None = None
    construction: Limit | None = None
    gilbert_varshamov: Limit | None = None
    ratio: Limit | None = None
    law: Limit | None = None
    upper: Limit | None = None
    histogram: Histogram | None = None

    @property
    def label(self) -> str:
        """Name, with the matrix where it is not the token embedding."""
        return self.name if self.matrix == "embedding" else f"{self.name} ({self.matrix})"

    def to_dict(self) -> dict[str, Any]:
        return {"label": self.label, **asdict(self)}


def published_records() -> list[dict[str, Any]]:
    """The published table of models as records."""
    from repcap.laws.data import published_models

    return [dict(_published(model)) for model in published_models()]


def _published(model: Any) -> Record:
    values = model if isinstance(model, Mapping) else asdict(model)
    return {
        "name": values["model"],
        "source": values["hub_id"],
        "matrix": "embedding",
        "dim": int(values["d_model"]),
        "epsilon": float(values["epsilon"]),
        "published": True,
        "published_capacity": values.get("capacity"),
    }


def load_records(source: str | Path) -> list[dict[str, Any]]:
    """Records from a JSON file (one record, a list, or {"records": [...]}) or from a result store.

    Raises
    ------
    InputError
        if the file is missing, is neither, or holds no record.
    StoreError
        if the store cannot be opened.
    """
    path = Path(source)
    if not path.exists():
        raise InputError(f"no such file: {path}; give a result store, a JSON file of records, or --published")
    if path.is_dir():
        raise InputError(f"{path} is a directory; give a result store, a JSON file of records, or --published")
    with path.open("rb") as handle:
        head = handle.read(16)
    if head.startswith(b"SQLite format 3"):
        return _from_store(path)
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise InputError(f"{path} is neither a result store nor JSON: {error}") from error
    if isinstance(found, dict):
        found = found.get("records", [found])
    if not isinstance(found, list) or not all(isinstance(item, dict) for item in found):
        raise InputError(f'{path} holds no records: expected one record, a list of them, or {{"records": [...]}}')
    return [_unwrapped(item) for item in found]


def _from_store(path: Path) -> list[dict[str, Any]]:
    from repcap.store import Store

    with Store(path, mode="read") as store:
        found = [_unwrapped(result.to_dict()) for result in store.records("measure")]
    if not found:
        raise InputError(f"{path} holds no measurement: run repcap survey with --store {path} first")
    return found


def _unwrapped(item: Record) -> dict[str, Any]:
    """A store's result, or an exported one, as the record that it carries, with its provenance."""
    record = item.get("record")
    if not isinstance(record, Mapping):
        return dict(item)
    return {"provenance": item.get("provenance"), **record}


def to_rows(records: Iterable[Record]) -> tuple[list[Row], list[str]]:
    """(rows, the reasons why some records gave none).

    A record whose epsilon is undefined (a matrix with a single direction, a failed measurement) gives no row.
    Capacity brackets are computed here, from d and epsilon, so that old and new records are shown alike.

    Raises
    ------
    InputError
        if a record lacks `dim` or `epsilon`, or holds values of the wrong kind. The message names its place.
    """
    rows, skipped = [], []
    for place, record in enumerate(records, start=1):
        name = display_name(record)
        for key in ("dim", "epsilon"):
            if key not in record:
                raise InputError(f"record {place} ({name}) has no {key!r}: it must come from repcap measure or survey")
        epsilon = record["epsilon"]
        if epsilon is None or (isinstance(epsilon, float) and not math.isfinite(epsilon)):
            skipped.append(f"{name}: epsilon is undefined")
            continue
        try:
            rows.append(_row(record, name))
        except (TypeError, ValueError, KeyError) as error:
            raise InputError(f"record {place} ({name}) is malformed: {error}") from error
    return rows, skipped


def display_name(record: Record) -> str:
    """A record's own `name`, else the telling part of its source: `Qwen3-8B` for `hf://Qwen/Qwen3-8B@abc`."""
    if record.get("name"):
        return str(record["name"])
    source = str(record.get("source") or "unnamed")
    base, _, tensor = source.partition("::")
    base = base.rstrip("/").rsplit("/", 1)[-1]
    base = base.split("@", 1)[0] or source
    return f"{base}::{tensor}" if tensor else base


def _row(record: Record, name: str) -> Row:
    d, epsilon = int(record["dim"]), float(record["epsilon"])
    if d < 1:
        raise ValueError(f"dim is {d}")
    null = _number(record, "epsilon_null") or 2.0 / math.sqrt(d)
    source = str(record.get("source") or "")
    provenance = record.get("provenance")
    revision = record.get("revision") or (provenance.get("revision") if isinstance(provenance, Mapping) else None)
    tied = record.get("tied")
    return Row(
        name=name,
        family=str(record.get("family") or family_of(name, source)),
        source=source,
        matrix=str(record.get("matrix") or "embedding"),
        d=d,
        epsilon=epsilon,
        epsilon_null=null,
        epsilon_ratio=_number(record, "epsilon_ratio") or epsilon / null,
        klass=str(record.get("class") or epsilon_class(epsilon)),
        published=bool(record.get("published", False)),
        n=_integer(record, "count"),
        mean=_number(record, "mean"),
        std=_number(record, "std"),
        epsilon_se=_number(record, "epsilon_se"),
        tied=tied if isinstance(tied, bool) else None,
        effective_dim=_number(record, "effective_dim"),
        dropped_count=_integer(record, "dropped_count"),
        dtype=_text(record, "dtype"),
        revision=str(revision) if revision else None,
        version=_text(record, "repcap_version"),
        seconds=_number(record, "seconds"),
        max_abs_cosine=_number(record, "max_abs_cosine"),
        published_capacity=_number(record, "published_capacity"),
        histogram=_histogram(record),
        **_bracket(d, epsilon),
    )


def _bracket(d: int, epsilon: float) -> dict[str, Limit]:
    from repcap.laws.bracket import bracket

    try:
        found = bracket(d, epsilon).to_dict()
    except DomainError:
        return {}
    keys = {"construction": "construction", "gilbert_varshamov": "gilbert_varshamov", "ratio": "ratio"}
    keys |= {"law": "full", "upper": "upper"}
    return {
        ours: Limit(found[theirs]["log10_k"], str(found[theirs].get("name") or theirs)) for ours, theirs in keys.items()
    }


def _histogram(record: Record) -> Histogram | None:
    held = record.get("histogram")
    if held is None and isinstance(record.get("pairs"), Mapping):
        held = record["pairs"].get("histogram")
    if held is None:
        return None
    edges, counts = (tuple(float(value) for value in _sequence(held, key)) for key in ("edges", "counts"))
    if len(edges) != len(counts) + 1:
        raise ValueError(f"its histogram has {len(edges)} edges for {len(counts)} counts; one more is needed")
    if any(b <= a for a, b in pairwise(edges)) or min(counts, default=0) < 0:
        raise ValueError("its histogram has edges that do not rise, or negative counts")
    return Histogram(edges, counts) if sum(counts) > 0 else None


def _sequence(held: Any, key: str) -> Sequence[Any]:
    if not isinstance(held, Mapping) or not isinstance(held.get(key), (list, tuple)):
        raise ValueError(f"its histogram has no list of {key}")
    found: Sequence[Any] = held[key]
    return found


def _number(record: Record, key: str) -> float | None:
    value = record.get(key)
    if value is None or value == "":
        return None
    number = float(value)
    return number if math.isfinite(number) else None


def _integer(record: Record, key: str) -> int | None:
    value = _number(record, key)
    return None if value is None else int(value)


def _text(record: Record, key: str) -> str | None:
    value = record.get(key)
    return None if value is None else str(value)
