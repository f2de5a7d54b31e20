"""The baseline: random directions, the best of many draws."""

from __future__ import annotations

import dataclasses

import torch

from repcap.matrix import ProgressFn
from repcap.packing.search.search import generator_for, random_start

BLOCK = 2048


@dataclasses.dataclass(frozen=True)
class RandomResult:
    """The draw with the least coherence."""

    rows: torch.Tensor
    """(k, d) float32."""
    draws: list[float]
    """max |cos| of every draw, float32 arithmetic."""


def largest_cosine(rows: torch.Tensor) -> float:
    """max |cos| of unit rows (k, d) in their own precision, by blocks of 2048 rows."""
    top = 0.0
    for i in range(0, rows.shape[0], BLOCK):
        for j in range(i, rows.shape[0], BLOCK):
            cosines = (rows[i : i + BLOCK] @ rows[j : j + BLOCK].T).abs_()
            if i == j:
                cosines.fill_diagonal_(0.0)
            top = max(top, float(cosines.max()))
    return top


def random_lines(
    k: int,
    d: int,
    trials: int,
    seed: int = 0,
    device: torch.device | None = None,
    on_progress: ProgressFn | None = None,
) -> RandomResult:
    """`trials` draws of k random directions in R^d, and the exact minimum of their coherence.

    Time trials * k^2 d multiply-adds; memory two draws.
    """
    best: torch.Tensor | None = None
    draws: list[float] = []
    for trial in range(trials):
        rows = random_start(k, d, generator_for(seed, trial)).to(device or torch.device("cpu"))
        top = largest_cosine(rows)
        if best is None or top < min(draws):
            best = rows
        draws.append(top)
        if on_progress is not None:
            on_progress(trial + 1, trials)
    assert best is not None
    return RandomResult(best.cpu(), draws)
