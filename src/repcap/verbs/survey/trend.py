"""`survey trend`: does epsilon fall with the width of models, and does it fall as fast as for random directions?

The isotropic null is epsilon_null = z/sqrt(d): on log-log axes a line of slope -0.5. A fall of epsilon with d says
nothing by itself; epsilon / epsilon_null takes the null out.
"""

from __future__ import annotations

import dataclasses
import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import median
from typing import Any

from repcap.errors import InputError
from repcap.jobs.record import MEASURE, PUBLISHED, TAIL, published_results, tail_dims
from repcap.jobs.store import Store, Stored
from repcap.laws.fitting.correlation import PowerLaw, Spearman, power_law, spearman

NULL_SLOPE = -0.5
CLASSES = ("low", "between", "high")
FEW, PERMUTATIONS = 15, 9999
"""Below so many models Student's approximation of p is poor: it is then found by so many permutations."""


@dataclasses.dataclass(frozen=True)
class Point:
    """One matrix in a trend."""

    name: str
    source: str
    d: int
    epsilon: float
    ratio: float
    """epsilon / epsilon_null."""
    klass: str
    tied: bool | None
    tail: float | None = None
    """d_alpha / d at alpha = 1e-4, where all pairs were counted."""
    s_max: int | None = None
    """Of the best linear readout, likewise."""


@dataclasses.dataclass(frozen=True)
class GroupTrend:
    """How epsilon goes with d in a group of models.

    epsilon, ratio: rank correlation with d of epsilon, and of epsilon / epsilon_null.
    slope: of ln epsilon on ln d, with its 95 % interval; `slope_p` is two-sided, against the null's -0.5.
    hangs_on: the one model without which the correlation of the ratio changes most, and what it is then.
    alike: models that share d and epsilon with another one (a fine-tune, a release of the same weights).
    Each is None where the group is too small, and `why` says so.
    """

    group: str
    n: int
    d_range: tuple[int, int] | None
    epsilon: Spearman | None
    ratio: Spearman | None
    slope: PowerLaw | None
    slope_p: float | None
    hangs_on: tuple[str, float] | None
    alike: int
    why: str = ""

    def to_dict(self) -> dict[str, Any]:
        return {
            **dataclasses.asdict(self),
            "hangs_on": None if self.hangs_on is None else {"name": self.hangs_on[0], "rho": self.hangs_on[1]},
        }


@dataclasses.dataclass(frozen=True)
class Contrast:
    """Two groups of models compared by one quantity: sizes, medians, and the two-sided Mann-Whitney p."""

    quantity: str
    groups: tuple[str, str]
    sizes: tuple[int, int]
    medians: tuple[float | None, float | None]
    p: float | None

    def to_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)


@dataclasses.dataclass(frozen=True)
class WidthTrend:
    """How a quantity goes with d: rank correlation, and the log-log slope, of n models that have it.

    random: the slope of directions drawn at random. Both are None where there are fewer than 3 models or all have one
    width.
    """

    quantity: str
    n: int
    random: float
    rank: Spearman | None
    slope: PowerLaw | None


@dataclasses.dataclass(frozen=True)
class Trend:
    """Trends of a set of models: all of them and class by class, with and without the outliers that were named.

    split: class -> number of models. class_by_width: are the `low` models wider than the `high` ones.
    tying: epsilon and its ratio to the null in untied against tied models (sizes 0 where tying is not known).
    pairs: trends of what only all pairs tell (`survey --pairs`): d_alpha / d and s_max; n is 0 where it is not there.
    """

    source: str
    groups: tuple[GroupTrend, ...]
    without: tuple[str, ...]
    groups_without: tuple[GroupTrend, ...]
    split: dict[str, int]
    class_by_width: Contrast
    tying: tuple[Contrast, ...]
    pairs: tuple[WidthTrend, ...]

    def to_dict(self) -> dict[str, Any]:
        return {
            "source": self.source,
            "groups": [group.to_dict() for group in self.groups],
            "without": list(self.without),
            "groups_without": [group.to_dict() for group in self.groups_without],
            "split": self.split,
            "class_by_width": self.class_by_width.to_dict(),
            "tying": [contrast.to_dict() for contrast in self.tying],
            "pairs": [dataclasses.asdict(one) for one in self.pairs],
            "null_slope": NULL_SLOPE,
        }


