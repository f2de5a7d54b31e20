"""One (d, epsilon) between what exists and what cannot: the number of directions, never as one number alone."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from repcap.constructions.best import Construction, best_construction
from repcap.domain import check_eps, scalar_d
from repcap.laws import fitted, law_log_k, published
from repcap.laws.fitting.ranges import outside
from repcap.laws.limits.bounds import Bound, upper_bound
from repcap.laws.limits.existence import gilbert_varshamov
from repcap.numerics import CLASS_LOW, LN10, Z_DEFAULT, format_power, power

RANDOM_CODING = "random coding"
"""Name of what is proven to exist without being written down: the Gilbert-Varshamov argument."""
SAME = 1e-9
"""log10 k, or coherences of ratio to each other, that differ by less are equal but for rounding."""


@dataclasses.dataclass(frozen=True)
class Bracket:
    """How many vectors fit into R^d with every |cosine| <= epsilon."""

    d: int
    epsilon: float
    laws: dict[str, float]
    """log10 k of every curve of `repcap.laws`, by its key."""
    explicit: Construction
    """The best explicit set: a proven lower bound."""
    exists: float
    """log10 k that is proven to exist, without an explicit set."""
    upper: Bound
    """The best proven upper bound."""
    warnings: tuple[str, ...]

    @property
    def proven(self) -> tuple[float, str]:
        """(log10 k, name) of the better of the two proven lower bounds: at least so many exist."""
        if self.exists > self.explicit.log10_k:
            return self.exists, RANDOM_CODING
        return self.explicit.log10_k, self.explicit.name

    def to_dict(self) -> dict[str, Any]:
        """{d, epsilon, explicit, exists, each fitted law, upper, warnings}: each end by its log10 k and name.

        A k that no float64 holds is None.
        """
        return {"d": self.d, "epsilon": self.epsilon, **self.ends(), "warnings": list(self.warnings)}

    def ends(self) -> dict[str, dict[str, Any]]:
        """`bracket` of the JSON of `repcap capacity`: proven from below, the fitted laws, proven from above.

        Every entry is {log10_k, k, name}, numbers as numbers; `explicit` has its coherence besides, and `upper` says
        in `exact` whether so many lines exist.
        """
        return {
            "explicit": {**_end(self.explicit.log10_k, self.explicit.name), "coherence": self.explicit.coherence},
            "exists": _end(self.exists, RANDOM_CODING),
            **{curve.key: _end(self.laws[curve.key], curve.key) for curve in fitted()},
            "upper": {**_end(self.upper.log10_k, self.upper.name), "exact": self.exact},
        }

    @property
    def exact(self) -> bool:
        """Whether as many lines are known as are possible."""
        return self.upper.log10_k - self.proven[0] < SAME

    def summary(self) -> dict[str, dict[str, Any]]:
        """`capacity` of a measurement: the entries explicit, exists and upper of `ends()`, and `law`.

        The law is that of the published capacities of models. Its `indeterminate` says that the paper calls it so
        (epsilon >= 0.1), `below_proven` that more lines are proven to exist than it gives.
        """
        ends = self.ends()
        key = published().key
        law = {
            **ends[key],
            "indeterminate": self.epsilon >= CLASS_LOW,
            "below_proven": self.laws[key] < self.proven[0] - SAME,
        }
        return {"explicit": ends["explicit"], "exists": ends["exists"], "law": law, "upper": ends["upper"]}


def at_least(ends: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Any]:
    """Of the entries of `Bracket.summary()` or `Bracket.ends()` the better proven lower one: `explicit` or `exists`."""
    return ends["exists"] if ends["exists"]["log10_k"] > ends["explicit"]["log10_k"] else ends["explicit"]


def _end(log10_k: float, name: str) -> dict[str, Any]:
    return {"log10_k": log10_k, "k": power(log10_k), "name": name}


def bracket(d: int, eps: float, z: float = Z_DEFAULT) -> Bracket:
    """Everything known about the number of vectors in R^d with every |cosine| <= eps.

    `z` is the z of epsilon = mean + z std where eps was measured that way; other values than 2 are warned about.
    Time: milliseconds up to d = 10^5; the upper bound takes O(d) steps where eps nears 1.

    Raises
    ------
    DomainError
        if d is not a whole number >= 1 or eps is not in (0, 1).
    """
    dims, given = scalar_d(d), float(check_eps(eps))
    laws = {key: float(value) / LN10 for key, value in law_log_k(dims, given).items()}
    explicit, exists = best_construction(dims, given), gilbert_varshamov(dims, given)
    found = Bracket(dims, given, laws, explicit, exists, upper_bound(dims, given), ())
    return dataclasses.replace(found, warnings=tuple(_warnings(found, z)))


def _warnings(found: Bracket, z: float) -> list[str]:
    proven, name = found.proven
    values = {curve.key: found.laws[curve.key] for curve in fitted()}
    low = {law: format_power(value) for law, value in values.items() if value < proven - SAME}
    high = {law: format_power(value) for law, value in values.items() if value > found.upper.log10_k + SAME}
    warnings = []
    if low:
        warnings.append(
            f"{_each(low)}: below the {format_power(proven)} lines that are proven to exist ({name}), "
            "so no upper bound on k"
        )
    if high:
        warnings.append(
            f"{_each(high)}: above the {format_power(found.upper.log10_k)} lines that are possible at most "
            f"({found.upper.name})"
        )
    warnings += extrapolation(found.d, {law: value * LN10 for law, value in values.items()})
    if found.epsilon >= CLASS_LOW:
        warnings.append("epsilon >= 0.1, where the paper calls the capacity indeterminate")
    if z != Z_DEFAULT:
        warnings.append(f"epsilon was taken at mean + {z:g} std; the published capacities are at mean + 2 std")
    return warnings


def extrapolation(d: float, log_k: dict[str, float]) -> list[str]:
    """One warning for the laws whose (k, d) lies outside the data that they were fitted to, or none."""
    reasons = {law: reason for law, value in log_k.items() if (reason := outside(d, value)) is not None}
    if not reasons:
        return []
    words = list(dict.fromkeys(reasons.values()))
    subject = "they were" if len(reasons) > 1 else "it was"
    return [f"{' and '.join(reasons)}: an extrapolation beyond the data that {subject} fitted to: {'; '.join(words)}"]


def _each(values: dict[str, str]) -> str:
    return " and ".join(f"{law} gives {value}" for law, value in values.items())
