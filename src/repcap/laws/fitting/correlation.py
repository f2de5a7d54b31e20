"""Does one quantity go with another? Spearman's rank correlation, and the slope on log-log axes.

Used for the trend of epsilon with the width of models: by `repcap reproduce`, and by surveys.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special

from repcap.errors import InputError


@dataclasses.dataclass(frozen=True)
class Spearman:
    """Rank correlation of n pairs; `p` is two-sided, against independence."""

    rho: float
    p: float
    n: int
    method: str
    """How p was found: `t` (Student's approximation) or `permutation`."""

    def to_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)


@dataclasses.dataclass(frozen=True)
class PowerLaw:
    """y = exp(intercept) x^slope by least squares on the logarithms, with a confidence interval of the slope."""

    slope: float
    low: float
    high: float
    intercept: float
    standard_error: float
    r2: float
    n: int
    confidence: float

    def to_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)


def _pair(x: npt.ArrayLike, y: npt.ArrayLike, least: int) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    a, b = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if a.ndim != 1 or a.shape != b.shape:
        raise InputError(f"a trend needs two lists of one length, got shapes {a.shape} and {b.shape}")
    if not (np.isfinite(a).all() and np.isfinite(b).all()):
        raise InputError("a trend needs finite numbers: leave out the rows with NaN or infinity")
    if a.size < least:
        raise InputError(f"a trend needs at least {least} pairs, got {a.size}")
    if a.min() == a.max() or b.min() == b.max():
        raise InputError("a trend needs values that differ: one of the two lists is constant")
    return a, b


def _ranks(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """1 for the least; equal values get the mean of their ranks."""
    _, group, size = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(size)
    return np.asarray((last - 0.5 * (size - 1.0))[group])


def spearman(x: npt.ArrayLike, y: npt.ArrayLike, *, permutations: int = 0, seed: int = 0) -> Spearman:
    """Spearman's rank correlation of x and y, shape (n,) each, ties given their mean rank.

    p is Student's approximation with n - 2 degrees of freedom, which is what most software prints; with
    `permutations` > 0 it is the share of random re-orderings of y whose |rho| is at least as large, counting the
    observed one (so it is never 0), O(permutations n). Prefer that below about 15 pairs.

    Raises
    ------
    InputError
        fewer than 3 pairs, unequal lengths, numbers that are not finite, or a constant list.
    """
    a, b = _pair(x, y, 3)
    ranks_a, ranks_b = (_ranks(values) - (values.size + 1) / 2 for values in (a, b))
    norm = math.sqrt(float(ranks_a @ ranks_a) * float(ranks_b @ ranks_b))
    rho = min(1.0, max(-1.0, float(ranks_a @ ranks_b) / norm))
    if permutations > 0:
        rng = np.random.default_rng(seed)
        # 1e-12: equal sums in another order must count as equal.
        beyond = sum(
            abs(float(ranks_a @ rng.permutation(ranks_b))) / norm >= abs(rho) - 1e-12 for _ in range(permutations)
        )
        return Spearman(rho, (beyond + 1) / (permutations + 1), a.size, "permutation")
    freedom = a.size - 2
    if abs(rho) == 1.0:
        return Spearman(rho, 0.0, a.size, "t")
    t = rho * math.sqrt(freedom / (1.0 - rho * rho))
    return Spearman(rho, float(2.0 * special.stdtr(freedom, -abs(t))), a.size, "t")


def power_law(x: npt.ArrayLike, y: npt.ArrayLike, *, confidence: float = 0.95) -> PowerLaw:
    """The exponent s of y ~ x^s: ordinary least squares of ln y on ln x, with Student's interval for s.

    The interval supposes independent errors of one size on ln y.

    Raises
    ------
    InputError
        fewer than 3 pairs, numbers that are not positive and finite, or a constant x.
    """
    a, b = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if not 0.0 < confidence < 1.0:
        raise InputError(f"confidence = {confidence} must lie between 0 and 1")
    if a.size and b.size and (a.min() <= 0.0 or b.min() <= 0.0):
        raise InputError("a power law needs positive numbers: leave out the rows that are zero or negative")
    u, v = _pair(np.log(a), np.log(b), 3)
    centred = u - u.mean()
    spread = float(centred @ centred)
    slope = float(centred @ v) / spread
    intercept = float(v.mean() - slope * u.mean())
    residual = v - intercept - slope * u
    total = float(np.sum((v - v.mean()) ** 2))
    error = math.sqrt(float(residual @ residual) / (u.size - 2) / spread)
    reach = float(special.stdtrit(u.size - 2, 0.5 + confidence / 2.0)) * error
    fit = 1.0 - float(residual @ residual) / total
    return PowerLaw(slope, slope - reach, slope + reach, intercept, error, fit, u.size, confidence)