def points_of(results: Iterable[Stored], role: str = "embedding") -> list[Point]:
    """The matrices of one role among results; the newest where a source was measured more than once."""
    found: dict[str, Point] = {}
    for result in results:
        record = result.record
        if record.get("role") != role or not record.get("epsilon") or not record.get("epsilon_ratio"):
            continue
        source = str(record["source"])
        # The published table has two rows a checkpoint never; a store may have several, measured with other options.
        found.pop(source, None)
        found[source] = Point(
            str(record.get("name") or source),
            source,
            int(record["dim"]),
            float(record["epsilon"]),
            float(record["epsilon_ratio"]),
            str(record["class"]),
            record.get("tied"),
            *_of_pairs(record),
        )
    return list(found.values())


def _of_pairs(record: Mapping[str, Any]) -> tuple[float | None, int | None]:
    """(d_alpha / d, s_max) of a record, None where it does not say, or nothing that can be read."""
    try:
        tail, at_once = tail_dims(record).get(TAIL), record.get("at_once")
        return None if tail is None else tail / record["dim"], int(at_once["best"]["s_max"]) if at_once else None
    except (KeyError, TypeError, ValueError):
        return None, None


def _all_but(points: Sequence[Point], names: Sequence[str]) -> tuple[list[Point], tuple[str, ...]]:
    """(points that stay, names that went). Names are matched without regard to case, with name or source."""
    gone: list[Point] = []
    for name in names:
        hits = [point for point in points if name.lower() in (point.name.lower(), point.source.lower())]
        if not hits:
            near = [point.name for point in points if name.lower() in f"{point.name} {point.source}".lower()]
            hint = f"; did you mean {', '.join(near[:5])}" if near else ""
            raise InputError(f"no model named {name!r} among {len(points)} models{hint}")
        gone += hits
    return [point for point in points if point not in gone], tuple(point.name for point in gone)


def _correlate(points: Sequence[Point], value: Callable[[Point], float]) -> Spearman:
    permutations = PERMUTATIONS if len(points) < FEW else 0
    return spearman([p.d for p in points], [value(p) for p in points], permutations=permutations)


def _hangs_on(points: Sequence[Point], rho: float) -> tuple[str, float] | None:
    changes = []
    for left_out in points:
        rest = [point for point in points if point is not left_out]
        try:
            changes.append((left_out.name, spearman([p.d for p in rest], [p.ratio for p in rest]).rho))
        except InputError:  # the others all have one width
            return None
    return max(changes, key=lambda change: abs(change[1] - rho))


def group_trend(group: str, points: Sequence[Point]) -> GroupTrend:
    """The trend of one group; its parts are None where there are fewer than 3 models or all have one width."""
    widths = [point.d for point in points]
    ends = (min(widths), max(widths)) if widths else None
    twins = Counter((point.d, point.epsilon) for point in points)
    alike = sum(count - 1 for count in twins.values())
    try:
        epsilon, ratio = _correlate(points, lambda p: p.epsilon), _correlate(points, lambda p: p.ratio)
        slope = power_law(widths, [point.epsilon for point in points])
    except InputError as error:
        return GroupTrend(group, len(points), ends, None, None, None, None, None, alike, str(error))
    hangs_on = _hangs_on(points, ratio.rho) if len(points) > 3 else None
    return GroupTrend(group, len(points), ends, epsilon, ratio, slope, _against_null(slope), hangs_on, alike)


