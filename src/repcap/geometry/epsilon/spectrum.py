"""The spectrum of G = U^T U: how many directions the rows really use, and how much the strongest one holds."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import torch
from scipy.sparse.linalg import eigsh

EXACT_DIM = 1536
"""Up to this size all eigenvalues are computed without being asked for: about 2 s on two cores."""
_LISTED = 10


@dataclasses.dataclass(frozen=True)
class Spectrum:
    """Eigenvalues l of G, divided by their sum n.

    participation_ratio: (sum l)^2 / sum l^2 = n^2 / |G|_F^2, between 1 and d.
    entropy_rank: exp(-sum p ln p) with p = l / n (Roy and Vetterli 2007), or None where not all are known.
    top_shares: the largest p, at most ten, descending; empty where none was computed.
    eigenvalues: all of G, descending, min(n, d) of them; empty where not all were computed.
    """

    participation_ratio: float
    entropy_rank: float | None = None
    top_shares: tuple[float, ...] = ()
    eigenvalues: tuple[float, ...] = ()

    @property
    def top_share(self) -> float | None:
        """Share of the mean squared length that lies along the strongest direction."""
        return self.top_shares[0] if self.top_shares else None

    def to_dict(self) -> dict[str, Any]:
        return {
            "participation_ratio": self.participation_ratio,
            "entropy_rank": self.entropy_rank,
            "top_share": self.top_share,
            "top_shares": list(self.top_shares),
            "eigenvalues": list(self.eigenvalues),
        }


def participation_ratio(count: int, square: float) -> float:
    """n^2 / |G|_F^2 for n unit rows, square = |G|_F^2."""
    return count * count / square


def spectrum(symmetric: torch.Tensor, count: int, dim: int) -> Spectrum:
    """All min(n, d) eigenvalues of G, n = `count`, d = `dim`. O(min(n, d)^3) time.

    symmetric: G itself, (d, d), or the cosines, (n, n), which have the same eigenvalues but for zeros.
    """
    square = float(symmetric.flatten() @ symmetric.flatten())
    values = torch.linalg.eigvalsh(symmetric.cpu()).flip(0)[: min(count, dim)].clamp_min(0.0).numpy()
    shares = values / values.sum()
    used = shares[shares > 0.0]
    entropy_rank = float(np.exp(-(used * np.log(used)).sum()))
    top = tuple(float(share) for share in shares[:_LISTED])
    return Spectrum(participation_ratio(count, square), entropy_rank, top, tuple(float(value) for value in values))


def leading_spectrum(G: torch.Tensor, count: int, m: int) -> Spectrum:
    """Only the m < d largest eigenvalues, by Lanczos: about 30 products with (d, d) G where one direction leads."""
    square = float(G.flatten() @ G.flatten())
    values = _lanczos(G, m)[0][::-1]
    return Spectrum(participation_ratio(count, square), None, tuple(float(value) / count for value in values))


def top_directions(G: torch.Tensor, m: int) -> torch.Tensor:
    """(d, m) float64, orthonormal: eigenvectors of (d, d) G with the m largest eigenvalues, m <= d."""
    if G.shape[0] <= EXACT_DIM or m > G.shape[0] // 10:
        vectors: torch.Tensor = torch.linalg.eigh(G)[1]
        return vectors[:, -m:].flip(1)
    return torch.from_numpy(_lanczos(G, m)[1][:, ::-1].copy())


def _lanczos(G: torch.Tensor, m: int) -> tuple[np.ndarray, np.ndarray]:
    start = np.random.default_rng(0).standard_normal(G.shape[0])  # fixed, so that a run can be repeated
    values, vectors = eigsh(G.numpy(), k=m, which="LA", v0=start)
    return np.asarray(values), np.asarray(vectors)
