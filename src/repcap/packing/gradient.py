"""One pass over all pairs in blocks: the preconditioned gradient of the smoothed coherence.

The objective is log sum exp(beta |g_ij|) over pairs, g = X X^T. Its gradient in x_i is sum_j w_ij sign(g_ij) x_j,
which is attention with queries, keys and values all X. The pass exploits what attention cannot: g is symmetric, so a
block of cosines and its exponentials serve the rows on both sides, 3 k^2 d flops instead of 4 k^2 d. Under a cyclic
symmetry of order g the rows are one of each orbit and the block of shift s also serves shift -s: 3 k^2 d / g flops.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import torch

from repcap.packing.symmetry import TRIVIAL, Cyclic

CLAMP = 60.0
"""exp(60) is 1e26: far below the float32 limit even when summed over 10^6 columns."""

BLOCK_ROWS = 512
BLOCK_COLUMNS = 2048
"""512 x 2048 float32 is 4 MB; the pass holds two such blocks, which stay in a last-level cache."""

ACCELERATOR_BLOCK = 8192
"""On a card a block must be large to fill it: 8192 x 8192 float32 is 256 MB, twice."""


@dataclasses.dataclass(frozen=True)
class _Side:
    """A block of rows: the vectors of its cosines, what the other side sums of it, and where its own sums go."""

    vectors: torch.Tensor
    values: torch.Tensor
    out: torch.Tensor
    weights: torch.Tensor


class BlockPass:
    """Buffers of the pass for rows (a, d) and the pass itself.

    Memory: 2 rows * columns numbers and a weights; with a symmetry two turned copies of the rows. The caller owns the
    rows and the (a, d) result.
    """

    def __init__(
        self,
        count: int,
        device: torch.device,
        symmetry: Cyclic = TRIVIAL,
        rows: int | None = None,
        columns: int | None = None,
    ) -> None:
        accelerator = device.type != "cpu"
        self.symmetry = symmetry
        self.rows = min(count, rows or (ACCELERATOR_BLOCK if accelerator else BLOCK_ROWS))
        self.columns = min(count, columns or (ACCELERATOR_BLOCK if accelerator else BLOCK_COLUMNS))
        size = self.rows * max(self.rows, self.columns)
        self._signed = torch.empty(size, device=device)
        self._weight = torch.empty(size, device=device)
        self.weights = torch.empty(count, device=device)
        """w_i = sum_j exp(beta (|g_ij| - m)) after a call, shape (a,)."""

    def __call__(self, x: torch.Tensor, beta: float, m: float, out: torch.Tensor) -> float:
        """Write U_i = sum_j sign(g_ij) exp(beta (|g_ij| - m)) x_j over all lines j != i; return max |g_ij|.

        x: (a, d) float32, unit rows. m: about max |g|, so that the exponents are at most a little above 0 (they are
        clamped at 60). out: (a, d) float32, overwritten. Time 3 k^2 d / g flops and k^2 / (2 g) exponentials.
        """
        out.zero_()
        self.weights.zero_()
        top = torch.zeros((), device=x.device)
        for left, right, diagonal in self._pairs(x, beta, out):
            top = torch.maximum(top, self._accumulate(left, right, diagonal, beta * m))
        return float(top) / beta

    def _pairs(self, x: torch.Tensor, beta: float, out: torch.Tensor) -> Iterator[tuple[_Side, _Side, bool]]:
        """The block pairs: (left, right, diagonal). The right side receives only where its sums are not the left's."""
        count, order = x.shape[0], self.symmetry.order
        for shift in range(order // 2 + 1):
            ahead = x if shift == 0 else self.symmetry.apply(x, shift)
            back = x if shift == 0 else self.symmetry.apply(x, -shift)
            own_inverse = 2 * shift == order  # the block of this shift holds both sides already
            for i in range(0, count, self.rows):
                i_end = min(i + self.rows, count)
                near = slice(i, i_end)
                left = _Side(x[near] * beta, back[near], out[near], self.weights[near])
                starts = [(i, i_end)] if shift == 0 else []
                first = i_end if shift == 0 else 0
                starts += [(j, min(j + self.columns, count)) for j in range(first, count, self.columns)]
                for j, j_end in starts:
                    far = slice(j, j_end)
                    right = _Side(ahead[far], ahead[far], out[far], self.weights[far])
                    diagonal = shift == 0 and i == j
                    yield left, dataclasses.replace(right, out=out[:0]) if diagonal or own_inverse else right, diagonal

    def _accumulate(self, left: _Side, right: _Side, diagonal: bool, shift: float) -> torch.Tensor:
        """One block: cosines, exponentials, sums for the left rows and, unless its `out` is empty, for the right."""
        shape = (left.vectors.shape[0], right.vectors.shape[0])
        size = shape[0] * shape[1]
        signed, weight = self._signed[:size].view(shape), self._weight[:size].view(shape)
        both = right.out.shape[0] > 0
        torch.mm(left.vectors, right.vectors.T, out=signed)
        if diagonal:
            signed.fill_diagonal_(0.0)
        torch.abs(signed, out=weight)
        top = weight.max()
        weight.sub_(shift)
        if signed.device.type != "cpu" or float(top) > shift + CLAMP:  # reading `top` would stall an accelerator
            weight.clamp_(max=CLAMP)
        weight.exp_()
        if diagonal:
            weight.fill_diagonal_(0.0)
        left.weights.add_(weight.sum(dim=1))
        if both:
            right.weights.add_(weight.sum(dim=0))
        torch.copysign(weight, signed, out=weight)
        left.out.addmm_(weight, right.values)
        if both:
            right.out.addmm_(weight.T, left.values)
        return top
