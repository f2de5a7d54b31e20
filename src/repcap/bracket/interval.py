"""One (d, epsilon) between what exists and what cannot: the number of directions, never as one number alone."""

from __future__ import annotations

import dataclasses
from typing import Any

from repcap.constructions.best import Construction, best_construction
from repcap.domain import check_eps, scalar_d
from repcap.laws import fitted, law_log_k, published
from repcap.laws.fitting.ranges import outside
from repcap.laws.limits.bounds import Bound, upper_bound
from repcap.laws.limits.existence import gilbert_varshamov
from repcap.numerics import CLASS_LOW, LN10, Z_DEFAULT, format_power, power


@dataclasses.dataclass(frozen=True)
class Bracket:
    """How many vectors fit into R^d with every |cosine| <= epsilon."""

    d: int
    epsilon: float
    laws: dict[str, float]
    """log10 k of every curve of `repcap.laws`, by its key."""
    construction: Construction
    """The best explicit set: a proven lower bound."""
    gilbert_varshamov: float
    """log10 k that is proven to exist, without an explicit set."""
    upper: Bound
    """The best proven upper bound."""
    warnings: tuple[str, ...]

    @property
    def proven(self) -> tuple[float, str]:
        """(log10 k, name) of the better of the two proven lower bounds."""
        if self.gilbert_varshamov > self.construction.log10_k:
            return self.gilbert_varshamov, "Gilbert-Varshamov"
        return self.construction.log10_k, self.construction.name

    def to_dict(self) -> dict[str, Any]:
        """{d, epsilon, construction, gilbert_varshamov, each fitted law, upper, warnings}: each end by its log10 k.

        A k that no float64 holds is None.
        """
        return {"d": self.d, "epsilon": self.epsilon, **self.ends(), "warnings": list(self.warnings)}

    def ends(self) -> dict[str, dict[str, Any]]:
        """`bracket` of the JSON of `repcap capacity`: proven from below, the fitted laws, proven from above."""
        return {
            "construction": {
                "log10_k": self.construction.log10_k,
                "k": power(self.construction.log10_k),
                "name": self.construction.name,
                "coherence": self.construction.coherence,
            },
            "gilbert_varshamov": {"log10_k": self.gilbert_varshamov},
            **{curve.key: {"log10_k": self.laws[curve.key]} for curve in fitted()},
            "upper": self.upper.to_dict(),
        }

    def summary(self) -> dict[str, Any]:
        """`capacity` of a measurement: {construction, law, upper}, each with log10, a printable number and a name.

        The law is that of the published capacities of models; `indeterminate` says that the paper calls it so
        (epsilon >= 0.1).
        """
        law = published().key
        parts = {
            "construction": (self.construction.log10_k, self.construction.name),
            "law": (self.laws[law], law),
            "upper": (self.upper.log10_k, self.upper.name),
        }
        summary: dict[str, Any] = {
            key: {"log10": value, "k": format_power(value), "name": name} for key, (value, name) in parts.items()
        }
        summary["law"]["indeterminate"] = self.epsilon >= CLASS_LOW
        return summary


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
    construction, exists = best_construction(dims, given), gilbert_varshamov(dims, given)
    found = Bracket(dims, given, laws, construction, exists, upper_bound(dims, given), ())
    return dataclasses.replace(found, warnings=tuple(_warnings(found, z)))


def _warnings(found: Bracket, z: float) -> list[str]:
    proven, name = found.proven
    values = {curve.key: found.laws[curve.key] for curve in fitted()}
    low = {law: format_power(value) for law, value in values.items() if value < proven - 1e-9}
    high = {law: format_power(value) for law, value in values.items() if value > found.upper.log10_k + 1e-9}
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
