"""One (d, epsilon) or one (d, k) as a row of a table: the best known set, what exists, and the proven limit."""

from __future__ import annotations

from typing import Any

from repcap.bracket.interval import RANDOM_CODING, SAME
from repcap.constructions.best import Construction, best_coherence, best_construction
from repcap.domain import loosened
from repcap.laws.limits import linear_programming
from repcap.laws.limits.bounds import Bound, coherence_lower_bound, upper_bound, whole
from repcap.laws.limits.existence import gilbert_varshamov, gilbert_varshamov_coherence

_WHOLE = 10**15
"""Whole numbers up to here are the same in every reader."""


def at_epsilon(d: int, eps: float) -> dict[str, Any]:
    """How many lines with every |cosine| <= eps: {d, epsilon, explicit, exists, upper}, each end with its name.

    `explicit` has the number, the coherence and the parts of the best explicit set; `upper.exact` says whether as many
    lines are known as are possible. Time: 1 to 15 ms, up to d = 16384; 0.1 s where there is a linear program.
    """
    found, exists, upper = best_construction(d, eps), gilbert_varshamov(d, eps), least_upper(d, eps)
    known = max(found.log10_k, exists)
    return {
        "d": d,
        "epsilon": eps,
        "explicit": _explicit(found),
        "exists": {"log10_k": exists, "name": RANDOM_CODING},
        "upper": {"log10_k": upper.log10_k, "name": upper.name, "exact": upper.log10_k - known < SAME},
    }


def least_upper(d: int, eps: float) -> Bound:
    """`upper_bound`, or what linear programming proves, which takes longer and is less for some epsilon above 0.45."""
    upper, log_k = upper_bound(d, eps), linear_programming.log_upper(d, loosened(eps))
    if log_k is None or (programmed := whole(log_k)) >= upper.log10_k:
        return upper
    return Bound(programmed, linear_programming.NAME)


def at_k(d: int, k: float) -> dict[str, Any]:
    """How near to orthogonal k lines can be: {d, k, explicit, exists, lower}, each end with its name.

    `explicit` has the number of lines, the coherence and the parts of the best explicit set; `lower.exact` says whether
    its coherence is the least possible. Time: 20 to 100 ms, up to d = 16384.
    """
    found, exists, lower = best_coherence(k, d), gilbert_varshamov_coherence(k, d), coherence_lower_bound(k, d)
    known = min(found.coherence, exists)
    return {
        "d": d,
        "k": k,
        "explicit": _explicit(found),
        "exists": {"epsilon": exists, "name": RANDOM_CODING},
        "lower": {"epsilon": lower.value, "name": lower.name, "exact": known <= lower.value * (1.0 + SAME)},
    }


def _explicit(found: Construction) -> dict[str, Any]:
    single = {"family": found.family, "d": found.d, "copies": 1, "params": found.params}
    parts = found.params["parts"] if found.family == "direct_sum" else [single]
    return {
        "log10_k": found.log10_k,
        "k": found.k if found.k is not None and found.k <= _WHOLE else None,
        "coherence": found.coherence,
        "name": found.name,
        "parts": [{key: part[key] for key in single} for part in parts],
    }
