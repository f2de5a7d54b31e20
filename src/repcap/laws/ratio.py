"""The ratio law: eps = sqrt(C ln(k/d) / d), hence k = d exp(d eps^2 / C).

C = 1.293 was fitted by A. Guha, arXiv 2606.02765, to packings made by a gradient optimiser (k from 2000 to 32000,
d from 32 to 4096). It describes what that optimiser reached. It is not a bound: for k <= d the value is 0, which is
exact, elsewhere explicit sets of lines do better (see docs/laws.md).
"""

from __future__ import annotations

import numpy as np

from repcap.domain import Array
from repcap.laws.law import Curve, Law, Params

C = 1.293


def _epsilon(log_k: Array, d: Array, params: Params) -> Array:
    return np.asarray(np.sqrt(params["C"] * np.maximum(log_k - np.log(d), 0.0) / d))


def _log_k(d: Array, eps: Array, params: Params) -> Array:
    return np.asarray(np.log(d) + d * eps**2 / params["C"])


LAW = Law(
    "ratio",
    "eps = sqrt(C ln(k/d) / d)",
    {"C": C},
    _epsilon,
    _log_k,
    curves=(Curve("ratio", "law ratio", "ratio", "fitted to optimised packings", fitted=True),),
    scale_only=True,
)

epsilon, log_k, dim = LAW.epsilon, LAW.log_k, LAW.dim
