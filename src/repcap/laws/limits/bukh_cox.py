"""The bound of B. Bukh and C. Cox on few more lines than dimensions (arXiv 1803.02949), for real lines.

The Gram matrix of k = d + e lines has a kernel of e dimensions at least. With v_i in R^e its rows in an orthonormal
basis, sum |v_i|^2 = e, and G v = 0 gives e <= eps (sum_ij |<v_i, v_j>| - e). They bound the mean of |<x, y>| under an
isotropic distribution on R^e, which gives sum_ij |<v_i, v_j>| <= k (2 + (e - 1) sqrt(e + 2)) / (e + 1). Hence

    eps >= e (e + 1) / (k (2 + (e - 1) sqrt(e + 2)) - e (e + 1)),

with equality where e(e+1)/2 equiangular lines exist in R^e: 1/sqrt(5) at (6, 3), 1/9 at (28, 21).
"""

from __future__ import annotations

import math


def few(d: int) -> int:
    """The largest e for which the bound is used: up to here it rises with e, and beyond other bounds are better."""
    return 3 if d == 3 else int(1.5 * math.sqrt(d)) + 1


def coherence(d: int, e: int) -> float:
    """The least coherence of d + e lines in R^d, by this bound, d >= 3; what holds for fewer lines holds for more."""
    e = min(e, few(d))
    if e < 1:
        return 0.0
    return e * (e + 1) / ((d + e) * (2.0 + (e - 1) * math.sqrt(e + 2.0)) - e * (e + 1))


def most(d: int, eps: float) -> int | None:
    """The most lines in R^d with coherence <= eps, d >= 3; None where this bound says nothing. Time O(log d)."""
    low, high = 0, few(d)
    if coherence(d, high) <= eps:
        return None
    while high - low > 1:  # d + low lines are allowed, d + high are not
        middle = (low + high) // 2
        low, high = (middle, high) if coherence(d, middle) <= eps else (low, middle)
    return d + low
