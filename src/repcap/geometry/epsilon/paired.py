"""By how much epsilon differs between two matrices whose rows correspond, and the error of that difference.

The rows of both are the same tokens: the jackknife leaves a token out of both at once, so what they share cancels.
se^2 = (n - 1)/n sum_i (D_(i) - mean)^2 with D_(i) = epsilon_b without row i - epsilon_a without row i. (Tukey 1958.)
"""

from __future__ import annotations

import dataclasses

import torch

from repcap.errors import VectorsError
from repcap.geometry.epsilon.jackknife import EXTRA_ROWS, EXTRA_WORK, standard_error, without_each
from repcap.geometry.epsilon.passes import FirstPass, first_pass
from repcap.geometry.rows.reader import RowReader, plain_reader
from repcap.matrix import Matrix


@dataclasses.dataclass(frozen=True)
class Difference:
    """epsilon of b less that of a over the `rows` corresponding rows that have a direction in both.

    se: its standard error, paired over rows: how much the difference would move if tokens were drawn anew.
    """

    epsilon: float
    se: float
    rows: int


def epsilon_difference(a: Matrix, b: Matrix, z: float, *, device: str = "auto", seed: int = 0) -> Difference:
    """epsilon_b - epsilon_a of corresponding rows, a (n, d_a) and b (n, d_b), with its paired standard error.

    Two passes over each, n d^2 operations a pass; memory: both Gram matrices, a block of rows, a few numbers a row.

    Raises
    ------
    VectorsError
        if fewer than three rows have a direction in both.
    """
    readers = [plain_reader(matrix, device) for matrix in (a, b)]
    firsts = [first_pass(reader, find_repeats=False) for reader in readers]
    common = _common(*(first.indices for first in firsts))
    if len(common) < 3:
        raise VectorsError(f"{len(common)} corresponding rows have a direction in both: an error needs three")
    chosen = common
    if len(common) * max(a.dim, b.dim) ** 2 > EXTRA_WORK:
        order = torch.randperm(len(common), generator=torch.Generator().manual_seed(seed))[:EXTRA_ROWS]
        chosen = common[order.sort().values]
    of_a, of_b = (_side(*side, common, chosen, z) for side in zip(readers, firsts, strict=True))
    return Difference(of_b[0] - of_a[0], standard_error(of_b[1] - of_a[1], len(common)), len(common))


def _common(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    return first[torch.isin(first, second)]


def _side(
    reader: RowReader, first: FirstPass, common: torch.Tensor, chosen: torch.Tensor, z: float
) -> tuple[float, torch.Tensor]:
    """(epsilon, epsilon without each chosen row (m,)) over the common rows."""
    if len(first.indices) != len(common):  # some have a direction here alone
        reader = reader.replaced(rows=common)
        first = first_pass(reader, find_repeats=False)
    moments = None if first.held is not None else first.moments()
    indices, epsilon, without = without_each(reader, first, moments, chosen, z)
    return epsilon, without[torch.isin(indices, chosen)]
