"""The published table of models: its 45 rows, the split into classes, and the trend with width."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from typing import Any

import numpy as np

from repcap.bracket.interval import bracket
from repcap.laws import full, ratio
from repcap.laws.fitting.correlation import power_law, spearman
from repcap.laws.fitting.data import PublishedModel, published_models
from repcap.numerics import CLASS_HIGH, CLASS_LOW, LN10, epsilon_class
from repcap.verbs.reproduce.claims import Claim, matches

GROUP = "Models"
EPSILON_HALF_UNIT = 5e-6
"""epsilon is printed with five decimals: the unrounded one lies within this of it."""


@dataclasses.dataclass(frozen=True)
class TableRow:
    """One row of the published table, recomputed."""

    model: str
    hub_id: str
    d: int
    epsilon: float
    published: str
    """The capacity as printed, or `indeterminate`."""
    log10_k: float
    """`full` at the printed epsilon."""
    log10_k_range: tuple[float, float]
    """`full` over the epsilons that round to the printed one."""
    indeterminate: bool
    """epsilon >= 0.1."""
    agrees: bool
    agrees_without_rounding: bool
    """Does the printed epsilon itself, taken as exact, give the printed capacity?"""
    klass: str
    epsilon_null: float
    epsilon_ratio: float
    explicit_log10_k: float
    explicit: str
    exists_log10_k: float
    upper_log10_k: float
    upper: str

    def to_dict(self) -> dict[str, Any]:
        record = dataclasses.asdict(self)
        record["class"] = record.pop("klass")
        return record


def table_rows() -> list[TableRow]:
    """All rows of the table, in its order."""
    return [_row(model) for model in published_models()]


def _row(model: PublishedModel) -> TableRow:
    d, eps = model.d_model, model.epsilon
    low, high = (full.log_k(d, eps + shift) / LN10 for shift in (-EPSILON_HALF_UNIT, EPSILON_HALF_UNIT))
    value = full.log_k(d, eps) / LN10
    indeterminate = eps >= CLASS_LOW
    if model.capacity is None:
        agrees = exact = indeterminate
    else:
        exact = not indeterminate and matches(model.capacity_text, 10.0**value)
        agrees = not indeterminate and _reaches(model.capacity_text, 10.0**low, 10.0**high)
    known = bracket(d, eps)
    return TableRow(
        model=model.model,
        hub_id=model.hub_id,
        d=d,
        epsilon=eps,
        published=model.capacity_text or "indeterminate",
        log10_k=value,
        log10_k_range=(low, high),
        indeterminate=indeterminate,
        agrees=agrees,
        agrees_without_rounding=exact,
        klass=epsilon_class(eps),
        epsilon_null=model.epsilon_null,
        epsilon_ratio=model.epsilon_ratio,
        explicit_log10_k=known.explicit.log10_k,
        explicit=known.explicit.name,
        exists_log10_k=known.exists,
        upper_log10_k=known.upper.log10_k,
        upper=known.upper.name,
    )


def _reaches(printed: str, low: float, high: float) -> bool:
    """Is there a value in [low, high] that rounds to the printed one?"""
    number = float(printed)
    return matches(printed, min(max(number, low), high))


def claims(rows: list[TableRow]) -> list[Claim]:
    return [_capacities(rows), _classes(rows), _thresholds(rows), *_trends(rows), _isotropic()]


def _capacities(rows: list[TableRow]) -> Claim:
    finite = [row for row in rows if row.published != "indeterminate"]
    right = sum(row.agrees for row in finite)
    exact = sum(row.agrees_without_rounding for row in finite)
    proven = [max(row.explicit_log10_k, row.exists_log10_k) for row in finite]
    below = sum(row.log10_k < low for row, low in zip(finite, proven, strict=True))
    return Claim(
        "table.capacity",
        GROUP,
        "finite rows of Table 1",
        f"{len(finite)}",
        f"{right} of {len(finite)} follow",
        f"{below} of {len(finite)} below a proven set",
        "agrees" if right == len(finite) else "departs",
        {"finite": len(finite), "agree": right, "agree_without_rounding": exact, "below_proven": below},
        f"`full` at the printed epsilon. {exact} agree at three digits as printed; the other {len(finite) - exact} "
        "within the rounding of epsilon to five decimals, which capacity magnifies.",
    )


def _classes(rows: list[TableRow]) -> Claim:
    counts = Counter(row.klass for row in rows)
    published = Counter(row.published == "indeterminate" for row in rows)
    same = all((row.published == "indeterminate") == (row.klass == "high") for row in rows)
    closest = min(rows, key=lambda row: abs(row.epsilon - CLASS_HIGH))
    return Claim(
        "table.classes",
        GROUP,
        "classes high / low",
        f"{published[True]} / {published[False]}",
        f"{counts['high']} / {counts['low']}, none between",
        "the borders ignore d",
        "agrees" if same and counts["between"] == 0 else "departs",
        {"high": counts["high"], "low": counts["low"], "between": counts["between"]},
        f"high: epsilon > 0.2; low: < 0.1. The row closest to a border is {closest.model} at {closest.epsilon}.",
    )


def _thresholds(rows: list[TableRow]) -> Claim:
    low_d, high_d = (2.0 / CLASS_LOW) ** 2, (2.0 / CLASS_HIGH) ** 2
    split = {klass: sorted(row.epsilon_ratio for row in rows if row.klass == klass) for klass in ("low", "high")}
    overlap = [row.model for row in rows if row.klass == "high" and row.epsilon_ratio <= split["low"][-1]]
    words = {klass: f"{ratios[0]:.1f} to {ratios[-1]:.1f}" for klass, ratios in split.items()}
    return Claim(
        "table.thresholds",
        GROUP,
        "epsilon of a random matrix",
        "borders 0.1 and 0.2",
        f"> 0.1 for d < {low_d:.0f}, > 0.2 for d < {high_d:.0f}",
        f"times random: low {words['low']}, high {words['high']}",
        "added",
        {
            "random_above_low_for_d_below": low_d,
            "random_above_high_for_d_below": high_d,
            "ratio_low": [split["low"][0], split["low"][-1]],
            "ratio_high": [split["high"][0], split["high"][-1]],
            "overlapping": overlap,
        },
        "The null is 2/sqrt(d): mean + 2 std of random directions. The published borders do not depend on d. Every "
        f"model of the table lies above its own null; {len(overlap)} of the high class lie no further above it than "
        "some of the low class.",
    )


def _trends(rows: list[TableRow]) -> list[Claim]:
    low = [row for row in rows if row.klass == "low"]
    d = np.array([row.d for row in low], dtype=float)
    eps = np.array([row.epsilon for row in low])
    over_null = np.array([row.epsilon_ratio for row in low])
    raw, against_null, everything = (
        spearman(d, eps),
        spearman(d, over_null),
        spearman([row.d for row in rows], [row.epsilon for row in rows]),
    )
    coarse = spearman(d, np.round(over_null, 2))
    shuffled = [spearman(d, values, permutations=20000).p for values in (eps, over_null)]
    slope = power_law(d, eps)
    return [
        Claim(
            "trend.epsilon",
            GROUP,
            "larger models are tighter",
            "yes",
            f"rho = {raw.rho:+.3f}, p = {raw.p:.2f}",
            f"slope {slope.slope:+.2f} ({slope.low:+.2f} to {slope.high:+.2f}); random -0.5",
            "unsupported",
            {
                "spearman": raw.to_dict(),
                "p_permutation": shuffled[0],
                "slope": slope.to_dict(),
                "all_rows": everything.to_dict(),
            },
            f"Spearman(d, epsilon) over the {len(low)} low rows. Over all {len(rows)} rows it is "
            f"{everything.rho:+.2f}, but that mixes the classes: small models are the high ones. Corrected: "
            "exponent s of epsilon ~ d^s with 95 % interval; random directions have -1/2. Rows of one family are "
            "no independent sample.",
        ),
        Claim(
            "trend.null",
            GROUP,
            "times random over d",
            "",
            "",
            f"rho = {against_null.rho:+.3f}, p = {against_null.p:.1e}",
            "added",
            {
                "spearman": against_null.to_dict(),
                "p_permutation": shuffled[1],
                "rounded_to_two_decimals": coarse.to_dict(),
            },
            "Spearman(d, epsilon sqrt(d)/2): larger models lie further above random directions. With the ratios "
            f"rounded to two decimals first, ties make it {coarse.rho:+.3f}, p = {coarse.p:.1e}.",
        ),
    ]


def _isotropic() -> Claim:
    factor = math.exp(4.0 / ratio.C)
    check = math.exp(ratio.log_k(4096, 2.0 / math.sqrt(4096))) / 4096
    return Claim(
        "table.isotropic",
        GROUP,
        "ratio at a random matrix",
        "",
        "",
        f"{factor:.0f} d at every d",
        "added",
        {"factor": factor, "factor_at_4096": check},
        "A matrix without any structure has epsilon = 2/sqrt(d), at which `ratio` gives d e^(4/C): a capacity above d "
        "is no sign of learning.",
    )
