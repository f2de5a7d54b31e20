"""A law of two parameters for optimised packings, from Welch's bound and a power of the excess k/d - 1.

    eps^2 = (1/d) (1 - d/k) (1 + a (k/d - 1))^b

The first two factors are Welch's bound of order one for k >> 1, so the law meets it as k -> d. The defaults describe a
local optimiser at a fixed budget (400 steps), not the true least coherence: 42 cells, d in {16, 32, 64, 128}, k/d from
2 to 60, of which those with d >= 64 fit to 0.24 %. About 19 forms were tried, so that figure is a best of 19.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from repcap.errors import DomainError

A, B = 0.422, 0.415
VALID = {"d": (64.0, 128.0), "k_over_d": (2.0, 60.0)}
"""Range of the cells behind the defaults. Outside it the law is an extrapolation."""


def epsilon(k: npt.ArrayLike, d: npt.ArrayLike, a: float = A, b: float = B) -> npt.NDArray[np.float64]:
    """Coherence of k optimised vectors in dimension d; k and d broadcast, float64 out.

    Raises
    ------
    DomainError
        where k <= d (an orthonormal set has coherence 0; the law says nothing), d < 1, or a < 0.
    """
    k, d = np.broadcast_arrays(np.asarray(k, dtype=np.float64), np.asarray(d, dtype=np.float64))
    if not (d >= 1.0).all():
        raise DomainError(f"d = {float(d[~(d >= 1.0)].flat[0]):g} must be at least 1")
    if not (k > d).all():
        worst = np.flatnonzero(~(k > d).ravel())[0]
        raise DomainError(f"k = {float(k.flat[worst]):g} must be larger than d = {float(d.flat[worst]):g}")
    if not a >= 0.0:
        raise DomainError(f"a = {a:g} must be 0 or more")
    return np.asarray(np.sqrt((1.0 / d) * (1.0 - d / k)) * (1.0 + a * (k / d - 1.0)) ** (b / 2.0))


def log_k(d: float, eps: float, a: float = A, b: float = B) -> float:
    """ln k at which the law reaches `eps` in dimension d, by a bracketing root finder in ln(k/d).

    Raises
    ------
    DomainError
        eps outside (0, 1), d < 1, or parameters under which the law does not reach eps (b <= 0).
    """
    from scipy.optimize import brentq

    if not 0.0 < eps < 1.0:
        raise DomainError(f"eps = {eps:g} must lie between 0 and 1")
    if not d >= 1.0:
        raise DomainError(f"d = {d:g} must be at least 1")

    def excess(t: float) -> float:
        """2 ln of law(k)/eps at k/d = 1 + e^t, without forming k."""
        log_ratio = float(np.logaddexp(0.0, t))
        return float(-np.log(d) + t - log_ratio + b * np.logaddexp(0.0, np.log(a) + t) - 2.0 * np.log(eps))

    low, high = -60.0, 700.0
    if a <= 0.0 or b <= 0.0 or excess(high) < 0.0:
        raise DomainError(f"the law with a = {a:g}, b = {b:g} does not reach eps = {eps:g} at d = {d:g}")
    if excess(low) > 0.0:
        raise DomainError(f"eps = {eps:g} at d = {d:g} is too small for this law: k/d would be 1")
    root = float(brentq(excess, low, high, xtol=1e-13, rtol=1e-15))
    return float(np.log(d) + np.logaddexp(0.0, root))
