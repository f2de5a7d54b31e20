"""The best explicit set of lines in R^d: a proven lower bound on how many fit.

A dimension that no family has is filled by blocks in orthogonal coordinate subspaces (`direct_sum.py`).
`best_construction` gives the most lines at a coherence, `best_coherence` the least coherence for a number of lines.
Both are choices among proven sets, not optima over all sets.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Collection
from typing import Any

from repcap.constructions import CONSTRUCTIONS
from repcap.constructions.direct_sum import Parts, best_parts
from repcap.domain import check_eps, check_log_k, scalar_d
from repcap.errors import DomainError

_K_PRINTED = 10**300
"""A k beyond this is given by its logarithm alone."""


@dataclasses.dataclass(frozen=True)
class Construction:
    """An explicit set of lines."""

    family: str
    """Key of `CONSTRUCTIONS`, `direct_sum`, or `repeated` (one line taken k times, where nothing better is)."""
    name: str
    d: int
    log10_k: float
    k: int | None
    """Exact number of lines, None beyond 10^300."""
    coherence: float
    exact: bool
    """Whether `coherence` is the value itself or a proven upper bound on it."""
    params: dict[str, Any]
    """The family's; for `direct_sum` {"parts": [{family, name, d, k, coherence, copies, params}, ...]}: the parts stand
    in orthogonal coordinates and fill all d of them."""

    def to_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)


def best_construction(
    d: int, eps: float, families: Collection[str] | None = None, *, built: bool = False
) -> Construction:
    """The explicit set with the most lines in R^d at coherence <= eps, from all families or those named.

    built: only sets whose vectors are made here (`build.build`).

    Time: a few tenths of a millisecond; integers of O(d) digits at worst.

    Raises
    ------
    DomainError
        if d is not a whole number >= 1, eps is not in (0, 1), or a family is unknown.
    """
    dims, given = scalar_d(d), float(check_eps(eps))
    return _assemble(dims, best_parts(dims, given, chosen(families), built)[1])


def best_coherence(k: float, d: int, families: Collection[str] | None = None, *, built: bool = False) -> Construction:
    """The explicit set of at least k lines in R^d with the least coherence, from all families or those named.

    built: only sets whose vectors are made here (`build.build`). Any k of its lines will do. Time: about 20 calls of
    `best_construction`.

    Raises
    ------
    DomainError
        if k <= 1, d is not a whole number >= 1, or a family is unknown.
    """
    dims = scalar_d(d)
    check_log_k(k)
    needed, keys = math.ceil(k), chosen(families)  # an int: exact, and comparable with counts beyond float64
    if needed <= dims:
        return _assemble(dims, ((next(iter(CONSTRUCTIONS["orthonormal"].members(dims, 0.0))), 1),))
    found = _least(dims, needed, keys, built)
    if found is None:
        return Construction("repeated", "one line repeated", dims, math.log10(needed), _printed(needed), 1.0, True, {})
    return _assemble(dims, found)


def _least(d: int, needed: int, keys: tuple[str, ...], built: bool) -> Parts | None:
    """The parts of the set with the least coherence that has so many lines; None where none has."""
    low, high = 0.0, 36.0  # eps = 1 - exp(-t), which keeps the digits of 1 - eps
    k, parts = best_parts(d, -math.expm1(-high), keys, built)
    if k < needed:
        return None
    middle = high
    while high - low > 1e-15 * high:
        if k < needed:
            low = middle
        else:
            found, high = parts, middle
            worst = max(block.coherence for block, _ in parts)
            # From the coherence of what was found only what lies below it is of interest: mostly nothing does.
            if worst < 0.999 and (least := -math.log1p(-worst)) < high:
                high = least
                below = least * (1.0 - 2e-11)
                if best_parts(d, -math.expm1(-below), keys, built)[0] < needed:
                    break
        middle = 0.5 * (low + high)
        if middle in (low, high):
            break
        k, parts = best_parts(d, -math.expm1(-middle), keys, built)
    return found


def chosen(families: Collection[str] | None) -> tuple[str, ...]:
    """The keys of those families, all where none is named, in the order of the table; axes are always among them."""
    if families is None:
        return tuple(CONSTRUCTIONS)
    unknown = sorted(set(families) - set(CONSTRUCTIONS))
    if unknown:
        raise DomainError(f"no family of constructions is called {unknown[0]!r}; there are {', '.join(CONSTRUCTIONS)}")
    return tuple(name for name in CONSTRUCTIONS if name in families or name == "orthonormal")


def _printed(k: int) -> int | None:
    return k if k <= _K_PRINTED else None


def _assemble(d: int, parts: Parts) -> Construction:
    first, copies = parts[0]
    if len(parts) == 1 and copies == 1:
        return Construction(
            first.family,
            first.name,
            d,
            math.log10(first.k),
            _printed(first.k),
            first.coherence,
            first.exact,
            first.params,
        )
    k = sum(block.k * copies for block, copies in parts)
    worst = max(block.coherence for block, _ in parts)
    # A bound on one part is no bound on the set if an exact part is worse.
    exact = any(block.exact and block.coherence == worst for block, _ in parts)
    described = [
        {
            "family": block.family,
            "name": block.name,
            "d": block.d,
            "k": _printed(block.k),
            "coherence": block.coherence,
            "copies": copies,
            "params": block.params,
        }
        for block, copies in parts
    ]
    return Construction(
        "direct_sum", _sum_name(parts), d, math.log10(k), _printed(k), worst, exact, {"parts": described}
    )


def _sum_name(parts: Parts) -> str:
    words = []
    for block, copies in parts[:3]:
        if block.family == "orthonormal":
            words.append("1 axis" if block.d * copies == 1 else f"{block.d * copies} axes")
        else:
            words.append(f"{copies} x {block.name} in R^{block.d}" if copies > 1 else f"{block.name} in R^{block.d}")
    if len(parts) > 3:
        words.append("smaller parts")
    return " + ".join(words)
