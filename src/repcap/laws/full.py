"""The full law: eps = sqrt(C ln(k^a/d)^b / d^c), hence k = (d exp((d^c eps^2 / C)^(1/b)))^(1/a).

The four constants were fitted by A. Guha, arXiv 2606.02765, to the same optimised packings as `ratio`. The published
capacities of models are this law at mean + 2 standard deviations. It is not a bound (see docs/laws.md). Where
k^a <= d the value is 0.
"""

from __future__ import annotations

from types import MappingProxyType

import numpy as np

from repcap.domain import Array
from repcap.laws.law import Curve, Law, Params

PARAMS: Params = MappingProxyType({"C": 0.45809143, "a": 1.0668005, "b": 1.44738666, "c": 0.97197234})


def _epsilon(log_k: Array, d: Array, params: Params) -> Array:
    excess = np.maximum(params["a"] * log_k - np.log(d), 0.0)
    return np.asarray(np.sqrt(params["C"]) * excess ** (params["b"] / 2.0) / d ** (params["c"] / 2.0))


def _log_k(d: Array, eps: Array, params: Params) -> Array:
    excess = (d ** params["c"] * eps**2 / params["C"]) ** (1.0 / params["b"])
    return np.asarray((np.log(d) + excess) / params["a"])


def _least(k: Array, d: Array) -> Params:
    """k^a > d in every cell, or the logarithm in the law has no power."""
    return {"a": float(np.max(np.log(d) / np.log(k)))}


LAW = Law(
    "full",
    "eps = sqrt(C ln(k^a/d)^b / d^c)",
    PARAMS,
    _epsilon,
    _log_k,
    curves=(Curve("full", "law full", "full", "fitted to optimised packings", fitted=True, published=True),),
    least=_least,
)

epsilon, log_k, dim = LAW.epsilon, LAW.log_k, LAW.dim
