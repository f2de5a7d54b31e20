"""The baseline: random directions, the best of many draws."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import torch

from repcap.laws.limits.existence import random_coherence
from repcap.packing.search.method import Found, Task, at_least_one
from repcap.packing.search.starts import generator_for, random_start

BLOCK = 2048


@dataclasses.dataclass(frozen=True)
class RandomLines:
    """The best of `trials` draws of k random directions, beside its prediction.

    Time trials * k^2 d multiply-adds; memory two draws.
    """

    name: ClassVar[str] = "random"
    about: ClassVar[str] = "the best of `trials` random draws"
    baseline: ClassVar[bool] = True
    trials: int = 100

    def __post_init__(self) -> None:
        at_least_one("trials", self.trials)

    def run(self, task: Task) -> Found:
        """The draw with the least coherence; `details` has the median draw and the predicted best."""
        best = torch.empty(0)
        draws: list[float] = []
        for trial in range(self.trials):
            rows = random_start(task.k, task.d, generator_for(task.seed, trial)).to(task.device)
            top = largest_cosine(rows)
            if not draws or top < min(draws):
                best = rows
            draws.append(top)
            task.report(trial + 1, (trial + 1) / self.trials, top, min(draws))
        predicted = float(random_coherence(task.k, task.d, trials=self.trials))
        details = {"trials": self.trials, "median_draw": sorted(draws)[len(draws) // 2], "predicted": predicted}
        return Found(best.cpu(), f"random, best of {self.trials}", details=details)


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
