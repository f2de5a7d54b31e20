"""Rows: the one flat form of a record that figures and pages read.

Everything that a record does not say is None in its row and blank in the figure. Capacity brackets are computed here
from d and epsilon, so that records of any age, and the published table, are shown alike.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from typing import Any

from repcap.bracket.interval import RANDOM_CODING, bracket
from repcap.errors import DomainError, InputError
from repcap.jobs.record import TAIL, tail_dims
from repcap.laws import published
from repcap.numerics import Z_DEFAULT, epsilon_class
from repcap.page.families import family_of
from repcap.page.records import Record, display_name
from repcap.text import legible

CLASSES = ("high", "between", "low")

MOST_DIMENSIONS = 1_000_000
"""Of a bracket: a proven upper bound near epsilon = 1 takes a time in proportion to d."""


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
class Variant:
    """epsilon on other rows, or after a common part was removed."""

    rows: str
    epsilon: float
    epsilon_ratio: float


@dataclass(frozen=True)
class TailDimension:
    """d_alpha: in so many dimensions random directions have the tail of |cosine| that these rows have at alpha."""

    alpha: float
    dim: float


@dataclass(frozen=True)
class Row:
    """What figures and pages show of one matrix. Cosines and epsilon are pure numbers; capacities are log10 k.

    tail_dim: of `tails`, that of one pair in 10^4. s_max: how many rows the best linear readout tells apart.
    """

    name: str
    family: str
    source: str
    matrix: str
    d: int
    epsilon: float
    epsilon_null: float
    epsilon_ratio: float
    klass: str
    z: float = Z_DEFAULT
    published: bool = False
    n: int | None = None
    mean: float | None = None
    std: float | None = None
    epsilon_se: float | None = None
    tied: bool | None = None
    effective_dim: float | None = None
    s_limit: float | None = None
    s_max: int | None = None
    tail_dim: float | None = None
    dropped_count: int | None = None
    dtype: str | None = None
    revision: str | None = None
    version: str | None = None
    seconds: float | None = None
    coherence: float | None = None
    estimate: str | None = None
    common: str | None = None
    published_capacity: float | None = None
    explicit: Limit | None = None
    exists: Limit | None = None
    ratio: Limit | None = None
    law: Limit | None = None
    upper: Limit | None = None
    histogram: Histogram | None = None
    variants: tuple[Variant, ...] = ()
    tails: tuple[TailDimension, ...] = ()

    @property
    def label(self) -> str:
        """Name, with the matrix where it is not the token embedding."""
        return self.name if self.matrix == "embedding" else f"{self.name} ({self.matrix})"

    @property
    def at_least(self) -> Limit | None:
        """The larger of what is proven from below, with its name."""
        if self.explicit is None or self.exists is None:
            return None
        return max(self.explicit, self.exists, key=lambda limit: limit.log10_k or 0.0)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready: every attribute, the label, and `at_least`."""
        least = self.at_least
        return {"label": self.label, **asdict(self), "at_least": None if least is None else asdict(least)}


def to_rows(records: Iterable[Record]) -> tuple[list[Row], list[str]]:
    """(rows, the reasons why some records gave none).

    A record whose epsilon is undefined (a matrix with a single direction, a failed measurement) gives no row.
    Records of the same matrix (same source, revision, matrix, size) are one row: the first, completed by what only
    the others say, such as the histogram of `repcap pairs`.

    Raises
    ------
    InputError
        if a record lacks `dim` or `epsilon`, holds values of the wrong kind (the message names its place), or if
        records were measured with different z, which no figure can compare.
    """
    rows: dict[Any, Row] = {}
    skipped = []
    for place, record in enumerate(records, start=1):
        name = legible(display_name(record))
        for key in ("dim", "epsilon"):
            if key not in record:
                raise InputError(f"record {place} ({name}) has no {key!r}: it must come from repcap measure or survey")
        epsilon = record["epsilon"]
        if epsilon is None or (isinstance(epsilon, float) and not math.isfinite(epsilon)):
            skipped.append(f"{name}: epsilon is undefined")
            continue
        try:
            _check_texts(record)
            row = _row(record, name)
        except KeyError as error:
            raise InputError(f"record {place} ({name}) is malformed: it lacks {error}") from error
        except (TypeError, ValueError, ArithmeticError) as error:
            raise InputError(f"record {place} ({name}) is malformed: {error}") from error
        same: Any = (
            (row.source, row.revision, legible(record.get("matrix")), row.d, row.n) if row.n and row.source else place
        )
        rows[same] = _completed(rows[same], row) if same in rows else row
    found = list(rows.values())
    zs = sorted({row.z for row in found})
    if len(zs) > 1:
        raise InputError(f"the records have different z ({', '.join(f'{z:g}' for z in zs)}): choose those of one z")
    return found, skipped


def _check_texts(record: Record) -> None:
    for key in ("name", "source", "family", "matrix", "role"):
        if not isinstance(record.get(key) or "", str):
            raise ValueError(f"its {key} is no text")


