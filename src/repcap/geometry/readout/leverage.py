"""Leverages: how well each row can be told from all others by a linear readout.

With unit rows u_i, G = U^T U and its pseudo-inverse G^+, the leverage is l_i = u_i^T G^+ u_i, between 0 and 1, and the
leverages add up to the rank of U. The readout w_i = G^+ u_i / l_i reads 1 on its own row and, among all that do, has
the least mean square on the others (a least squares problem with one constraint):

    q_i = (1 / l_i - 1) / (n - 1)

A linear map of the space, u -> A u for all rows alike, leaves l_i and q_i as they are.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import torch
from scipy.special import ndtri

from repcap.geometry.rows.reader import RowReader
from repcap.numerics import DELTA, THETA

_CUTOFF = 1e-10
"""Eigenvalues of G below this part of the largest one are rounding: there is no such direction among the rows."""


@dataclasses.dataclass(frozen=True, eq=False)
class Leverages:
    """indices: (n,) row numbers. leverage: (n,) float64, l_i. rank: of U. dim: d."""

    indices: torch.Tensor
    leverage: torch.Tensor
    rank: int
    dim: int

    @property
    def count(self) -> int:
        return len(self.indices)

    @property
    def interference(self) -> torch.Tensor:
        """(n,) float64: q_i, the mean square of the best linear readout of row i on the others; 0 where l_i = 1."""
        return (1.0 / self.leverage.clamp(max=1.0) - 1.0) / max(self.count - 1, 1)


def pseudo_inverse(G: torch.Tensor) -> tuple[torch.Tensor, int]:
    """(G^+, rank) of a symmetric (d, d) float64 matrix without negative eigenvalues. O(d^3)."""
    values, vectors = torch.linalg.eigh(G)
    kept = values > _CUTOFF * values[-1]
    chosen = vectors[:, kept]
    return (chosen / values[kept]) @ chosen.T, int(kept.sum())


def leverages(reader: RowReader, inverse: torch.Tensor, rank: int) -> Leverages:
    """The leverages of the rows of `reader`, (n, d), float64. One pass, 2 n d^2 operations; memory one block.

    inverse: G^+ of these rows, (d, d) float64.
    """
    indices, found = [], []
    for block in reader.units():
        units = block.units.double()
        indices.append(block.indices)
        found.append(((units @ inverse) * units).sum(1))
    return Leverages(torch.cat(indices), torch.cat(found), rank, reader.dim)


def welch_interference(count: int, dim: int) -> float:
    """The least that the mean square cosine of n directions in d dimensions can be: (n - d) / (d (n - 1)), or 0.

    L. Welch, IEEE Trans. Inform. Theory 20 (1974). Its inverse, about d, is the most that an effective dimension can
    be.

    >>> round(1 / welch_interference(49152, 576), 1)
    582.8
    """
    return max(0.0, (count - dim) / (dim * (count - 1.0))) if count > 1 else 0.0


@dataclasses.dataclass(frozen=True)
class ReadoutLimits:
    """What G alone says of linear readouts of n unit rows of rank r.

    mean_leverage: r / n, exact. direct_dim: 1 / mean squared cosine, exact; None where all rows are orthogonal.
    linear_limit: r (n - 1)/(n - r), the most that the effective dimension of a linear readout can be, for the mean of
    1 / l_i is at least n / r; None where n = r and nothing need interfere. s_limit: theta^2 linear_limit / z^2 with
    z = Phi^-1(1 - delta/2), at most n: where readings of that mean square, spread as a normal curve, pass theta in the
    share delta. Large weights and uneven rows make s_max less; a row of few equal weights can be read at more.
    """

    rank: int
    mean_leverage: float
    direct_dim: float | None
    linear_limit: float | None
    s_limit: float
    theta: float
    delta: float

    def to_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)


def readout_limits(count: int, rank: int, second: float, theta: float = THETA, delta: float = DELTA) -> ReadoutLimits:
    """Limits of linear readouts of n = `count` rows of rank r with mean squared cosine `second`. O(1).

    A rank that is too large leaves the limits true.

    >>> found = readout_limits(49152, 576, 0.2161)
    >>> round(found.linear_limit, 1), round(found.s_limit, 1)
    (582.8, 13.5)
    """
    least = welch_interference(count, rank)
    normal = theta**2 / (least * float(ndtri(1.0 - delta / 2.0)) ** 2) if least else float(count)
    return ReadoutLimits(
        rank=rank,
        mean_leverage=rank / count,
        direct_dim=1.0 / second if second > 0.0 else None,
        linear_limit=1.0 / least if least else None,
        s_limit=min(normal, float(count)),
        theta=theta,
        delta=delta,
    )


def rank_of(eigenvalues: Sequence[float], count: int, dim: int) -> int:
    """Rank of n = `count` rows from the eigenvalues of G, descending; min(n, d) at most, and where there are none.

    Of products in float32 their rounding may count as a direction, so that the rank can come out too large.
    """
    return sum(value > _CUTOFF * eigenvalues[0] for value in eigenvalues) if eigenvalues else min(count, dim)
