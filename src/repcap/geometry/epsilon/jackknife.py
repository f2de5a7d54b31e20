"""Standard errors without resampling: leaving out a row, or a block of rows, changes the sums in closed form.

With S = |s|^2, F = |G|_F^2, a_i = u_i.s, b_i = u_i^T G u_i and n rows, leaving out row i gives
S - 2 a_i + 1 and F - 2 b_i + 1 over n - 1 rows. (Quenouille 1956, Tukey 1958; delete-a-group: Shao and Wu 1989.)
"""

from __future__ import annotations

import math

import torch

from repcap.geometry.epsilon import gram
from repcap.geometry.epsilon.moments import Moments
from repcap.geometry.epsilon.passes import FirstPass
from repcap.geometry.epsilon.spread import moments_about, needs_care
from repcap.geometry.rows.reader import RowReader

EXTRA_WORK = 2.5e11
"""Up to this n d^2 what is beside epsilon is computed from all rows without being asked for."""
EXTRA_ROWS = 8192
"""Beyond that, from so many random rows, unless asked for. The standard error is then good to about 6 % on SmolLM2."""


def row_terms(reader: RowReader, moments: Moments) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """(row numbers, a_i, b_i) of the rows of `reader`, a_i = u_i . s and b_i = u_i^T G u_i, each (m,), float64.

    The second pass: 2 m d^2 flops less what symmetry saves (about 40 %), memory one block and 4 d^2 bytes.
    """
    weights, panel = _upper(moments.G, reader)
    s = moments.s.to(reader.dtype).to(reader.device)
    indices, a, b = [], [], []
    for block in reader.units():
        units = block.units.to(reader.device)
        total = torch.zeros(len(units), dtype=torch.float64)
        for first in range(0, reader.dim, panel):
            columns = weights[first:, first : first + panel]  # (d - first, p)
            part = (units[:, first:] @ columns) * units[:, first : first + panel]
            total += part.sum(1).cpu().double()
        indices.append(block.indices)
        a.append((units @ s).cpu().double())
        b.append(total)
    empty = torch.empty(0, dtype=torch.float64)
    return torch.cat(indices or [empty.long()]), torch.cat(a or [empty]), torch.cat(b or [empty])


def _upper(G: torch.Tensor, reader: RowReader) -> tuple[torch.Tensor, int]:
    """G with its blocks below the diagonal blocks doubled: u^T G u needs only those, and the diagonal blocks once."""
    panel = max(64, min(512, -(-reader.dim // 8)))
    weights = G.to(reader.dtype, copy=True)
    for first in range(0, reader.dim, panel):
        weights[first + panel :, first : first + panel] *= 2.0
    return weights.to(reader.device), panel


def leave_one_out(count: int, S: float, F: float, a: torch.Tensor, b: torch.Tensor, z: float) -> torch.Tensor:
    """epsilon without row i, (m,) float64, for the rows whose a_i, b_i are given. count >= 3.

    S, F: |s|^2 and |G|_F^2 over all `count` rows.
    """
    left = count - 1
    pairs = left * (left - 1)
    mean = (S - 2.0 * a + 1.0 - left) / pairs
    second = (F - 2.0 * b + 1.0 - left) / pairs
    return mean + z * (second - mean**2).clamp_min(0.0).sqrt()


def without_each(
    reader: RowReader, first: FirstPass, moments: Moments | None, rows: torch.Tensor, z: float
) -> tuple[torch.Tensor, float, torch.Tensor]:
    """(row numbers (m,), epsilon, epsilon without each (m,) float64), all from sums of the same precision.

    moments: those of the first pass, or None where it holds the rows, and then all rows are meant. rows: (m,) numbers.
    One more pass over `rows`; where all cosines are nearly equal one over all rows besides, both in float64.
    """
    if first.held is not None:
        C = gram.cosines(first.held)
        a, b = C.sum(1), C.square().sum(1)
        S, F = float(a.sum()), float(b.sum())
        return first.indices, epsilon_of(first.count, S, F, z), leave_one_out(first.count, S, F, a, b, z)
    assert moments is not None
    if needs_care(moments, reader.dtype):
        return _without_each_about(reader.replaced(dtype=torch.float64), first, moments.s / moments.count, rows, z)
    S, F = float(moments.s @ moments.s), float(moments.G.flatten() @ moments.G.flatten())
    indices, a, b = row_terms(reader.replaced(rows=rows), moments)
    return indices, epsilon_of(first.count, S, F, z), leave_one_out(first.count, S, F, a, b, z)


def epsilon_of(count: int, S: float, F: float, z: float) -> float:
    """epsilon from |s|^2 and |G|_F^2 over `count` rows."""
    pairs = count * (count - 1)
    mean, second = (S - count) / pairs, (F - count) / pairs
    return mean + z * math.sqrt(max(second - mean**2, 0.0))


def _without_each_about(
    reader: RowReader, first: FirstPass, centre: torch.Tensor, rows: torch.Tensor, z: float
) -> tuple[torch.Tensor, float, torch.Tensor]:
    """`without_each` from sums about the mean row m = `centre`, (d,), which keeps the digits of small differences.

    As in `spread.about_mean`, c_ij = |m|^2 + D_ij with v_i = u_i - m, p_i = m.v_i, D_ij = p_i + p_j + v_i.v_j. Over
    all j the D_ij of row i add up to n p_i + P + v_i.sigma and their squares to
    n p_i^2 + m^T V m + v_i^T V v_i + 2 p_i P + 2 p_i v_i.sigma + 2 v_i.(V m), with sigma = sum v_j, V = sum v_j v_j^T,
    P = m.sigma.
    """
    around = moments_about(reader.replaced(rows=first.indices), centre)
    n, sigma, V = around.count, around.s, around.G
    Vm, P = V @ centre, float(centre @ sigma)
    own = 1.0 - float(centre @ centre)  # D_ii
    indices, sums, squares = [], [], []
    for block in reader.replaced(rows=rows).units():
        v = block.units - centre
        p, along = v @ centre, v @ sigma
        indices.append(block.indices)
        sums.append(n * p + P + along - own)
        square = n * p * p + float(centre @ Vm) + ((v @ V) * v).sum(1) + 2.0 * p * (P + along) + 2.0 * (v @ Vm)
        squares.append(square - own * own)
    of_row, squares_of_row = torch.cat(sums), torch.cat(squares)
    total = 2.0 * n * P + float(sigma @ sigma) - n * own
    square_total = 2.0 * n * float(centre @ Vm) + 2.0 * P * P + 4.0 * float(Vm @ sigma)
    square_total += float(V.flatten() @ V.flatten()) - n * own * own
    pairs, left = n * (n - 1), (n - 1) * (n - 2)
    mean, shifts = total / pairs, (total - 2.0 * of_row) / left
    epsilon = mean + z * math.sqrt(max(square_total / pairs - mean * mean, 0.0))
    without = shifts + z * ((square_total - 2.0 * squares_of_row) / left - shifts**2).clamp_min(0.0).sqrt()
    level = float(centre @ centre)
    return torch.cat(indices), level + epsilon, level + without


def standard_error(without: torch.Tensor, count: int) -> float:
    """Jackknife standard error from epsilon without row i, given for all `count` rows or for a random part of them.

    se^2 = (n - 1)/n sum_i (eps_(i) - mean)^2; from m < n rows the sum is scaled up by n / (m - 1).
    """
    m = len(without)
    if m < 2 or count < 3:
        return math.nan
    square = float(((without - without.mean()) ** 2).sum())
    scale = 1.0 if m == count else count / (m - 1)
    return math.sqrt((count - 1) / count * square * scale)
