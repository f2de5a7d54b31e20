"""What a stranger needs to check a set without us: family, parameters, exact k, exact coherence, and a proven limit.

`tools/check_certificate.py` derives all of it again; it shares no code with repcap.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from fractions import Fraction
from typing import Any

from repcap.constructions import CONSTRUCTIONS
from repcap.constructions.best import chosen
from repcap.constructions.direct_sum import best_parts
from repcap.constructions.family import Block
from repcap.domain import check_eps, loosened, scalar_d
from repcap.laws.limits import bukh_cox, levenshtein, linear_programming, transfer
from repcap.laws.limits.bounds import orthoplex

SCHEMA = 1
ROUNDING = 4e-16
"""Relative, of a coherence as a float64: bounds are taken where they hold for the exact one."""


def certificate(
    d: int, eps: float, families: Collection[str] | None = None, *, limit: Mapping[str, float] | None = None
) -> dict[str, Any]:
    """The certificate of the explicit set with the most lines in R^d at coherence <= eps, from all families or those
    named; JSON-ready.

    k is a hexadecimal integer. A coherence is `["sqrt", "p/q"]`, `["cos_pi_over", k]`, or `["mixed", a, N, form]` for
    (a + (N - a) form) / N. `upper`: no set of this coherence has more lines, log10, by the bound named.

    limit: {"epsilon": E}, E >= eps, adds `limit`: no set of coherence <= E has more lines. {"k": K, "epsilon": E}: no
    set of K lines has a coherence of E or less; E is lowered until the bounds that a certificate knows prove it.

    Raises
    ------
    DomainError
        if d is not a whole number >= 1 or eps is not in (0, 1).
    """
    dims, given = scalar_d(d), float(check_eps(eps))
    k, parts = best_parts(dims, given, chosen(families), False)
    worst = max((block for block, _ in parts), key=lambda block: block.coherence)
    asked = {} if limit is None else {"asked": dict(limit), "limit": _limit(dims, limit)}
    return {
        "schema": SCHEMA,
        "d": dims,
        "k": hex(k),
        "coherence": exact_coherence(worst),
        "parts": [_part(block, copies) for block, copies in parts],
        "upper": _upper(dims, worst.coherence * (1.0 + ROUNDING)),
        **asked,
    }


def _limit(d: int, asked: Mapping[str, float]) -> dict[str, Any] | None:
    eps = asked["epsilon"]
    if "k" not in asked:
        return _upper(d, eps)
    log10_k = math.log10(asked["k"])
    while 0.0 < eps < 1.0:
        found = _upper(d, eps, programs=False)
        if found["log10_k"] < log10_k:
            return found
        eps *= 1.0 - (1e-9 if eps == asked["epsilon"] else 0.01)
    return None


def _part(block: Block, copies: int) -> dict[str, Any]:
    return {
        "family": block.family,
        "name": block.name,
        "d": block.d,
        "k": hex(block.k),
        "coherence": exact_coherence(block),
        "copies": copies,
        "params": _plain(block.params),
        "theorem": CONSTRUCTIONS[block.family].theorem,
    }


def _plain(params: dict[str, Any]) -> dict[str, Any]:
    """The parameters, with the inner set of words over lines as a part of its own."""
    if "inner" not in params:
        return dict(params)
    inner = Block(**params["inner"])
    return {**params, "inner": {"family": inner.family, "d": inner.d, "k": hex(inner.k), "params": dict(inner.params)}}


def exact_coherence(block: Block) -> list[Any]:
    """The coherence of a block without rounding: the root of a fraction, but for equal angles and words over lines."""
    if "inner" in block.params:
        inner = Block(**block.params["inner"])
        return ["mixed", block.params["K"] - 1, block.params["N"], exact_coherence(inner)]
    if block.family == "polygon":
        return ["cos_pi_over", block.k]
    square = Fraction(block.coherence**2).limit_denominator(10**6 if block.coherence < 0.999 else 10**12)
    root = Fraction(block.coherence).limit_denominator(1 << 21)
    if abs(float(root) - block.coherence) <= 2e-16:
        square = root * root
    assert math.isclose(math.sqrt(square), block.coherence, rel_tol=1e-15), block
    return ["sqrt", str(square)]


def _upper(d: int, coherence: float, programs: bool = True) -> dict[str, Any]:
    """The best of the bounds that exact or interval arithmetic can repeat; `programs`: a tenth of a second more."""
    if d == 1:
        return {"log10_k": 0.0, "bound": "one"}
    if coherence == 0.0:
        return {"log10_k": math.log10(d) * (1.0 + 1e-10), "bound": "basis"}
    eps = loosened(coherence)
    candidates: list[tuple[float, str]] = []
    found = levenshtein.log_upper(d, eps)
    if found is not None:
        candidates.append((found[0], "levenshtein"))
    if (log_orthoplex := orthoplex(d, eps)) is not None:
        candidates.append((log_orthoplex, "orthoplex"))
    if d > 2 and (few := bukh_cox.most(d, eps)) is not None:
        candidates.append((math.log(few), "bukh-cox"))
    if (moved := transfer.least(d, eps)) is not None:
        candidates.append((moved[0], "caps"))
    if programs and (programmed := linear_programming.log_upper(d, eps)) is not None:
        candidates.append((programmed, "linear-programming"))
    log_k, name = min(candidates)
    proof: dict[str, Any] = {}
    if name == "linear-programming":  # of the Gegenbauer polynomials, by their degree
        proof["coefficients"] = {2 * j + 2: c for j, c in enumerate(linear_programming.coefficients(d, eps) or ()) if c}
    elif name == "caps" and moved is not None:
        proof["hundredths"] = moved[1]  # of cos(phi)
    return {"log10_k": log_k / math.log(10.0) * (1.0 + 1e-10) + 1e-10, "bound": name, "at": eps, **proof}
