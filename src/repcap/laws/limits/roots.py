"""Root finders for the inverses, one number or whole arrays (scipy.optimize would double the time a command takes)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


def bisect(
    short: Callable[[Floats], npt.NDArray[np.bool_]], low: Floats, high: Floats, steps: int = 60
) -> tuple[Floats, Floats]:
    """Halve the brackets [low, high], elementwise, `steps` times; `short(x)`: where the root lies above x."""
    for _ in range(steps):
        middle = 0.5 * (low + high)
        below = short(middle)
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return low, high


def root(f: Callable[[float], float], low: float, high: float) -> float:
    """x in [low, high] with f(x) = 0, where f(low) and f(high) differ in sign (or one is 0).

    T. R. Chandrupatla's method (1997): inverse quadratic interpolation where the three last points allow it, bisection
    elsewhere; never worse than about three times bisection, ten to fifteen calls for a smooth f. Stops when the
    bracket is a few units in the last place wide.
    """
    a, b = high, low
    fa, fb = f(a), f(b)
    if fa == 0.0 or fb == 0.0:
        return a if fa == 0.0 else b
    if (fa > 0.0) == (fb > 0.0):
        raise ValueError(f"no sign change between {low!r} and {high!r}")
    c, fc, share = a, fa, 0.5
    for _ in range(300):
        x = a + share * (b - a)
        fx = f(x)
        if (fx > 0.0) == (fa > 0.0):
            c, fc = a, fa
        else:
            c, fc, b, fb = b, fb, a, fa
        a, fa = x, fx
        best, f_best = (a, fa) if abs(fa) < abs(fb) else (b, fb)
        resolution = 2e-16 * abs(best) / abs(b - a) if a != b else 1.0
        if f_best == 0.0 or resolution > 0.25:
            return best
        share = max(resolution, min(1.0 - resolution, _next_share(a, b, c, fa, fb, fc)))
    return best


def _next_share(a: float, b: float, c: float, fa: float, fb: float, fc: float) -> float:
    """Where between a and b to look next, as a share of b - a."""
    xi, phi = (a - b) / (c - b), (fa - fb) / (fc - fb)
    if phi**2 < xi and (1.0 - phi) ** 2 < 1.0 - xi:
        return fa / (fb - fa) * fc / (fb - fc) + (c - a) / (b - a) * fa / (fc - fa) * fb / (fc - fb)
    return 0.5
