"""One pass over all pairs in blocks: the preconditioned gradient of the smoothed coherence.

The objective is log sum exp(beta |g_ij|) over pairs, g = X X^T. Its gradient in x_i is sum_j w_ij sign(g_ij) x_j,
which is attention with queries, keys and values all X. The pass exploits what attention cannot: g is symmetric, so a
block of cosines and its exponentials serve the rows on both sides, 3 k^2 d flops instead of 4 k^2 d. Under a cyclic
symmetry of order g the rows are one of each orbit and the block of shift s also serves shift -s: 3 k^2 d / g flops.
"""

from __future__ import annotations

import torch

from repcap.packing.search.symmetry import TRIVIAL, Cyclic

CLAMP = 60.0
"""exp(60) is 1e26: far below the float32 limit even when summed over 10^6 columns."""

LEAST = -80.0
"""exp(-80) is 2e-35, nothing beside 1. What is smaller by 10^3 is subnormal, and each product with it costs a hundred:
without this the last third of a path takes twice as long a step."""

BLOCK_ROWS = 512
BLOCK_COLUMNS = 2048
"""512 x 2048 float32 is 4 MB; the pass holds two such blocks, which stay in a last-level cache."""

ACCELERATOR_BLOCK = 8192
"""On a card a block must be large to fill it: 8192 x 8192 float32 is 256 MB, twice."""

