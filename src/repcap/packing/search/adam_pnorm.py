"""The published loop, for comparison: Adam on the sum of |cos|^p over all pairs, the whole Gram matrix at once.

p follows the rule of the released code, min(int(m / ln d), 20) with m of 40, 50 or 60. The logarithm of the sum is
minimised: Adam is blind to the scale of a loss, but the powers themselves underflow beside its epsilon.
"""

from __future__ import annotations

import dataclasses
import math
import time
from typing import ClassVar

import torch

from repcap.errors import InputError
from repcap.packing.search.method import Budget, Found, Task
from repcap.packing.search.starts import generator_for, random_start, start_from


def exponent(d: int, m: int) -> int:
    """min(int(m / ln d), 20), at least 2.

    >>> exponent(128, 60), exponent(128, 40), exponent(4096, 40)
    (12, 8, 4)
    """
    if d < 2:
        return 20
    return max(2, min(int(m / math.log(d)), 20))


@dataclasses.dataclass(frozen=True)
class AdamPnorm:
    """Adam from one start; the coherence of every iterate is known from its own Gram matrix.

    Time about 6 k^2 d flops a step and several k x k arrays of memory: that is the published method.
    """

    name: ClassVar[str] = "adam-pnorm"
    about: ClassVar[str] = "the published loop, p = min(int(`multiplier` / ln d), 20)"
    baseline: ClassVar[bool] = True
    steps: int | None = 400
    seconds: float | None = None
    target: float | None = None
    init: str = "random"
    multiplier: int = 60
    rate: float = 0.01

    def __post_init__(self) -> None:
        if self.multiplier < 1:
            raise InputError(f"the multiplier m of the exponent rule must be positive, got {self.multiplier}")
        Budget.of(self)

    def run(self, task: Task) -> Found:
        """The best iterate."""
        start = start_from(self.init, task.k, task.d)
        if start is None:
            start = random_start(task.k, task.d, generator_for(task.seed, 0))
        p, budget = exponent(task.d, self.multiplier), Budget.of(self)
        free = start.to(task.device).requires_grad_(True)
        optimiser = torch.optim.Adam([free], lr=self.rate)
        best, best_rows, step = math.inf, start, 0
        began = time.perf_counter()
        while (fraction := budget.fraction(step, time.perf_counter() - began)) < 1.0:
            rows = torch.nn.functional.normalize(free, dim=1)
            size = (rows @ rows.T).abs()
            size = size - torch.diag(torch.diagonal(size))
            top = float(size.detach().max())
            if top < best:
                best, best_rows = top, rows.detach().clone()
            loss = torch.log((size / max(top, 1e-12)).pow(p).sum())
            optimiser.zero_grad(set_to_none=True)
            loss.backward()
            optimiser.step()
            step += 1
            task.report(step, fraction, top, best)
            if budget.target is not None and best <= budget.target:
                break
        details = {"exponent": p, "multiplier": self.multiplier}
        return Found(best_rows.cpu(), f"adam-pnorm p={p}", step, details=details)
