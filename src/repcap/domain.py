"""Checks that every law and bound shares: a number outside its domain gives one line that names it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from repcap.errors import DomainError

D_MOST = 10**9
"""Beyond this the search for prime powers and the integers of the constructions take minutes."""

SLACK = 1e-12
"""Relative slack on a coherence: 1/3 and 1/sqrt(d) have no exact float, and are typed with ever fewer digits."""

Array = npt.NDArray[np.float64]
Floats = float | Array
"""An argument of a vectorised law: a number, or a float64 array that broadcasts against the others."""


def _checked(name: str, value: Any, low: float, high: float, low_allowed: bool, domain: str) -> Array:
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise DomainError(f"{name} = {str(value)[:40]!r} is not a number in float64 range: {domain}") from error
    inside = np.isfinite(array) & (array < high) & ((array >= low) if low_allowed else (array > low))
    if not inside.all():
        worst = float(array[~inside].flat[0])
        raise DomainError(f"{name} = {worst:.12g} is outside the domain: {domain}")
    return array


def check_eps(eps: Any) -> Array:
    """`eps` as float64, every value in (0, 1)."""
    return _checked("epsilon", eps, 0.0, 1.0, False, "0 < epsilon < 1 is needed")


def check_d(d: Any, least: int = 1) -> Array:
    """`d` as float64, every value finite and at least `least`."""
    return _checked("d", d, least, math.inf, True, f"a finite d >= {least} is needed")


def check_log_k(k: Any, log_k: Any = None) -> Array:
    """ln k as float64 from exactly one of k > 1 and ln k > 0.

    An int k may be beyond float64: its logarithm is taken of the int itself.
    """
    if (k is None) == (log_k is None):
        raise DomainError("give the number of vectors as k or as log_k (its natural logarithm), one of the two")
    if log_k is not None:
        return _checked("log_k", log_k, 0.0, math.inf, False, "a finite log_k > 0 (that is, k > 1) is needed")
    if isinstance(k, int) and not isinstance(k, bool) and k > 1:
        return np.asarray(math.log(k))
    return np.asarray(np.log(_checked("k", k, 1.0, math.inf, False, "a finite k > 1 is needed")))


def scalar_d(d: Any, least: int = 1) -> int:
    """`d` as an int: bounds and constructions live in a whole number of dimensions, 10^9 at most."""
    value = float(check_d(d, least))
    if value != math.floor(value):
        raise DomainError(f"d = {value:.12g} is not a whole number of dimensions")
    if value > D_MOST:
        raise DomainError(f"d = {value:.12g} is outside the domain: bounds and constructions go up to d = 10^9")
    return int(value)


def plain(array: Array) -> Floats:
    """A float for a 0-d result, the array itself otherwise."""
    return float(array) if array.ndim == 0 else array


def loosened(eps: float) -> float:
    """`eps` with the slack that counts as rounding, relative to eps and to 1 - eps.

    Sets are admitted up to it and limits hold up to it: with the slack on one side alone, 3 lines at 1/2 would stand
    beside "2 at most" where eps is a hair below 1/2.
    """
    return eps + SLACK * min(eps, 1.0 - eps)
