"""Claims of others about how many directions fit, against the bracket. Each says whether it is quoted or second hand.

Nothing here was fitted: a claim about k at (d, angle) is set beside what is proven to exist and what is proven to be
impossible at that (d, angle).
"""

from __future__ import annotations

import math

from repcap.bracket.interval import bracket
from repcap.constructions.best import best_coherence
from repcap.laws.limits.bounds import coherence_lower_bound
from repcap.numerics import format_power
from repcap.verbs.reproduce.claims import Claim, Status, between

GROUP = "Claims of others"
SECOND_HAND = "second hand: known here from what others say of it, not from the source itself"
YODER = "N. Yoder, Beyond orthogonality, 2025"
LIU = "Y. Liu, Z. Liu, J. Gore, arXiv 2505.10465"
ADLER = "M. Adler, N. Shavit, arXiv 2409.15318"
ANGLES = (89, 88, 87, 85)
WIDTH = 12288
CROWD = (10_000, 100)
REPORTED, REACHED = 76.5, 77.90
"""Degrees between any two of 10,000 vectors in R^100: as reported, and by `repcap pack` (docs/packing.md)."""


def claims() -> list[Claim]:
    """The claims, worst first seen."""
    return [*(_power_of_angle(angle) for angle in ANGLES), _crowd(), _overlaps(), _computed()]


def _angle(coherence: float) -> float:
    return math.degrees(math.acos(coherence))


def _power_of_angle(angle: int) -> Claim:
    """k about 10^(d F^2 / 1500), F the degrees that two vectors may be away from 90."""
    claimed = WIDTH * (90 - angle) ** 2 / 1500
    found = bracket(WIDTH, math.cos(math.radians(angle)))
    low, high = found.proven[0], found.upper.log10_k
    status: Status = "contradicted" if claimed > high or claimed < low else "unsupported"
    said = "above the proven maximum" if claimed > high else "below a set that exists" if claimed < low else "possible"
    return Claim(
        key=f"others.yoder.{angle}",
        group=GROUP,
        title=f"10^(d F²/1500): {angle}°, {WIDTH}",
        published=format_power(claimed),
        recomputed=said,
        corrected=between(low, high),
        status=status,
        values={"log10_claimed": claimed, "bracket": found.to_dict(), "source": YODER, "quoted": SECOND_HAND},
        note=f"{YODER}; {SECOND_HAND}. F = {90 - angle}. Best explicit set: {found.explicit.name}, "
        f"{format_power(found.explicit.log10_k)}.",
    )


def _crowd() -> Claim:
    k, d = CROWD
    limit, explicit = _angle(coherence_lower_bound(k, d).value), best_coherence(k, d)
    return Claim(
        key="others.crowd",
        group=GROUP,
        title=f"{k:,} vectors in R^{d}",
        published=f"{REPORTED:g}°",
        recomputed=f"{REACHED:.1f}° packed",
        corrected=f"at most {limit:.2f}°",
        status="added",
        values={
            "reported": REPORTED, "packed": REACHED, "explicit": _angle(explicit.coherence), "limit": limit,
            "source": YODER, "quoted": SECOND_HAND,
        },
        note=f"{YODER}; {SECOND_HAND}. repcap pack {k} {d} --no-constructions reaches {REACHED:.2f}° in seconds; "
        f"the best explicit set has {_angle(explicit.coherence):.2f}°.",
    )  # fmt: skip


def _overlaps() -> Claim:
    return Claim(
        key="others.overlaps",
        group=GROUP,
        title="squared overlaps go as 1/m",
        published="d E[cos²] = 1",
        recomputed="1 if random",
        corrected="124 SmolLM2, 2.31 GloVe",
        status="unsupported",
        values={"random": 1.0, "SmolLM2-135M": 124.0, "GloVe 6B 50d": 2.31, "source": LIU, "quoted": SECOND_HAND},
        note=f"{LIU}; {SECOND_HAND}. d E[cos²] over all pairs of rows is 1 for random directions; 124 for the "
        "embedding of SmolLM2-135M as stored and 2.31 for GloVe (6B, 50d). `repcap measure` prints E[cos²] as "
        "1 / effective_dim.",
    )


def _computed() -> Claim:
    d, eps = 4096, 0.0645
    found = bracket(d, eps)
    computed = 2.0 * math.log10(d) - math.log10(math.log2(d))
    return Claim(
        key="others.computed",
        group=GROUP,
        title="features that n neurons compute",
        published="O(n²/log n)",
        recomputed=f"{format_power(computed)}, n = {d}",
        corrected=f"stored: {between(found.proven[0], found.upper.log10_k)}",
        status="added",
        values={"log10_computed": computed, "bracket": found.to_dict(), "source": ADLER, "quoted": SECOND_HAND},
        note=f"{ADLER}; {SECOND_HAND}. How many directions fit says how many features can be stored, not how many can "
        f"be computed: at n = d = {d} the two differ by orders of magnitude (constant taken as 1, epsilon = {eps}).",
    )
