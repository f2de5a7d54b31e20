"""What random lines do: how many exist for certain (Gilbert-Varshamov), and the coherence of k drawn at random.

Both rest on P(d, eps), the chance that a random line makes |cos| >= eps with a given one: the regularised incomplete
beta function I_{1-eps^2}((d-1)/2, 1/2). It is needed in logs: at d = 16384 and eps = 0.5 it is 10^-1025.
"""

from __future__ import annotations

import math
from typing import overload

import numpy as np

from repcap.domain import Array, Floats, check_d, check_eps, check_log_k, plain
from repcap.errors import DomainError
from repcap.laws.limits.roots import root
from repcap.numerics import LN10

_TERMS = 20000
"""Of the continued fraction; d = 10^6 takes a few hundred."""


def _log_gamma_step(a: Array) -> Array:
    """ln Gamma(a + 1/2) - ln Gamma(a) for a >= 1/2, to a few units in the last place.

    The difference of two lgamma loses nine digits at a = 10^6. The asymptotic series (its terms follow from
    Stirling's) has an error below 1e-17 from a = 20 on; smaller a are raised there by the recurrence of Gamma.
    """
    shifted, correction = a.copy(), np.zeros_like(a)
    while (small := shifted < 20.0).any():
        correction = np.where(small, correction - np.log1p(0.5 / shifted), correction)
        shifted = np.where(small, shifted + 1.0, shifted)
    x = 1.0 / (shifted * shifted)
    series = -1 / 8 + x * (1 / 192 + x * (-1 / 640 + x * (17 / 14336 + x * (-31 / 18432 + x * (691 / 180224)))))
    return np.asarray(0.5 * np.log(shifted) + series / shifted + correction)


def _beta_fraction(x: Array, a: Array, b: Array) -> Array:
    """The continued fraction of the incomplete beta function (DLMF 8.17.22), by Lentz's method.

    Fast where x < (a + 1) / (a + b + 2): O(sqrt(max(a, b))) terms at the border, few away from it.
    """
    numerator = np.ones_like(x)
    denominator = 1.0 / _not_zero(1.0 - (a + b) * x / (a + 1.0))
    value = denominator
    for m in range(1, _TERMS):
        for step in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            denominator = 1.0 / _not_zero(1.0 + step * denominator)
            numerator = _not_zero(1.0 + step / numerator)
            change = numerator * denominator
            value = value * change
        # Not tighter: the last bits of `change` never settle, for one of many elements at least.
        if (np.abs(change - 1.0) < 2e-15).all():
            break
    return value


def _not_zero(array: Array) -> Array:
    return np.where(np.abs(array) < 1e-300, 1e-300, array)


@overload
def log_cap(d: float, eps: float) -> float: ...
@overload
def log_cap(d: Floats, eps: Floats) -> Floats: ...
def log_cap(d: Floats, eps: Floats) -> Floats:
    """ln P(d, eps), P the chance that |cos| >= eps between a fixed and a random direction of R^d.

    Vectorised; scalars give a float. Relative error of P below 1e-10 up to d = 10^6. Time O(sqrt(d)) array
    operations at worst, about 30 away from eps^2 = 3/d.

    Raises
    ------
    DomainError
        if d < 1 or eps is not in (0, 1).
    """
    dims, given = np.broadcast_arrays(check_d(d), check_eps(eps))
    return plain(_log_cap(dims, given, np.log1p(-given) + np.log1p(given)))


def log_half_cap(d: float, eps: float) -> float:
    """ln P(d, cos(a/2)), a = arccos(eps): the cap of half the angle, |cos| >= sqrt((1 + eps)/2).

    From 1 - cos^2 = (1 - eps)/2, because the cosine itself rounds to 1 where eps is the last float below 1.

    Raises
    ------
    DomainError
        if d < 1 or eps is not in (0, 1).
    """
    given = check_eps(eps)
    return float(_log_cap(check_d(d), np.sqrt(0.5 * (1.0 + given)), np.log(0.5 * (1.0 - given))))


