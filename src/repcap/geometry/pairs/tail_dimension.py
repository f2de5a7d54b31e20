"""The tail of |cosine|: its quantile at a small share of pairs, and the dimension in which random directions have it.

    eps_alpha    the (1 - alpha) quantile of |cos| over all pairs
    d_alpha      the d with P(|cos| >= eps_alpha) = I_{1 - eps^2}((d - 1)/2, 1/2) = alpha

For random directions d_alpha = d at every alpha; where rows form clusters it falls as alpha does.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from scipy.optimize import brentq
from scipy.special import betainc

from repcap.geometry.pairs.count import count_pairs
from repcap.geometry.pairs.histogram import FINE_BINS, PairCounts, Wanted
from repcap.geometry.pairs.tail import GaugeTail, TailPoint
from repcap.matrix import Matrix

_MOST = 1e9


def tail_epsilon(counts: PairCounts, alpha: float) -> float:
    """eps_alpha, linear within a bin of 6.7e-5; NaN where alpha is less than one of the pairs that were counted."""
    total = counts.pairs
    if alpha * total < 1.0:
        return float("nan")
    half = FINE_BINS // 2
    folded = counts.counts[half:] + counts.counts[:half][::-1]
    beyond = np.concatenate([np.cumsum(folded[::-1])[::-1], [0]])  # pairs with |cos| at or above each edge
    edges = np.linspace(0.0, 1.0, half + 1)
    return float(np.interp(alpha * total, beyond[::-1], edges[::-1]))


def random_tail_epsilon(dim: float, alpha: float) -> float:
    """eps_alpha of random directions in d dimensions, exactly.

    >>> round(random_tail_epsilon(576, 0.0455), 4), round(random_tail_epsilon(576, 1e-6), 3)
    (0.0833, 0.202)
    """
    return float(brentq(lambda e: _share(dim, e) - alpha, 0.0, 1.0, xtol=1e-14))


def tail_dimension(epsilon: float, alpha: float) -> float:
    """d_alpha; 1 where epsilon is 1, NaN where epsilon is no number, at most 1e9.

    >>> round(tail_dimension(0.20179, 1e-6))
    577
    """
    if math.isnan(epsilon):
        return float("nan")
    if epsilon >= 1.0:
        return 1.0
    if epsilon <= 0.0 or _share(_MOST, epsilon) >= alpha:
        return _MOST
    return float(np.exp(brentq(lambda log: _share(np.exp(log), epsilon) - alpha, 1e-12, np.log(_MOST), xtol=1e-12)))


def gauge_tail(counts: PairCounts, gauge: str, dim: int, alphas: Sequence[float]) -> GaugeTail:
    """eps_alpha, d_alpha and the epsilon of random directions at each alpha; None where too few pairs were counted."""
    points = []
    for alpha in alphas:
        epsilon = tail_epsilon(counts, alpha)
        known = not math.isnan(epsilon)
        points.append(
            TailPoint(
                alpha=alpha,
                epsilon=epsilon if known else None,
                dim=tail_dimension(epsilon, alpha) if known else None,
                random=random_tail_epsilon(dim, alpha) if dim > 1 else 1.0,
            )
        )
    return GaugeTail(gauge, tuple(points))


def stored_tail(matrix: Matrix, rows: torch.Tensor, alphas: Sequence[float], device: str = "auto") -> GaugeTail:
    """The tail of `rows` (m,) of `matrix`, as they are stored: one sweep over all pairs, m^2 d operations.

    Memory: 1 GiB of unit rows at most, never n x n.

    Raises
    ------
    VectorsError
        if no two of them have a direction.
    """
    mask = None
    if len(rows) < matrix.count:
        mask = np.zeros(matrix.count, dtype=bool)
        mask[rows.numpy()] = True
    return gauge_tail(count_pairs(matrix, mask=mask, wanted=Wanted(0), device=device), "stored", matrix.dim, alphas)


def _share(dim: float, epsilon: float) -> float:
    """P(|cos| >= epsilon) of random directions."""
    return float(betainc((dim - 1.0) / 2.0, 0.5, 1.0 - epsilon * epsilon))
