"""Two matrices row by row: the cosine of each row of one with the row of the same number of the other."""

from __future__ import annotations

import dataclasses

import numpy as np
import torch

from repcap.errors import VectorsError
from repcap.geometry.rows.unit_rows import Normaliser
from repcap.matrix import Matrix, ProgressFn

BLOCK = 4096


@dataclasses.dataclass(frozen=True, eq=False)
class Corresponding:
    """cosine, norm_a, norm_b: (m,) float64; NaN where a row of either matrix has no direction."""

    cosine: np.ndarray
    norm_a: np.ndarray
    norm_b: np.ndarray


def corresponding(a: Matrix, b: Matrix, *, block: int = BLOCK, on_progress: ProgressFn | None = None) -> Corresponding:
    """Cosine of row i of `a` with row i of `b`, both (m, d), and the lengths of both; in float64.

    Cost: O(m d), one pass over both. Memory: two blocks of rows, and 24 bytes a row.

    Raises
    ------
    VectorsError
        if the shapes differ.
    """
    if (a.count, a.dim) != (b.count, b.dim):
        raise VectorsError(f"{a.count} x {a.dim} and {b.count} x {b.dim} have no corresponding rows: give equal shapes")
    cosine, norm_a, norm_b = (np.full(a.count, np.nan) for _ in range(3))
    left, right = Normaliser(torch.float64), Normaliser(torch.float64)
    for first in range(0, a.count, block):
        stop = min(first + block, a.count)
        numbers = torch.arange(first, stop)
        x, y = left(a.read(first, stop), numbers), right(b.read(first, stop), numbers)
        norm_a[x.indices.numpy()] = x.norms.numpy()
        norm_b[y.indices.numpy()] = y.norms.numpy()
        both, in_x, in_y = np.intersect1d(x.indices.numpy(), y.indices.numpy(), assume_unique=True, return_indices=True)
        products = (x.units[torch.from_numpy(in_x)] * y.units[torch.from_numpy(in_y)]).sum(1)
        cosine[both] = products.clamp_(-1.0, 1.0).numpy()
        if on_progress is not None:
            on_progress(stop, a.count)
    return Corresponding(cosine, norm_a, norm_b)
