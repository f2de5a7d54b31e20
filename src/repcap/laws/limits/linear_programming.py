"""Delsarte's linear programming bound on lines, found in floating point and made a proof by a margin.

With c_j >= 0, f(t) = 1 + sum_j c_j P_2j(t), P the Gegenbauer polynomials with P(1) = 1 in dimension d, and f <= m < 1
for |t| <= eps, the sum of f - m over all pairs of k lines gives k <= (f(1) - m) / (1 - m). (P. Delsarte,
J. M. Goethals, J. J. Seidel, Geometriae Dedicata 6, 1977.) Levenshtein's polynomial is one such f; above eps = 0.45
others are better.

The coefficients come from linear programs on points of [0, eps], to which the maxima of f found so far are added, each
a correction of the last one on a finer scale (A. Gleixner, D. Steffy, K. Wolter, INFORMS J. Computing 28, 2016), until
f is below half of the margin. `tools/check_certificate.py` proves f <= m in exact arithmetic.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from scipy.optimize import linprog

from repcap.domain import Array
from repcap.laws.limits import levenshtein

NAME = "linear programming (Delsarte)"
LEAST, MOST_DEGREE, MOST_K = 0.45, 18, 1e13
"""Below this epsilon nothing is gained; beyond this degree of Levenshtein's bound, or this many lines, float64 does not
carry the programs. What is left out is at larger d and epsilon, so that the limit never falls."""
MORE = 5
"""Coefficients beyond those of Levenshtein's degree: with more of them the bound falls by less than 1 %."""
MARGIN = 2.0**-20
"""m; it adds a millionth to k."""
_ROUNDS, _FINER = 14, (30.0, 10.0, 100.0)
"""How much finer each correction is; another one is tried where the first leads nowhere."""


def _even(d: int, count: int, t: Array) -> Array:
    """P_2, P_4 ... at t, (count, len(t))."""
    rows, before, now = [], np.ones_like(t), t
    for n in range(1, 2 * count):
        before, now = now, ((2 * n + d - 2) * t * now - n * before) / (n + d - 2)
        if n % 2:
            rows.append(now)
    return np.array(rows)


@lru_cache(maxsize=256)
def coefficients(d: int, eps: float) -> tuple[float, ...] | None:
    """c_1, c_2 ... of a polynomial that proves the bound; None where none is looked for, or found.

    Time: a tenth of a second.
    """
    found = levenshtein.log_upper(d, eps, most=MOST_DEGREE) if eps >= LEAST and d >= 3 else None
    if found is None or found[0] > math.log(MOST_K):
        return None
    tried = (_solved(d, eps, found[1] + MORE, finer) for finer in _FINER)
    return next((one for one in tried if one is not None), None)


def _solved(d: int, eps: float, count: int, factor: float) -> tuple[float, ...] | None:
    grid = eps * np.sin(np.linspace(0.0, 0.5 * math.pi, 40 * count))
    on_grid = _even(d, count, grid)
    scale = 1.0 / np.abs(on_grid).max(axis=1)
    points, chosen = np.append(grid[::10], eps), np.zeros(count)
    for finer in factor ** np.arange(_ROUNDS):
        rows = (_even(d, count, points) * scale[:, None]).T
        step = linprog(
            scale / scale[count // 2],
            A_ub=rows,
            b_ub=np.minimum(-(1.0 + rows @ chosen) * finer, 1e9),  # what is far below 0 stays there
            bounds=[(low, None) for low in (-chosen * finer).tolist()],
            method="highs-ds",
            options={"primal_feasibility_tolerance": 1e-9, "dual_feasibility_tolerance": 1e-9},
        )
        if step.status != 0:
            return None
        chosen = np.maximum(chosen + step.x / finer, 0.0)
        peaks = _peaks(d, grid, on_grid, chosen * scale)
        if float(np.max(1.0 + _even(d, count, peaks).T @ (chosen * scale))) <= 0.5 * MARGIN:
            return tuple((chosen * scale).tolist())
        points = np.union1d(points, peaks)
    return None


def _peaks(d: int, grid: Array, on_grid: Array, c: Array) -> Array:
    """Where f has its maxima in [0, eps], and its ends: a parabola through three neighbours, closer each time."""
    values = 1.0 + on_grid.T @ c
    at = np.flatnonzero((values[1:-1] >= values[:-2]) & (values[1:-1] >= values[2:])) + 1
    peaks, width = grid[at], grid[1]
    for _ in range(4):
        low, high = np.maximum(peaks - width, 0.0), np.minimum(peaks + width, grid[-1])
        middle = 0.5 * (low + high)
        left, top, right = (1.0 + _even(d, len(c), t).T @ c for t in (low, middle, high))
        bend = left - 2.0 * top + right
        shift = np.where(bend < 0.0, 0.25 * (left - right) / np.where(bend < 0.0, bend, 1.0), 0.0)
        peaks = np.clip(middle + shift * (high - low), low, high)
        width *= 0.1
    return np.concatenate([peaks, [0.0, grid[-1]]])


def log_upper(d: int, eps: float) -> float | None:
    """ln of the bound on the lines in R^d with coherence <= eps; None where `coefficients` is."""
    found = coefficients(d, eps)
    return None if found is None else math.log((1.0 - MARGIN + math.fsum(found)) / (1.0 - MARGIN))
