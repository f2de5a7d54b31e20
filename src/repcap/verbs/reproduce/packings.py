"""The published packings against what is proven: how far from optimal they are, and what explicit sets do."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np

from repcap.constructions.best import best_coherence, best_construction
from repcap.laws import full, ratio
from repcap.laws.fitting.data import Floats, PackingTable, optimized_packing
from repcap.laws.limits.bounds import coherence_lower_bound, upper_bound
from repcap.numerics import LN10, format_power
from repcap.verbs.reproduce.claims import Claim

GROUP = "Packings and bounds"
MOST_EXPONENT = 20


def penalty_exponent(k: int, d: int) -> int:
    """Exponent p of the penalty sum |cos|^p in the released code for a cell: min(int(m / ln d), 20).

    m is 40 up to 4000 vectors, else 50 from d = 3072 on, else 60 (A. Guha, released code, as read).
    """
    m = 40 if k <= 4000 else 50 if d >= 3072 else 60
    return min(int(m / math.log(d)), MOST_EXPONENT)


def lower_bounds(table: PackingTable) -> Floats:
    """Best proven lower bound on the coherence of each cell, shape (cells,)."""
    return np.array([coherence_lower_bound(k, int(d)).value for k, d in zip(table.k, table.d, strict=True)])


def explicit(table: PackingTable) -> Floats:
    """Coherence of the best explicit set with at least k lines in R^d for each cell, shape (cells,)."""
    return np.array([best_coherence(float(k), int(d)).coherence for k, d in zip(table.k, table.d, strict=True)])


def claims() -> list[Claim]:
    table = optimized_packing()
    inside = table.take(~table.degenerate)
    return [_exponents(table), _distance(inside), _explicit_sets(inside), _kerdock(), _delsarte_goethals()]


def _exponents(table: PackingTable) -> Claim:
    counts = Counter(penalty_exponent(int(k), int(d)) for k, d in zip(table.k, table.d, strict=True))
    low, high = min(counts), max(counts)
    usual = sum(number for exponent, number in counts.items() if exponent >= 5)
    return Claim(
        "packing.exponent",
        GROUP,
        "exponent of the loss",
        "40 to 60",
        f"{low} to {high}",
        f"5 to {high} in {usual} of {len(table)} cells",
        "contradicted",
        {"least": low, "largest": high, "cells": {str(p): number for p, number in sorted(counts.items())}},
        "The released code divides 40, 50 or 60 by ln d and caps at 20. Low exponents weigh all pairs, not the largest "
        f"cosine. {counts[low]} cells (k <= 4000, d >= 3072) get {low}.",
    )


def _distance(table: PackingTable) -> Claim:
    factor = table.epsilon / lower_bounds(table)
    return Claim(
        "packing.distance",
        GROUP,
        "coherence / proven bound",
        "",
        f"{factor.min():.2f} to {factor.max():.2f}",
        f"median {np.median(factor):.2f}",
        "added",
        {"least": float(factor.min()), "median": float(np.median(factor)), "largest": float(factor.max())},
        f"Published packings, {len(table)} cells with k > d. The true optimum lies between bound and packing.",
    )


def _explicit_sets(table: PackingTable) -> Claim:
    constructed = explicit(table)
    beaten = int((constructed < table.epsilon).sum())
    example = int(np.flatnonzero((table.k == 32000) & (table.d == 4096))[0])
    bound = coherence_lower_bound(32000, 4096).value
    return Claim(
        "packing.explicit",
        GROUP,
        "explicit sets do better",
        "",
        f"{beaten} of {len(table)} cells",
        f"(32000, 4096): {constructed[example]:.4f}, not {table.epsilon[example]:.4f}",
        "added",
        {
            "beaten": beaten,
            "cells": len(table),
            "example": {
                "k": 32000,
                "d": 4096,
                "explicit": float(constructed[example]),
                "published": float(table.epsilon[example]),
                "lower_bound": bound,
            },
        },
        f"Explicit sets need no optimiser. At (32000, 4096) no set can be below {bound:.4f}.",
    )


def _kerdock() -> Claim:
    found = best_construction(64, 0.125)
    law = math.exp(ratio.log_k(64, 0.125))
    limit = upper_bound(64, 0.125)
    return Claim(
        "upper.kerdock",
        GROUP,
        "ratio bounds k: (64, 0.125)",
        "upper bound",
        f"{law:.0f}",
        f"{found.k} lines exist",
        "contradicted",
        {"ratio": law, "explicit": found.to_dict(), "upper": limit.to_dict()},
        f"{found.name}: coherence exactly 1/8. The proven upper bound is {format_power(limit.log10_k)} ({limit.name}), "
        "so this set is optimal.",
    )


def _delsarte_goethals() -> Claim:
    found = best_construction(4096, 0.0645)
    law = full.log_k(4096, 0.0645) / LN10
    return Claim(
        "upper.delsarte_goethals",
        GROUP,
        "full bounds k: Llama 2 7B",
        "upper bound",
        format_power(law),
        f"{format_power(found.log10_k)} lines exist",
        "contradicted",
        {"full_log10_k": law, "log2_k": found.log10_k / math.log10(2.0), "explicit": found.to_dict()},
        f"{found.name}: {found.k} = 2^{math.log2(found.k or 1):.0f} lines at coherence {found.coherence:g} in R^4096.",
    )
