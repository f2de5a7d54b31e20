"""Levenshtein's bound on lines in R^d (V. I. Levenshtein, 1983; Handbook of Coding Theory, 1998, chapter 6).

It is the best that linear programming with polynomials of its degree gives, and is met by every set of lines known to
be optimal for a structural reason. With Gegenbauer polynomials normalised to P_n(1) = 1 in dimension D,

    P_0 = 1,  P_1 = x,  (n + D - 2) P_{n+1} = (2n + D - 2) x P_n - n P_{n-1},

take P with D = d and G with D = d + 2, both at eps, and N = the first n >= 2 with G_n(eps) <= 0. Then

    k <= C(d+N-3, N-2) (1 - G_{N-2} / P_N)        with P_N < 0 < G_{N-2}.

N = 2 is Welch's first bound.
"""

from __future__ import annotations

import math

from repcap.laws.limits.roots import root

MOST_DEGREE = 300_000
"""Beyond it the bound is not computed."""

_SHRUNK = 1e-200
"""Both recurrences are rescaled below this, so that no degree underflows."""


def log_binomial(top: int, bottom: int) -> float:
    """ln C(top, bottom): a sum for few factors, which keeps digits at large d, lgamma for many."""
    few = min(bottom, top - bottom)
    if few <= 200:
        return math.fsum(math.log((top - i) / (i + 1)) for i in range(few))
    return math.lgamma(top + 1) - math.lgamma(bottom + 1) - math.lgamma(top - bottom + 1)


def log_upper(d: int, eps: float, most: int = MOST_DEGREE) -> tuple[float, int] | None:
    """(ln of the bound on the number of lines in R^d with coherence <= eps, the degree N); d >= 2, 0 < eps < 1.

    None where N would pass `most`. Time O(N), about half a microsecond a degree; N is near
    (d/2) (1/sqrt(1 - eps^2) - 1) for large d.
    """
    if eps * eps * (d + 2.0) <= 1.0:
        return math.log(d) + math.log1p(-eps * eps) - math.log1p(-d * eps * eps), 2
    p_old, p = 1.0, eps
    g_before, g_old, g = 1.0, 1.0, eps
    log_p = log_g = log_g_before = 0.0  # logarithms of what was taken out of p and p_old, g and g_old, g_before
    n = 1
    while g > 0.0:
        if n >= most:
            return None
        p_old, p = p, ((2 * n + d - 2) * eps * p - n * p_old) / (n + d - 2)
        g_before, log_g_before = g_old, log_g
        g_old, g = g, ((2 * n + d) * eps * g - n * g_old) / (n + d)
        n += 1
        if abs(p) + abs(p_old) < _SHRUNK:
            p, p_old, log_p = p / _SHRUNK, p_old / _SHRUNK, log_p + math.log(_SHRUNK)
        if g_old < _SHRUNK:
            g, g_old, log_g = g / _SHRUNK, g_old / _SHRUNK, log_g + math.log(_SHRUNK)
    log_ratio = math.log(g_before) + log_g_before - math.log(-p) - log_p
    larger, smaller = max(log_ratio, 0.0), min(log_ratio, 0.0)
    return log_binomial(d + n - 3, n - 2) + larger + math.log1p(math.exp(smaller - larger)), n


def degree(d: int, log_k: float, most: int = 20_000) -> int | None:
    """The degree N of the bound on the coherence of e^log_k > d lines in R^d; None where it would pass `most`.

    Piece N of the bound ends at exactly C(d+N-1, N) lines.
    """
    if log_binomial(d + most - 1, most) < log_k:
        return None
    low, high = 1, most
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if log_binomial(d + middle - 1, middle) >= log_k else (middle, high)
    return max(high, 2)


def coherence(d: int, log_k: float) -> tuple[float, int] | None:
    """(least eps at which the bound allows e^log_k > d lines in R^d, its degree); d >= 2. None where `degree` is."""
    piece = degree(d, log_k)
    if piece is None:
        return None

    def gap(t: float) -> float:  # eps = 1 - exp(-t), which keeps the digits of 1 - eps for very many lines
        found = log_upper(d, -math.expm1(-t), most=piece + 2)
        return 1e300 if found is None else found[0] - log_k

    high = 0.5
    while gap(high) < 0.0:
        high *= 2.0
    return -math.expm1(-root(gap, 0.0, high)), piece
