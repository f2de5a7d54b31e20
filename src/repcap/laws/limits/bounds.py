"""Proven limits on lines in R^d: no more than `upper_bound` lines at a coherence, no less coherence than
`coherence_lower_bound` for k lines. The best of Welch (`welch.py`), Rankin's orthoplex, Bukh and Cox (`bukh_cox.py`),
Levenshtein (`levenshtein.py`), its transfer to caps (`transfer.py`), the volume of caps, and what is exact in one and
two dimensions. A number of lines is a whole number: the bound on it is rounded down.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from repcap.domain import check_eps, check_log_k, loosened, scalar_d
from repcap.laws.limits import bukh_cox, levenshtein, transfer, welch
from repcap.laws.limits.existence import gilbert_varshamov_coherence, log_half_cap
from repcap.laws.limits.plane import lines_in_plane
from repcap.numerics import LN10

TIE = 1e-12
"""Slack on ln k, to tell k = d and k = d(d+1)/2 from one more. It only ever weakens a bound."""

ROUNDING = 2e-15
"""Relative; taken off a lower bound on coherence and off the ln k that it is found from, added to an upper bound on
log10 k, so that a set that attains a bound never passes it by rounding."""


WHOLE = math.log(1e9)
"""Up to this ln k a bound is rounded down to a whole number ..."""
FLOOR_SLACK = 1e-11
"""... after this relative slack, so that a set that attains a bound is never cut off."""


@dataclasses.dataclass(frozen=True)
class Bound:
    """At most 10^log10_k lines, proven by `name`."""

    log10_k: float
    name: str

    def to_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)


@dataclasses.dataclass(frozen=True)
class CoherenceBound:
    """Coherence at least `value`, proven by `name`."""

    value: float
    name: str

    def to_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)


def orthoplex(d: int, eps: float) -> float | None:
    """ln of Rankin's bound: d(d+1)/2 lines where eps < 1/sqrt(d), None elsewhere.

    (The projections minus their mean are k unit vectors in R^{d(d+1)/2 - 1} with no positive inner product, of which
    there are at most twice the dimension; with all of them negative at most the dimension plus one.)
    """
    return math.log(d) + math.log1p(d) - math.log(2.0) if eps < 1.0 / math.sqrt(d) else None


def volume(d: int, eps: float) -> float:
    """ln of the bound by volume: double caps of half the least angle around the lines do not overlap.

    Weaker than Levenshtein's, but its cost does not grow with d or eps; it stands in where the degree is too high.
    """
    return -log_half_cap(d, eps)


def _volume_coherence(d: int, log_k: float) -> float:
    half_angle = gilbert_varshamov_coherence(None, d, log_k=log_k)  # the cap of measure 1/k
    return max(0.0, 2.0 * half_angle**2 - 1.0)


def _bukh_cox(k: float | None, d: int, log_k: float) -> float:
    """The bound for the whole lines beyond d, as far as k is known; the last digits of a logarithm are not believed."""
    if log_k > math.log(d) + 1.0:
        return bukh_cox.coherence(d, bukh_cox.few(d)) if d > 2 else 0.0
    lines = math.floor(k) if k is not None else math.floor(math.exp(log_k) * (1.0 - 1e-12))
    return bukh_cox.coherence(d, lines - d)


def _levenshtein_name(degree: int) -> str:
    return "Welch (order 1)" if degree == 2 else f"Levenshtein (degree {degree})"


def upper_bound(d: int, eps: float) -> Bound:
    """The least proven upper bound on the number of lines in R^d with coherence at most eps.

    eps counts with a relative slack of 1e-12 (`domain.loosened`), the same that explicit sets are admitted with.
    Time O(N), N the degree of Levenshtein's polynomial: about 400 at d = 16384, eps = 0.3. Degrees above 300000
    (a fifth of a second; eps > 0.8 at d = 10^6) are not computed: there the bound is by volume.

    Raises
    ------
    DomainError
        if d is not a whole number >= 1 or eps is not in (0, 1).
    """
    dims, given = scalar_d(d), float(check_eps(eps))
    if dims == 1:
        return Bound(0.0, "a line has one direction (exact, d = 1)")
    if dims == 2:
        return Bound(math.log10(lines_in_plane(given)), "equal angles in the plane (exact, d = 2)")
    given = loosened(given)
    candidates = [(volume(dims, given), "volume of caps")]
    found = levenshtein.log_upper(dims, given)
    if found is not None:
        candidates.append((found[0], _levenshtein_name(found[1])))
    log_orthoplex = orthoplex(dims, given)
    if log_orthoplex is not None:
        candidates.append((log_orthoplex, "orthoplex (Rankin)"))
    if (moved := transfer.log_upper(dims, given)) is not None:
        candidates.append((moved, transfer.NAME))
    if (few := bukh_cox.most(dims, given)) is not None:
        candidates.append((math.log(few), "Bukh-Cox"))
    best = min(candidates, key=lambda candidate: candidate[0])
    return Bound(whole(best[0]), best[1])


def whole(log_k: float) -> float:
    """log10 of the whole number of lines that e^log_k allows; as it is where its units are beyond the digits."""
    if log_k > WHOLE:
        return log_k / LN10 * (1.0 + ROUNDING)
    return math.log10(math.floor(math.exp(log_k) * (1.0 + FLOOR_SLACK)))


def coherence_lower_bound(k: float | None, d: int, *, log_k: float | None = None) -> CoherenceBound:
    """The greatest proven lower bound on the coherence of k lines in R^d; 0 for k <= d.

    Time O(15 N), N the degree of Levenshtein's polynomial at the answer, up to 20000; beyond, the bound is by volume.

    Raises
    ------
    DomainError
        if k <= 1 or d is not a whole number >= 1.
    """
    dims, target = scalar_d(d), float(check_log_k(k, log_k))
    if target <= math.log(dims) + TIE:
        return CoherenceBound(0.0, "orthonormal basis (exact)")
    if dims == 1:
        return CoherenceBound(1.0, "a line has one direction (exact, d = 1)")
    if dims == 2:
        value = math.cos(math.pi * math.exp(-target)) * (1.0 - ROUNDING)
        return CoherenceBound(value, "equal angles in the plane (exact, d = 2)")
    target *= 1.0 - ROUNDING  # what holds for fewer lines holds for more
    candidates = [(_volume_coherence(dims, target), "volume of caps")]
    if (few := _bukh_cox(k, dims, target)) > 0.0:
        candidates.append((few, "Bukh-Cox"))
    if (moved := transfer.coherence(dims, target)) is not None:
        candidates.append((moved, transfer.NAME))
    if (found := levenshtein.coherence(dims, target)) is not None:
        value, degree = found
        closed = welch.coherence(k, dims, log_k=log_k) if degree == 2 else value
        candidates.append((closed, _levenshtein_name(degree)))
    if target > math.log(dims) + math.log1p(dims) - math.log(2.0) + TIE:
        candidates.append((1.0 / math.sqrt(dims), "orthoplex (Rankin)"))
    value, name = max(candidates)
    return CoherenceBound(value * (1.0 - ROUNDING), name)
