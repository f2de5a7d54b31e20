"""epsilon after a common part of all rows is taken away: their mean, or their strongest directions.

Both act on the stored rows and every row is normalised again afterwards, so each is one more exact pass:

    centred      x_i - mean_j x_j
    top m        x_i - V V^T x_i, V (d, m) the eigenvectors of G = U^T U with the largest eigenvalues

Both can be pickled, for workers that change rows themselves. (Removing both, mean first, is "all but the top": Mu and
Viswanath 2018. There V is taken from the centred rows.)
"""

from __future__ import annotations

from functools import partial

import torch

from repcap.errors import InputError, VectorsError
from repcap.geometry.epsilon.passes import FirstPass
from repcap.geometry.epsilon.spectrum import top_directions
from repcap.geometry.rows.reader import RowReader, Transform


def subtract(mean: torch.Tensor) -> Transform:
    """x -> x - mean in place, mean (d,) float64.

    Raises
    ------
    VectorsError
        if the mean is no finite vector (rows whose sum overflows).
    """
    if not bool(torch.isfinite(mean).all()):
        raise VectorsError("the mean of the rows overflows float64: scale the matrix down before centring it")
    return partial(_subtract, mean)


def _subtract(mean: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    return rows.sub_(mean)


def project_out(directions: torch.Tensor) -> Transform:
    """x -> x - V V^T x in place, V (d, m) float64 with orthonormal columns."""
    return partial(_project_out, directions)


def _project_out(directions: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    return rows.sub_((rows @ directions) @ directions.T)


def then(first: Transform, second: Transform) -> Transform:
    """x -> second(first(x))."""
    return lambda rows: second(first(rows))


def leading(first: FirstPass, m: int) -> torch.Tensor:
    """(d, m) float64: the m strongest directions of the rows of a first pass.

    Raises
    ------
    InputError
        if m is not in 1..d-1, or not below n: nothing would be left.
    """
    dim = len(first.total)
    if not 1 <= m < min(dim, first.count):
        raise InputError(f"--remove-top {m} leaves nothing of {first.count} rows in {dim} dimensions: take fewer")
    if first.held is None:
        return top_directions(first.moments().G, m)
    right: torch.Tensor = torch.linalg.svd(first.held, full_matrices=False)[2]  # (n, d)
    return right[:m].T


def centred_reader(reader: RowReader, first: FirstPass) -> RowReader:
    """A reader whose rows have lost the mean of the rows of the first pass."""
    return reader.replaced(rows=first.indices, transform=subtract(first.total / first.count))


def without_top(reader: RowReader, first: FirstPass, m: int) -> RowReader:
    """A reader whose rows, as the first pass saw them, have lost their m strongest directions."""
    project = project_out(leading(first, m))
    before = reader.transform
    return reader.replaced(rows=first.indices, transform=project if before is None else then(before, project))
