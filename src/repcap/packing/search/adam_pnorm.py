"""The published loop, for comparison: Adam on the sum of |cos|^p over all pairs, the whole Gram matrix at once.

p follows the rule of the released code, min(int(m / ln d), 20) with m of 40, 50 or 60. The logarithm of the sum is
minimised: Adam is blind to the scale of a loss, but the powers themselves underflow beside its epsilon.
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable

import torch

from repcap.errors import InputError
from repcap.packing.search.optimise import Budget

MULTIPLIERS = (40, 50, 60)
RATE = 0.01


def exponent(d: int, m: int) -> int:
    """min(int(m / ln d), 20), at least 2.

    >>> exponent(128, 60), exponent(128, 40), exponent(4096, 40)
    (12, 8, 4)
    """
    if d < 2:
        return 20
    return max(2, min(int(m / math.log(d)), 20))


@dataclasses.dataclass
class AdamResult:
    """Best iterate of one run, and the way there."""

    rows: torch.Tensor
    coherence: float
    p: int
    steps: int
    seconds: float
    trace: list[tuple[float, float]]
    """(seconds, best coherence so far) after every step."""


def adam_pnorm(
    start: torch.Tensor,
    budget: Budget,
    m: int = 60,
    rate: float = RATE,
    each: Callable[[int, float, float, float], None] | None = None,
) -> AdamResult:
    """Adam from the rows `start` (k, d); the coherence of every iterate is known from its own Gram matrix.

    Time about 6 k^2 d flops a step and several k x k arrays of memory: that is the published method.

    Raises
    ------
    InputError
        if m is not positive.
    """
    if m < 1:
        raise InputError(f"the multiplier m of the exponent rule must be positive, got {m}")
    p = exponent(start.shape[1], m)
    free = start.clone().requires_grad_(True)
    optimiser = torch.optim.Adam([free], lr=rate)
    best, best_rows, step = math.inf, start.clone(), 0
    trace: list[tuple[float, float]] = []
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
        trace.append((time.perf_counter() - began, best))
        if each is not None:
            each(step, fraction, top, best)
        if budget.target is not None and best <= budget.target:
            break
    return AdamResult(best_rows, best, p, step, time.perf_counter() - began, trace)
