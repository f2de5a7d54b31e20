"""Lines in the plane, where everything is known: k of them at equal angles have coherence cos(pi/k), the optimum."""

from __future__ import annotations

import math

from repcap.domain import check_eps

ROUNDING = 2.0**-54
"""Half the distance of floats just below 1: what rounding can have taken from the eps of a set that attains it."""


def lines_in_plane(eps: float) -> int:
    """The most lines in R^2 with coherence at most eps: the largest k with cos(pi/k) <= eps, 2 at least.

    Decided by 1 - eps, which is exact where k is large: a relative slack of 1e-12 on eps would make 70 million lines of
    the 2.2 million at eps = 1 - 1e-12.

    Raises
    ------
    DomainError
        if eps is not in (0, 1).
    """
    rest = 1.0 - float(check_eps(eps)) - ROUNDING  # 1 - cos(pi/k) = 2 sin^2(pi/2k) must be at least this
    return max(2, int(math.pi / (2.0 * math.asin(math.sqrt(0.5 * rest))) * (1.0 + 1e-15)))