def _log_cap(dims: Array, cosine: Array, log_rest: Array) -> Array:
    """ln P(d, cosine), given ln(1 - cosine^2) as exactly as the caller has it."""
    square = cosine * cosine
    a = np.maximum(dims - 1.0, 1e-12) / 2.0
    half = np.full_like(a, 0.5)
    far = square * (dims + 4.0) > 3.0  # P's own fraction is the fast one; else that of 1 - P, and then P > 0.08
    # I_x(a, b) = x^a (1-x)^b / (a B(a, b)) * fraction, and 1 / B(a, 1/2) = Gamma(a + 1/2) / (Gamma(a) sqrt(pi)).
    log_front = a * log_rest + np.log(cosine) + _log_gamma_step(a) - 0.5 * math.log(math.pi)
    fraction = _beta_fraction(np.where(far, 1.0 - square, square), np.where(far, a, half), np.where(far, half, a))
    tail = log_front - np.log(a) + np.log(fraction)
    whole = np.log1p(-np.where(far, 0.0, np.exp(np.where(far, 0.0, log_front)) * 2.0 * fraction))
    return np.asarray(np.where(dims == 1.0, 0.0, np.where(far, tail, whole)))


@overload
def gilbert_varshamov(d: float, eps: float) -> float: ...
@overload
def gilbert_varshamov(d: Floats, eps: Floats) -> Floats: ...
def gilbert_varshamov(d: Floats, eps: Floats) -> Floats:
    """log10 of a number of lines in R^d that exist with coherence at most eps: the larger of d and 1/P(d, eps).

    Begin with an orthonormal basis. While k P < 1 the double caps around k lines do not cover the sphere, so one more
    line fits (E. N. Gilbert 1952 and R. R. Varshamov 1957 for codes; C. E. Shannon 1959 for the sphere).

    Raises
    ------
    DomainError
        if d < 1 or eps is not in (0, 1).
    """
    return plain(np.maximum(-np.asarray(log_cap(d, eps)) / LN10, np.log10(np.floor(check_d(d)))))


def gilbert_varshamov_coherence(k: float | None, d: float, *, log_k: float | None = None) -> float:
    """The least eps at which Gilbert-Varshamov guarantees k lines in R^d: P(d, eps) = 1/k; 0 for k <= d, 1 at d = 1.

    Raises
    ------
    DomainError
        if k <= 1 or d < 1.
    """
    target, dims = float(check_log_k(k, log_k)), float(check_d(d))
    return 0.0 if target <= math.log(math.floor(dims)) + 1e-12 else _coherence_at(-target, dims)


def random_coherence(k: float, d: float, trials: int = 1) -> float:
    """Median coherence of k random lines in R^d, or of the best of `trials` such draws.

    The k(k-1)/2 cosines are pairwise independent; taken as jointly so, the best of T draws exceeds eps with chance
    (1 - (1 - P)^pairs)^T, which is 1/2 at P = 1 - (1 - 2^(-1/T))^(1/pairs).

    Raises
    ------
    DomainError
        if k < 2, d < 1 or trials < 1.
    """
    dims = float(check_d(d))
    log_of_k = float(check_log_k(k))
    if log_of_k < math.log(2.0) or trials < 1:
        raise DomainError(f"k = {k} random lines, best of {trials}: at least 2 lines and 1 trial are needed")
    # ln(k (k-1) / 2) without k itself, which may be beyond float64.
    log_pairs = 2.0 * log_of_k + math.log1p(-math.exp(-log_of_k)) - math.log(2.0)
    log_one_draw = math.log(-math.expm1(-math.log(2.0) / trials))  # each draw stays below with this chance
    share = -log_one_draw * math.exp(-log_pairs)
    log_p = math.log(-math.expm1(-share)) if share > 1e-300 else math.log(-log_one_draw) - log_pairs
    return _coherence_at(log_p, dims)


def _coherence_at(log_p: float, d: float) -> float:
    """The eps at which ln P(d, eps) = log_p <= 0: P falls from 1 to 0 as eps rises. 0 or 1 within 1e-12 of them."""
    if d == 1.0:
        return 1.0
    # The unknown is t with eps = 1 - exp(-t): near 1 it keeps the digits of 1 - eps, where huge k ends up.
    far = 36.0
    if log_p >= log_cap(d, 1e-12):
        return 0.0
    if log_p <= log_cap(d, -math.expm1(-far)):
        return 1.0
    return -math.expm1(-root(lambda t: log_cap(d, -math.expm1(-t)) - log_p, 1e-12, far))