def _completed(first: Row, other: Row) -> Row:
    """`first` with what it lacks taken from `other`."""
    lacking = {
        name: getattr(other, name)
        for name in (
            "epsilon_se",
            "coherence",
            "histogram",
            "effective_dim",
            "s_limit",
            "s_max",
            "tail_dim",
            "tails",
            "tied",
            "dropped_count",
            "variants",
            "common",
        )
        if getattr(first, name) in (None, ())
    }
    return replace(first, **lacking)


def _row(record: Record, name: str) -> Row:
    d, epsilon = int(record["dim"]), float(record["epsilon"])
    if d < 1 or d != float(record["dim"]):
        raise ValueError(f"dim is {record['dim']}, which is no number of dimensions")
    z = _number(record, "z") or Z_DEFAULT
    if abs(epsilon) > 1 + abs(z):
        raise ValueError(f"epsilon is {epsilon:g}; mean + {z:g} std of cosines is never beyond {1 + abs(z):g}")
    null = _number(record, "epsilon_null") or z / math.sqrt(d)
    source = legible(record.get("source") or "")
    provenance = record.get("provenance")
    revision = record.get("revision") or (provenance.get("revision") if isinstance(provenance, Mapping) else None)
    tied = record.get("tied")
    readout = record.get("readout")
    limits = readout if isinstance(readout, Mapping) else {}
    dims = tail_dims(record)
    row = Row(
        name=name,
        family=legible(record.get("family") or family_of(name, source)),
        source=source,
        matrix=_matrix(record),
        d=d,
        epsilon=epsilon,
        epsilon_null=null,
        epsilon_ratio=_number(record, "epsilon_ratio") or epsilon / null,
        klass=str(record["class"]) if record.get("class") in CLASSES else epsilon_class(epsilon),
        z=z,
        published=bool(record.get("published", False)),
        n=_integer(record, "count"),
        mean=_number(record, "mean"),
        std=_number(record, "std"),
        epsilon_se=_number(record, "epsilon_se"),
        tied=tied if isinstance(tied, bool) else None,
        effective_dim=_number(record, "effective_dim"),
        s_limit=_number(limits, "s_limit"),
        s_max=_s_max(record),
        tail_dim=dims.get(TAIL),
        tails=tuple(TailDimension(alpha, dim) for alpha, dim in dims.items()),
        dropped_count=_integer(record, "dropped_count"),
        dtype=_text(record, "dtype"),
        revision=legible(revision) if revision else None,
        version=_text(record, "repcap_version"),
        seconds=_number(record, "seconds"),
        coherence=_number(record, "coherence"),
        estimate=_estimate(record),
        common=_text(record, "common"),
        published_capacity=_number(record, "published_capacity"),
        histogram=_histogram(record),
        variants=_variants(record),
        **_bracket(d, epsilon),
    )
    odd = next((key for key, value in vars(row).items() if isinstance(value, float) and not math.isfinite(value)), None)
    if odd is not None:
        raise ValueError(f"its {odd} is not finite")
    return row


def _matrix(record: Record) -> str:
    """The role of the matrix, or the name of the tensor where it has none."""
    role = record.get("role")
    return legible(role if role in ("embedding", "unembedding") else record.get("matrix") or "embedding")


def _estimate(record: Record) -> str | None:
    """In words, that only a part was measured."""
    held = record.get("estimate")
    if isinstance(held, Mapping):
        share = f"from {int(held['rows'])} of {int(held['population'])} rows"
        return f"{share}; 95 % interval {float(held['low']):.5f} to {float(held['high']):.5f}"
    return "from a sample of pairs" if record.get("sampled") else None


def _variants(record: Record) -> tuple[Variant, ...]:
    held = record.get("variants") or ()
    if not isinstance(held, (list, tuple)) or not all(isinstance(item, Mapping) for item in held):
        raise ValueError("its variants are no list of records")
    return tuple(
        Variant(legible(item["rows"]), float(item["epsilon"]), float(item["epsilon_ratio"]))
        for item in held
        if _number(item, "epsilon") is not None and _number(item, "epsilon_ratio") is not None
    )


def _s_max(record: Record) -> int | None:
    """Of the best linear readout, where the record says how many rows can be read at once."""
    held = record.get("at_once")
    best = held.get("best") if isinstance(held, Mapping) else None
    return _integer(best, "s_max") if isinstance(best, Mapping) else None


def _bracket(d: int, epsilon: float) -> dict[str, Limit]:
    if d > MOST_DIMENSIONS:
        return {}
    try:
        found = bracket(d, epsilon)
    except DomainError:  # epsilon <= 0 or >= 1: no coherence that lines could have
        return {}
    law = published().key
    return {
        "explicit": Limit(found.explicit.log10_k, found.explicit.name),
        "exists": Limit(found.exists, RANDOM_CODING),
        "ratio": Limit(found.laws["ratio"], "ratio"),
        "law": Limit(found.laws[law], law),
        "upper": Limit(found.upper.log10_k, found.upper.name),
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
    if not all(map(math.isfinite, (*edges, *counts))):
        raise ValueError("its histogram holds numbers that are not finite")
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
    return None if value is None else legible(value)
