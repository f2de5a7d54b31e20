"""A law of two parameters for optimised packings, from Welch's bound and a power of the excess k/d - 1.

    eps^2 = (1/d) (1 - d/k) (1 + a (k/d - 1))^b

The first two factors are Welch's bound of order one for k >> 1, so the law meets it as k -> d. The defaults describe a
local optimiser at a fixed budget (400 steps), not the true least coherence: 42 cells, d in {16, 32, 64, 128}, k/d from
2 to 60, of which those with d >= 64 fit to 0.24 %. About 19 forms were tried, so that figure is a best of 19.
For k <= d the value is 0. `fit` fits it; `capacity` does not answer by it, because so few cells are behind it.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from repcap.domain import Array
from repcap.laws.law import Law, Params
from repcap.laws.limits.roots import bisect

A, B = 0.422, 0.415
VALID = {"d": (64.0, 128.0), "k_over_d": (2.0, 60.0)}
"""Range of the cells behind the defaults. Outside it the law is an extrapolation."""


def _epsilon(log_k: Array, d: Array, params: Params) -> Array:
    log_ratio = np.maximum(log_k - np.log(d), 0.0)
    excess = np.expm1(np.minimum(log_ratio, 700.0))  # k/d - 1; beyond, the power is taken of the logarithm
    log_power = np.where(log_ratio > 600.0, np.log(params["a"]) + log_ratio, np.log1p(params["a"] * excess))
    return np.asarray(np.sqrt(-np.expm1(-log_ratio) / d) * np.exp(0.5 * params["b"] * log_power))


def _log_k(d: Array, eps: Array, params: Params) -> Array:
    """By bisection in t = ln(k/d - 1), in which the law rises from 0 without bound."""
    a, b = np.log(params["a"]), params["b"]
    target = np.log(d) + 2.0 * np.log(eps)  # ln of d eps^2 = (1 - d/k) (1 + a (k/d - 1))^b

    def short(t: Array) -> npt.NDArray[np.bool_]:
        return np.asarray(t - np.logaddexp(0.0, t) + b * np.logaddexp(0.0, a + t) < target, dtype=np.bool_)

    low, high = np.minimum(target, -60.0) - 1.0, np.maximum(target / b - a, 1.0) + 60.0 + 1.0 / b
    low, high = bisect(short, low, high, steps=70)
    return np.asarray(np.log(d) + np.logaddexp(0.0, 0.5 * (low + high)))


LAW = Law(
    "welch-power",
    "eps = sqrt((1/d) (1 - d/k) (1 + a (k/d - 1))^b)",
    {"a": A, "b": B},
    _epsilon,
    _log_k,
    valid=VALID,
)

epsilon, log_k, dim = LAW.epsilon, LAW.log_k, LAW.dim
