"""Few vectors in many dimensions: where n <= d + 1 the cosines themselves, (n, n), take no more room than G would.

This is also where they must be used. Only n <= d + 1 directions can all have the same cosine (a simplex, an orthonormal
basis), and then `second - mean^2` is rounding noise, while deviations from the mean are exact.
"""

from __future__ import annotations

import math

import torch


def fits(count: int, dim: int) -> bool:
    """Whether `count` vectors in `dim` dimensions are treated by their cosines."""
    return count <= dim + 1


def cosines(units: torch.Tensor) -> torch.Tensor:
    """(n, n) float64 cosines of (n, d) float64 unit rows, diagonal exactly 1. O(n^2 d) time, 8 n^2 bytes."""
    C = units @ units.T
    C.fill_diagonal_(1.0)
    return C


def mean_std(C: torch.Tensor) -> tuple[float, float]:
    """Mean and population standard deviation off the diagonal of (n, n) cosines, n >= 2, in two passes over C."""
    n = C.shape[0]
    pairs = n * (n - 1)
    mean = (float(C.sum()) - n) / pairs
    square = 0.0
    for first in range(0, n, 256):
        deviation = C[first : first + 256] - mean
        here = torch.arange(len(deviation), device=C.device)
        deviation[here, first + here] = 0.0
        square += float((deviation**2).sum())
    return mean, math.sqrt(square / pairs)
