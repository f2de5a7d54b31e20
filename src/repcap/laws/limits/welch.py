"""Welch's bounds on the coherence of lines (L. R. Welch, IEEE Transactions on Information Theory 20, 1974).

For every order t, with A_t = prod_{i<t} (2i+1)/(d+2i) the mean of cos^{2t} between random directions:
eps^{2t} >= (k A_t - 1) / (k - 1), that is k <= (1 - eps^{2t}) / (A_t - eps^{2t}) where eps^{2t} < A_t.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from repcap.domain import check_eps, check_log_k, scalar_d
from repcap.errors import DomainError


def _log_moment(d: int, order: int) -> float:
    """ln A_t; a sum of logarithms, so that no digits are lost at large d. Time O(order)."""
    if order < 1:
        raise DomainError(f"Welch's bound of order {order}: the order must be at least 1")
    i = np.arange(order, dtype=np.float64)
    return float(np.log((2.0 * i + 1.0) / (d + 2.0 * i)).sum())


def log_upper(d: int, eps: float, order: int = 1) -> float:
    """ln of Welch's upper bound on the number of lines in R^d with coherence <= eps; inf where it says nothing.

    Raises
    ------
    DomainError
        if d is not a whole number >= 1, eps is not in (0, 1) or order < 1.
    """
    dims, given = scalar_d(d), float(check_eps(eps))
    log_moment, log_power = _log_moment(dims, order), 2.0 * order * math.log(given)
    if log_power >= log_moment:
        return math.inf
    return math.log1p(-math.exp(log_power)) - log_moment - math.log1p(-math.exp(log_power - log_moment))


def coherence(k: float | None, d: int, order: int = 1, *, log_k: float | None = None) -> float:
    """Welch's lower bound on the coherence of k lines in R^d; 0 where it says nothing.

    Of order 1 and from k itself it is (k - d) / (d (k - 1)) under the root: the logarithms would lose the digits of
    k - d for a k just above d, five of them at d = 4096. From `log_k` it is taken off what their rounding may add.

    Raises
    ------
    DomainError
        if k <= 1, d is not a whole number >= 1 or order < 1.
    """
    dims, target = scalar_d(d), float(check_log_k(k, log_k))
    if order == 1 and k is not None:
        exact = Fraction(k if isinstance(k, float) else int(k))  # integers beyond float64 divide exactly
        return math.sqrt((exact - dims) / (dims * (exact - 1))) if exact > dims else 0.0
    log_moment = _log_moment(dims, order)
    gain = target + log_moment - 4e-16 * (target - log_moment)  # ln(k A_t)
    if gain <= 0.0:
        return 0.0
    # (k A - 1) / (k - 1) = A (1 - 1/(kA)) / (1 - 1/k)
    log_power = gain - target + math.log(-math.expm1(-gain)) - math.log(-math.expm1(-target))
    return math.exp(min(log_power, 0.0) / (2.0 * order))
