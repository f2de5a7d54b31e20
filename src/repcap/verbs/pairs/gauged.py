"""Tails of |cosine| in several gauges: one sweep of pairs for each but the first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import numpy as np

from repcap import geometry
from repcap.errors import InputError
from repcap.geometry.pairs.histogram import PairCounts, Wanted
from repcap.geometry.pairs.tail import GaugeTail
from repcap.matrix import Matrix
from repcap.options import Option

if TYPE_CHECKING:
    import torch

GAUGES = ("stored", "centred", "top1", "whitened")
ALPHAS = (0.0455, 1e-3, 1e-4, 1e-6)


def _shares(text: str) -> tuple[float, ...]:
    """`0.0455,1e-3` as numbers."""
    try:
        return tuple(float(piece) for piece in text.split(","))
    except ValueError:
        raise InputError(f"{text!r} is no list of shares: write them as 0.0455,1e-3") from None


def _names(text: str) -> tuple[str, ...]:
    return tuple(piece.strip() for piece in text.split(","))


Alpha = Annotated[
    Sequence[float],
    Option("Shares of pairs whose |cosine| to give: eps_alpha and d_alpha.", above=0.0, below=1.0, read=_shares,
           metavar="A,A"),
]  # fmt: skip
Gauge = Annotated[
    Sequence[str],
    Option("The tail also of the rows centred, without their strongest direction, whitened.", choices=GAUGES,
           read=_names, metavar="stored,centred,top1,whitened"),
]  # fmt: skip


def gauge_tails(
    matrix: Matrix,
    stored: PairCounts,
    rows: torch.Tensor,
    mask: np.ndarray | None,
    gauges: Sequence[str],
    alphas: Sequence[float],
    *,
    sample: int | None,
    seed: int,
    device: str,
) -> tuple[GaugeTail, ...]:
    """The tail in each gauge; `stored` are the counts of the rows as they are. n^2 d operations each other gauge."""
    found = []
    for gauge in gauges:
        counted = stored
        if gauge != "stored":
            changed = geometry.in_gauge(geometry.plain_reader(matrix, device, rows), gauge)
            if sample is not None:
                counted = geometry.sample_pairs(changed, sample, mask=mask, wanted=Wanted(0), seed=seed)
            else:
                counted = geometry.count_pairs(changed, mask=mask, wanted=Wanted(0), device=device)
        found.append(geometry.gauge_tail(counted, gauge, matrix.dim, alphas))
    return tuple(found)
