"""The Johnson-Lindenstrauss law: eps = sqrt(C ln k / d), hence k = exp(d eps^2 / C).

C = 8 is the constant that the paper quotes as proven. It is safe with room to spare: a cap has measure at most
exp(-d eps^2 / 2) (K. Ball, 1997), so a union bound over pairs of random vectors already gives C = 4. C = 3.029 was
fitted to the best of 1000 draws of random vectors by A. Guha, arXiv
2606.02765; it describes random directions, not the best that can be done.
"""

from __future__ import annotations

import numpy as np

from repcap.domain import Array
from repcap.laws.law import Curve, Law, Params

C_PROVEN = 8.0
C_RANDOM = 3.029


def _epsilon(log_k: Array, d: Array, params: Params) -> Array:
    return np.asarray(np.sqrt(params["C"] * log_k / d))


def _log_k(d: Array, eps: Array, params: Params) -> Array:
    return np.asarray(d * eps**2 / params["C"])


LAW = Law(
    "jl",
    "eps = sqrt(C ln k / d)",
    {"C": C_PROVEN},
    _epsilon,
    _log_k,
    curves=(
        Curve("jl_proven", f"law jl, C = {C_PROVEN:g}", "jl 8", "Johnson-Lindenstrauss, as quoted", "at least"),
        Curve(
            "jl_random",
            f"law jl, C = {C_RANDOM:g}",
            "jl 3.03",
            "fitted to random vectors",
            "fitted to random",
            {"C": C_RANDOM},
        ),
    ),
    start={"C": C_RANDOM},
    above_d=False,
    scale_only=True,
)

epsilon, log_k, dim = LAW.epsilon, LAW.log_k, LAW.dim
