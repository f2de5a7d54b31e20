"""The bracket of a measurement as rows of a table: at least, the other proven end, the law, at most."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from repcap.bracket.interval import at_least
from repcap.laws import published
from repcap.numerics import format_power

Ends = Mapping[str, Mapping[str, Any]]


def bracket_rows(capacity: Ends) -> Iterator[tuple[str, str, str]]:
    """(what, k, from what) of `capacity` of a measurement, from the least to the most that is proven."""
    explicit, exists, law, upper = (capacity[key] for key in ("explicit", "exists", "law", "upper"))
    coded = at_least(capacity) is exists
    yield "at least", _power(exists if coded else explicit), _coding(exists) if coded else str(explicit["name"])
    if coded:
        yield "explicit set", _power(explicit), str(explicit["name"])
    else:
        yield "random coding", _power(exists), _coding(exists)
    yield published().label, _power(law), "; ".join(_of_law(law))
    yield "at most", _power(upper), str(upper["name"]) + (": so many exist, exact" if upper["exact"] else "")


def bracket_words(capacity: Ends | None) -> str:
    """log10 of the least and of the most that is proven, for a table of several models."""
    if capacity is None:
        return "-"
    return f"{at_least(capacity)['log10_k']:.1f} to {capacity['upper']['log10_k']:.1f}"


def _power(end: Mapping[str, Any]) -> str:
    return format_power(end["log10_k"])


def _coding(exists: Mapping[str, Any]) -> str:
    return f"{exists['name']}: proven to exist, not written down"


def _of_law(law: Mapping[str, Any]) -> Iterator[str]:
    if law["below_proven"]:
        yield "below what is proven to exist"
    if law["indeterminate"]:
        yield "indeterminate: epsilon >= 0.1"
    if not (law["below_proven"] or law["indeterminate"]):
        yield published().note
