"""One pass over all pairs in blocks: the preconditioned gradient of the smoothed coherence.

The objective is log sum exp(beta |g_ij|) over pairs, g = X X^T. Its gradient in x_i is sum_j w_ij sign(g_ij) x_j,
which is attention with queries, keys and values all X. The pass exploits what attention cannot: g is symmetric, so a
block of cosines and its exponentials serve the rows on both sides, 3 k^2 d flops instead of 4 k^2 d.
"""

from __future__ import annotations

import torch

CLAMP = 60.0
"""exp(60) is 1e26: far below the float32 limit even when summed over 10^6 columns."""

BLOCK_ROWS = 512
BLOCK_COLUMNS = 2048
"""512 x 2048 float32 is 4 MB; the pass holds two such blocks, which stay in a last-level cache."""

CUDA_BLOCK = 8192
"""On a card a block must be large to fill it: 8192 x 8192 float32 is 256 MB, twice."""


class BlockPass:
    """Buffers of the pass for k vectors in R^d, and the pass itself.

    Memory: 2 rows * columns numbers, k weights; the caller owns X and the (k, d) result.
    """

    def __init__(self, k: int, device: torch.device, rows: int | None = None, columns: int | None = None) -> None:
        accelerator = device.type != "cpu"
        self.rows = min(k, rows or (CUDA_BLOCK if accelerator else BLOCK_ROWS))
        self.columns = min(k, columns or (CUDA_BLOCK if accelerator else BLOCK_COLUMNS))
        size = self.rows * max(self.rows, self.columns)
        self._signed = torch.empty(size, device=device)
        self._weight = torch.empty(size, device=device)
        self.weights = torch.empty(k, device=device)
        """w_i = sum_j exp(beta (|g_ij| - m)) after a call, shape (k,)."""

    def __call__(self, x: torch.Tensor, beta: float, m: float, out: torch.Tensor) -> float:
        """Write U_i = sum_j sign(g_ij) exp(beta (|g_ij| - m)) x_j into `out`; return max |g_ij|.

        x: (k, d) float32, unit rows. m: about max |g|, so that the exponents are at most a little above 0 (they are
        clamped at 60). out: (k, d) float32, overwritten. Time 3 k^2 d flops and k^2 / 2 exponentials.
        """
        k = x.shape[0]
        out.zero_()
        self.weights.zero_()
        top = torch.zeros((), device=x.device)
        for i in range(0, k, self.rows):
            end = min(i + self.rows, k)
            scaled = x[i:end] * beta
            top = torch.maximum(top, self._pair(x, scaled, (i, end), (i, end), beta * m, out))
            for j in range(end, k, self.columns):
                columns = (j, min(j + self.columns, k))
                top = torch.maximum(top, self._pair(x, scaled, (i, end), columns, beta * m, out))
        return float(top) / beta

    def _pair(
        self,
        x: torch.Tensor,
        scaled: torch.Tensor,
        rows: tuple[int, int],
        columns: tuple[int, int],
        shift: float,
        out: torch.Tensor,
    ) -> torch.Tensor:
        (i, i_end), (j, j_end) = rows, columns
        shape, size = (i_end - i, j_end - j), (i_end - i) * (j_end - j)
        signed, weight = self._signed[:size].view(shape), self._weight[:size].view(shape)
        diagonal = i == j
        torch.mm(scaled, x[j:j_end].T, out=signed)
        if diagonal:
            signed.fill_diagonal_(0.0)
        torch.abs(signed, out=weight)
        top = weight.max()
        weight.sub_(shift)
        if x.device.type != "cpu" or float(top) > shift + CLAMP:  # reading `top` would stall an accelerator
            weight.clamp_(max=CLAMP)
        weight.exp_()
        if diagonal:
            weight.fill_diagonal_(0.0)
        self.weights[i:i_end] += weight.sum(dim=1)
        if not diagonal:
            self.weights[j:j_end] += weight.sum(dim=0)
        torch.copysign(weight, signed, out=weight)
        out[i:i_end].addmm_(weight, x[j:j_end])
        if not diagonal:
            out[j:j_end].addmm_(weight.T, x[i:i_end])
        return top