WORKING = {"float32": torch.float32, "float64": torch.float64, "bfloat16": torch.float32}
"""Precision -> dtype of rows, cosines and exponentials; bfloat16 is for the weighted sums of rows alone."""


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
        precision: str = "float32",
    ) -> None:
        accelerator = device.type != "cpu"
        self.symmetry = symmetry
        self.rows = min(count, rows or (ACCELERATOR_BLOCK if accelerator else BLOCK_ROWS))
        self.columns = min(count, columns or (ACCELERATOR_BLOCK if accelerator else BLOCK_COLUMNS))
        if symmetry.order > 1:
            self.columns = columns or max(self.columns, min(BLOCK_COLUMNS, count * (symmetry.order // 2)))
        size = self.rows * max(self.rows, self.columns)
        dtype = WORKING[precision]
        self._signed = torch.empty(size, device=device, dtype=dtype)
        self._weight = torch.empty(size, device=device, dtype=dtype)
        self._low = torch.empty(size, device=device, dtype=torch.bfloat16) if precision == "bfloat16" else None
        self.weights = torch.empty(count, device=device, dtype=dtype)
        """w_i = sum_j exp(beta (|g_ij| - m)) after a call, shape (a,)."""
        self._exponent = self._shift = 1.0
        self._now = self._weight
        self._row_sums = self.weights
        self._column_sums: torch.Tensor | None = None

    def __call__(self, x: torch.Tensor, beta: float, m: float, out: torch.Tensor) -> float:
        """Write U_i = sum_j sign(g_ij) exp(beta (|g_ij| - m)) x_j over all lines j != i; return max |g_ij|.

        x: (a, d) float32, unit rows. m: about max |g|, so that the exponents are at most a little above 0 (they are
        clamped at 60). out: (a, d) float32, overwritten. Time 3 k^2 d / g flops and k^2 / (2 g) exponentials.
        """
        out.zero_()
        self.weights.zero_()
        self._exponent, self._shift = beta, beta * m
        top = self._unturned(x, out)
        order = self.symmetry.order
        together = max(1, self.columns // x.shape[0])
        shifts = list(range(1, (order + 1) // 2))
        for first in range(0, len(shifts), together):
            top = torch.maximum(top, self._turned(x, shifts[first : first + together], out))
        if order % 2 == 0:
            top = torch.maximum(top, self._half_turn(x, order // 2, out))
        return float(top) / beta

    def _unturned(self, x: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
        """Pairs of rows as they stand: each block off the diagonal serves both of its sides."""
        count = x.shape[0]
        top = torch.zeros((), device=x.device, dtype=x.dtype)
        for i in range(0, count, self.rows):
            near = slice(i, min(i + self.rows, count))
            scaled = x[near] * self._exponent
            top = torch.maximum(top, self._block(scaled, x[near], diagonal=True))
            self._receive(near, x[near], out)
            for j in range(near.stop, count, self.columns):
                far = slice(j, min(j + self.columns, count))
                top = torch.maximum(top, self._block(scaled, x[far]))
                self._receive(near, x[far], out)
                self._give(far, x[near], out)
        return top

    def _turned(self, x: torch.Tensor, shifts: list[int], out: torch.Tensor) -> torch.Tensor:
        """Rows against rows turned by `shifts`; the transposed block is that of the shifts the other way."""
        count, turns = x.shape[0], len(shifts)
        ahead = torch.cat([self.symmetry.apply(x, shift) for shift in shifts])  # (turns a, d)
        back = torch.stack([self.symmetry.apply(x, -shift) for shift in shifts])  # (turns, a, d)
        top = torch.zeros((), device=x.device, dtype=x.dtype)
        for i in range(0, count, self.rows):
            near = slice(i, min(i + self.rows, count))
            scaled = x[near] * self._exponent
            for j in range(0, turns * count, self.columns):
                far = slice(j, min(j + self.columns, turns * count))
                top = torch.maximum(top, self._block(scaled, ahead[far]))
                self._receive(near, ahead[far], out)
                if turns == 1:
                    self._give(far, back[0, near], out)
                else:  # several shifts go together only where one block holds all of their columns
                    self._give_each(back[:, near], out)
        return top

    def _half_turn(self, x: torch.Tensor, shift: int, out: torch.Tensor) -> torch.Tensor:
        """Rows against rows turned by half the order: this block holds both sides already."""
        turned = self.symmetry.apply(x, shift)
        top = torch.zeros((), device=x.device, dtype=x.dtype)
        for i in range(0, x.shape[0], self.rows):
            near = slice(i, min(i + self.rows, x.shape[0]))
            for j in range(0, x.shape[0], self.columns):
                far = slice(j, min(j + self.columns, x.shape[0]))
                top = torch.maximum(top, self._block(x[near] * self._exponent, turned[far]))
                self._receive(near, turned[far], out)
        return top

    def _block(self, scaled: torch.Tensor, right: torch.Tensor, diagonal: bool = False) -> torch.Tensor:
        """Make `_now` = sign(g) exp(beta (|g| - m)) of one block, and its sums; return the largest beta |g|."""
        shape = (scaled.shape[0], right.shape[0])
        size = shape[0] * shape[1]
        signed, weight = self._signed[:size].view(shape), self._weight[:size].view(shape)
        torch.mm(scaled, right.T, out=signed)
        if diagonal:
            signed.fill_diagonal_(0.0)
        torch.abs(signed, out=weight)
        top = weight.max()
        weight.sub_(self._shift)
        weight.clamp_(LEAST, CLAMP).exp_()
        if diagonal:
            weight.fill_diagonal_(0.0)
        self._row_sums, self._column_sums = weight.sum(dim=1), None if diagonal else weight.sum(dim=0)
        torch.copysign(weight, signed, out=weight)
        self._now = weight
        if self._low is not None:
            # beta times the error of a cosine is the error of an exponent: cosines need float32, weighted sums do not.
            self._now = self._low[:size].view(shape).copy_(weight)
        return top

    def _receive(self, near: slice, values: torch.Tensor, out: torch.Tensor) -> None:
        """The rows of the block take the weighted sum of `values`, one for each column."""
        self.weights[near] += self._row_sums
        self._add(out[near], self._now, values)

    def _give(self, far: slice, values: torch.Tensor, out: torch.Tensor) -> None:
        """The columns of the block take the weighted sum of `values`, one for each row."""
        assert self._column_sums is not None
        self.weights[far] += self._column_sums
        self._add(out[far], self._now.T, values)

    def _give_each(self, values: torch.Tensor, out: torch.Tensor) -> None:
        """As `_give`, for columns that are `turns` copies of all rows; values: (turns, rows of the block, d)."""
        turns, rows, d = values.shape
        assert self._column_sums is not None
        self.weights += self._column_sums.view(turns, -1).sum(dim=0)
        transposed = self._now.view(rows, turns, -1).permute(2, 1, 0).reshape(-1, turns * rows)
        self._add(out, transposed, values.reshape(turns * rows, d))

    def _add(self, out: torch.Tensor, weight: torch.Tensor, values: torch.Tensor) -> None:
        if self._low is not None:
            out.add_(weight @ values.to(torch.bfloat16))
        else:
            out.addmm_(weight, values)
