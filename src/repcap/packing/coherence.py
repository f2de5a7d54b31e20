"""The number that everything else is for: the largest |cosine| over all pairs, in float64, by blocks."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy
import torch

from repcap.devices import accumulator_device
from repcap.errors import VectorsError
from repcap.matrix import Matrix, ProgressFn, TensorMatrix

BLOCK_ROWS = 1024
"""1024 x 1024 float64 cosines are 8 MB: they stay in a last-level cache, and the product is still a large GEMM."""


@dataclasses.dataclass(frozen=True)
class Coherence:
    """max |cos| over all pairs and one pair that attains it."""

    value: float
    pair: tuple[int, int]
    count: int
    """Vectors compared, k."""
    dim: int

    def to_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)


def as_matrix(vectors: Matrix | torch.Tensor | numpy.ndarray[Any, Any]) -> Matrix:
    """`vectors`, shape (k, d), as row blocks.

    Raises
    ------
    VectorsError
        if they are not a table of two or more real floating or integer rows.
    """
    if isinstance(vectors, Matrix):
        matrix = vectors
    else:
        tensor = torch.as_tensor(vectors)
        if tensor.ndim != 2:
            raise VectorsError(f"vectors must form a (k, d) table, got shape {tuple(tensor.shape)}")
        if tensor.is_complex():
            raise VectorsError("vectors are complex: give real vectors (real and imaginary parts as 2 d coordinates)")
        matrix = TensorMatrix(tensor)
    if matrix.count < 2 or matrix.dim < 1:
        raise VectorsError(
            f"coherence needs at least 2 vectors of at least 1 coordinate, got {matrix.count} of {matrix.dim}"
        )
    return matrix


def unit_rows(block: torch.Tensor, first: int = 0) -> torch.Tensor:
    """Rows of `block` (b, d) scaled to norm 1, float64.

    A row is first scaled by its largest entry, so that norms of 1e-300 or 1e300 neither underflow nor overflow.

    Raises
    ------
    VectorsError
        if a row is zero or holds NaN or an infinity; `first` is the index of the block's first row.
    """
    rows = block.to(torch.float64)
    largest = rows.abs().amax(dim=1, keepdim=True)
    bad = torch.nonzero(~(torch.isfinite(largest) & (largest > 0)).squeeze(1)).flatten()
    if len(bad):
        row = int(bad[0])
        what = "zero" if float(largest[row]) == 0 else "not finite"
        raise VectorsError(f"row {first + row} is {what}: it has no direction; remove it")
    rows = rows / largest
    unit: torch.Tensor = rows / torch.linalg.vector_norm(rows, dim=1, keepdim=True)
    return unit


def cosine_blocks(
    matrix: Matrix, device: torch.device, rows: int = BLOCK_ROWS
) -> Iterator[tuple[int, int, torch.Tensor]]:
    """Yield (i0, j0, |cosines|) over all unordered pairs of row blocks; the diagonal of a diagonal block is 0.

    Each unordered pair of different rows is seen once, except inside diagonal blocks, which are symmetric.
    """
    k = matrix.count
    for i in range(0, k, rows):
        left = unit_rows(matrix.read(i, min(i + rows, k)), i).to(device)
        for j in range(i, k, rows):
            right = left if i == j else unit_rows(matrix.read(j, min(j + rows, k)), j).to(device)
            cosines = (left @ right.T).abs_()
            if i == j:
                cosines.fill_diagonal_(0.0)
            yield i, j, cosines


def coherence(
    vectors: Matrix | torch.Tensor | numpy.ndarray[Any, Any],
    *,
    block_rows: int = BLOCK_ROWS,
    device: torch.device | None = None,
    on_progress: ProgressFn | None = None,
) -> Coherence:
    """max |cos| over all pairs of rows of `vectors` (k, d), whatever their norms, in float64.

    Time k^2 d multiply-adds; memory O(block_rows * (d + block_rows)) beside the vectors.

    Raises
    ------
    VectorsError
        if a row has no direction, or the shape is no table of two or more rows.
    """
    matrix = as_matrix(vectors)
    where = accumulator_device(device or torch.device("cpu"))
    blocks = -(-matrix.count // block_rows)
    best, pair = -1.0, (0, 1)
    for done, (i, j, cosines) in enumerate(cosine_blocks(matrix, where, block_rows), start=1):
        top = float(cosines.max())
        if top > best:
            row, column = divmod(int(cosines.argmax()), cosines.shape[1])
            best, pair = top, (i + row, j + column)
        if on_progress is not None:
            on_progress(done, blocks * (blocks + 1) // 2)
    if pair[0] == pair[1]:  # exactly orthogonal rows: the zeroed diagonal came first
        pair = (0, 1)
    return Coherence(min(best, 1.0), (min(pair), max(pair)), matrix.count, matrix.dim)
