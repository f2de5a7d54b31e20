"""The transfer of Kabatiansky and Levenshtein (1978): from lines at a small angle to points of a cap at a larger one.

k lines at angles >= theta are 2k points of the sphere. A cap of radius rho <= theta holds 2k mu(rho) of them on
average. Seen from its centre, two of those lie at an angle >= phi, sin(phi/2) sin(rho) = sin(theta/2), in R^(d-1):

    k P(d, cos rho) <= A(d - 1, phi)        P = 2 mu, and A at most Levenshtein's bound for points on the sphere.

(The angle seen is least where both lie on the rim, as long as rho <= theta, that is 2 sin(phi/2) cos(theta/2) >= 1.)
Each phi of a fixed list gives a bound that rises with epsilon; where rho would pass theta, the bound at the next larger
epsilon stands, which is one for the smaller, too.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from repcap.domain import Array
from repcap.laws.limits.existence import log_cap
from repcap.laws.limits.levenshtein import log_binomial
from repcap.laws.limits.roots import root

LEAST, MOST_D = 0.45, 20_000
"""Below this epsilon nothing is gained; beyond these dimensions the degrees are too high to compute in milliseconds."""
NAME = "Levenshtein in caps (Kabatiansky-Levenshtein)"

COSINES = np.arange(51) / 100.0
"""cos(phi), from 90 to 60 degrees."""

_SHRUNK = 1e-200


def log_points(n: int, s: float) -> float:
    """ln of Levenshtein's bound on points of the sphere in R^n, n >= 3, with cosines at most s, 0 <= s < 1.

    P in dimension n, G in n + 2; j the first with G_j(s) <= 0. Degree 2j - 1 where P_j < P_{j+1}, else 2j. Time O(j).
    """
    p_old, p, g_old, g, j = 1.0, s, 1.0, s, 1
    while g > 0.0:
        p_old, p = p, ((2 * j + n - 2) * s * p - j * p_old) / (j + n - 2)
        g_old, g = g, ((2 * j + n) * s * g - j * g_old) / (j + n)
        j += 1
        if abs(p) + abs(p_old) < _SHRUNK:
            p, p_old = p / _SHRUNK, p_old / _SHRUNK
        if abs(g) + abs(g_old) < _SHRUNK:
            g, g_old = g / _SHRUNK, g_old / _SHRUNK
    after = ((2 * j + n - 2) * s * p - j * p_old) / (j + n - 2)  # P_{j+1}; p is P_j, p_old P_{j-1}
    if p < after:
        factor = (2 * j + n - 3) / (n - 1) - (p_old - p) / ((1.0 - s) * p)
        return log_binomial(j + n - 3, j - 1) + math.log(factor)
    factor = (2 * j + n - 1) / (n - 1) - (1.0 + s) * (p - after) / ((1.0 - s) * (p + after))
    return log_binomial(j + n - 2, j) + math.log(factor)


@lru_cache(maxsize=64)
def _points(d: int) -> Array:
    """ln A(d - 1, phi) for every phi of the list."""
    return np.array([log_points(d - 1, float(s)) for s in COSINES])


def log_upper(d: int, eps: float) -> float | None:
    """ln of the bound on lines in R^d with coherence <= eps; None below 0.45 and beyond 20000 dimensions."""
    found = least(d, eps)
    return None if found is None else found[0]


def least(d: int, eps: float) -> tuple[float, int] | None:
    """(`log_upper`, place in `COSINES` of the cosine of phi that gives it).

    Time: milliseconds a dimension, cached; then about a tenth of a millisecond.
    """
    if eps < LEAST or not 4 <= d <= MOST_D:
        return None
    squares = 0.5 * (1.0 - COSINES)  # sin^2(phi/2)
    # rho <= theta: cos^2(theta/2) = (1 + eps)/2 >= 1 / (4 sin^2(phi/2)).
    rest = np.minimum(1.0 - eps, 2.0 - 0.5 / squares)  # 1 - cos(theta), of the epsilon at which the bound is taken
    usable = rest > 1e-12
    if not usable.any():  # epsilon is within rounding of 1
        return None
    sine = 0.5 * rest[usable] / squares[usable]  # sin^2(rho)
    caps = np.asarray(log_cap(float(d), np.sqrt(np.maximum(1.0 - sine, 1e-24))))
    bounds = _points(d)[usable] - caps
    return float(np.min(bounds)), int(np.flatnonzero(usable)[np.argmin(bounds)])


def coherence(d: int, log_k: float) -> float | None:
    """The least coherence >= 0.45 of e^log_k lines in R^d by this bound; None where it allows them at 0.45 already."""
    low, high = LEAST, 1.0 - 1e-9
    first, last = log_upper(d, low), log_upper(d, high)
    if first is None or last is None or first >= log_k:
        return None
    if last <= log_k:
        return high
    return root(lambda eps: (log_upper(d, eps) or 0.0) - log_k, low, high)