def _against_null(slope: PowerLaw) -> float:
    from scipy import stats

    if slope.standard_error == 0.0:
        return 1.0 if slope.slope == NULL_SLOPE else 0.0
    t = abs(slope.slope - NULL_SLOPE) / slope.standard_error
    return float(2.0 * stats.t.sf(t, slope.n - 2))


def contrast(quantity: str, names: tuple[str, str], one: Sequence[float], other: Sequence[float]) -> Contrast:
    """Mann-Whitney test of two lists; exact where there are no ties and the lists are short."""
    from scipy import stats

    p = float(stats.mannwhitneyu(one, other).pvalue) if one and other else None
    medians = (median(one) if one else None, median(other) if other else None)
    return Contrast(quantity, names, (len(one), len(other)), medians, p)


def _groups(points: Sequence[Point]) -> tuple[GroupTrend, ...]:
    of_class = (group_trend(name, [point for point in points if point.klass == name]) for name in CLASSES)
    return (group_trend("all", points), *of_class)


def width_trend(quantity: str, random: float, points: Sequence[Point], value: Callable[[Point], float]) -> WidthTrend:
    """The trend of a positive quantity over the width."""
    try:
        rank = _correlate(points, value)
        slope = power_law([point.d for point in points], [value(point) for point in points])
    except InputError:
        return WidthTrend(quantity, len(points), random, None, None)
    return WidthTrend(quantity, len(points), random, rank, slope)


def _pairs(points: Sequence[Point]) -> tuple[WidthTrend, ...]:
    tailed, read = [p for p in points if p.tail], [p for p in points if p.s_max]
    return (
        width_trend("d_alpha / d", 0.0, tailed, lambda p: p.tail or 0.0),
        width_trend("s_max", 1.0, read, lambda p: float(p.s_max or 0)),
    )


def trend_of(points: Sequence[Point], source: str = "points", without: Sequence[str] = ()) -> Trend:
    """Trends of these points.

    without: names of outliers to leave out in a second look.

    Raises
    ------
    InputError
        if there is no point, or no model of a name in `without`.

    Cost: O(n^2 log n) for n models, plus 9999 permutations for each group of fewer than 15.
    """
    if not points:
        raise InputError(f"{source} holds no measured models: run repcap survey first")
    rest, gone = _all_but(points, without)
    wide = {name: [float(point.d) for point in points if point.klass == name] for name in CLASSES}
    tied = [[p for p in points if p.tied is flag] for flag in (False, True)]
    quantities: dict[str, Callable[[Point], float]] = {"epsilon": lambda p: p.epsilon, "ratio": lambda p: p.ratio}
    return Trend(
        source,
        _groups(points),
        gone,
        _groups(rest) if gone else (),
        {name: len(wide[name]) for name in CLASSES},
        contrast("d", ("low", "high"), wide["low"], wide["high"]),
        tuple(
            contrast(name, ("untied", "tied"), [value(p) for p in tied[0]], [value(p) for p in tied[1]])
            for name, value in quantities.items()
        ),
        _pairs(points),
    )


def trend(
    store: str | os.PathLike[str] | None = None,
    *,
    kind: str | None = None,
    role: str = "embedding",
    without: Sequence[str] = (),
) -> Trend:
    """Trends of the models in a store, or of the published table of 45 models where `store` is None.

    kind: `measure` or `published`; by default what the store has, measured before published.

    Raises
    ------
    InputError, StoreError
        if the store cannot be read or holds no such models.
    """
    if kind not in (None, MEASURE, PUBLISHED):
        raise InputError(f"cannot take the trend of records of kind {kind!r}: use {MEASURE} or {PUBLISHED}")
    if store is None:
        return trend_of(points_of(published_results()), "the published table", without)
    with Store(store, "read") as opened:
        chosen = kind or (MEASURE if opened.count(MEASURE) else PUBLISHED)
        points = points_of(opened.records(chosen), role)
        held = opened.count(chosen)
    if held and not points:
        raise InputError(f"{store} holds {held} results, none of them of an {role} with an epsilon and its ratio")
    return trend_of(points, str(store), without)
