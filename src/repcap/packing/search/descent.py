"""Path-following descent on the smoothed coherence: one start, any size.

The objective is log sum exp(beta |g_ij|). beta = c / m follows a path: c small at first, where every pair pushes,
and large at the end, where only the pairs near the maximum m do. Each row's gradient is divided by its own sum of
weights (a diagonal preconditioner: rows in crowded places do not move further than others), and Nesterov momentum
carries the rows along. docs/packing.md says what else was tried.
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable
from typing import Any

import torch

from repcap.packing.search.gradient import WORKING, BlockPass
from repcap.packing.search.keep import BestRows
from repcap.packing.search.method import Budget
from repcap.packing.search.symmetry import TRIVIAL, Cyclic

UPDATE_ROWS = 4096
"""Rows that the update touches at once, so that it needs no (k, d) temporaries."""

EXACT = 1e-6
"""Coherence below which rows are orthogonal as far as float32 can tell: nothing is left to descend."""


@dataclasses.dataclass(frozen=True)
class Schedule:
    """How the descent runs; the defaults are those of docs/packing.md."""

    momentum: float = 0.95
    step: float = 0.25
    """Step length in units of d / beta."""
    c_first: float = 4.0
    c_last: float = 1500.0
    power: float = 2.0
    """c = c_first (c_last / c_first)^(f^power), f the fraction of the budget used."""

    def near(self, bound: float) -> Schedule:
        """The schedule for lines whose coherence is at least `bound`: c grows as 1/(1 - bound^2) above 1/2, where many
        lines stand in few dimensions and small angles decide; it is 10 times larger at k = 100, d = 3."""
        rest = max(1.0 - bound * bound, 1e-4)  # beyond, beta passes what float32 cosines resolve
        sharper = max(1.0, 0.75 / rest)
        return dataclasses.replace(self, c_first=self.c_first * sharper, c_last=self.c_last * sharper)

    def sharpness(self, fraction: float) -> float:
        """c = beta m at this fraction (0 to 1) of the budget."""
        return self.c_first * float((self.c_last / self.c_first) ** (min(fraction, 1.0) ** self.power))


class Descent:
    """State of one descent. Memory: 3 k d float32 (rows, velocity, gradient) and the blocks of the pass.

    start: (k, d), or (k/g, d) under a symmetry of order g: one line of each orbit.

    The rows held are the look-ahead points Y = X + momentum V of Nesterov's form, so that the pass that gives the
    gradient also gives the coherence of the very rows that are kept as the best.
    """

    def __init__(
        self,
        start: torch.Tensor,
        device: torch.device,
        schedule: Schedule | None = None,
        symmetry: Cyclic = TRIVIAL,
        precision: str = "float32",
    ) -> None:
        count, d = start.shape
        self.symmetry = symmetry
        self.schedule = schedule or Schedule()
        self.rows = torch.nn.functional.normalize(start.to(device=device, dtype=WORKING[precision]), dim=1)
        self.velocity = torch.zeros_like(self.rows)
        self.gradient = torch.empty_like(self.rows)
        self.block_pass = BlockPass(count, device, symmetry, precision=precision)
        self.best = BestRows(count, d, device, WORKING[precision])
        self.step_count = 0
        self.elapsed = 0.0
        self.maximum = 1.0
        """max |cos| of the rows at the last pass."""
        self._measured = False

    def step(self, fraction: float) -> float:
        """One pass and one update at this fraction of the budget; return the coherence of the rows passed over."""
        if not self._measured:
            self.maximum, self._measured = self._measure(), True
        beta = self.schedule.sharpness(fraction) / max(self.maximum, EXACT)
        self.maximum = self.block_pass(self.rows, beta, self.maximum, self.gradient)
        self.best.offer(self.maximum, self.rows)
        self._update(self.schedule.step * self.rows.shape[1] / beta)
        self.step_count += 1
        return self.maximum

    def _measure(self) -> float:
        # beta = 1: the pass is used for its maximum alone.
        return self.block_pass(self.rows, 1.0, 1.0, self.gradient)

    def _update(self, length: float) -> None:
        momentum = self.schedule.momentum
        weights = self.block_pass.weights.clamp_(min=torch.finfo(self.rows.dtype).tiny)
        for first in range(0, self.rows.shape[0], UPDATE_ROWS):
            part = slice(first, first + UPDATE_ROWS)
            y, v, g = self.rows[part], self.velocity[part], self.gradient[part]
            g /= weights[part, None]
            g.addcmul_(y, (g * y).sum(dim=1, keepdim=True), value=-1.0)  # tangent to the sphere at y
            # Y = X + mu V before; X + V' + mu V' after, with V' = mu V - length g.
            y.add_(v, alpha=-momentum)
            v.mul_(momentum).add_(g, alpha=-length)
            y.add_(v, alpha=1.0 + momentum)
            y /= torch.linalg.vector_norm(y, dim=1, keepdim=True)

    def lines(self) -> torch.Tensor:
        """All k lines of the best rows so far, (k, d) in the working precision, on the cpu."""
        lines = self.symmetry.expand(self.best.rows())
        for first in range(0, lines.shape[0], UPDATE_ROWS):
            part = lines[first : first + UPDATE_ROWS]
            part /= torch.linalg.vector_norm(part, dim=1, keepdim=True)
        return lines

    def release(self) -> None:
        """Give up rows, velocity, gradient and blocks; `best` and `lines` stay."""
        self.rows = self.velocity = self.gradient = torch.empty(0)
        del self.block_pass

    def state(self) -> tuple[dict[str, torch.Tensor], dict[str, Any]]:
        """What `restore` needs: tensors, and numbers that survive JSON."""
        tensors = {"rows": self.rows, "velocity": self.velocity}
        if math.isfinite(self.best.coherence):
            tensors["best"] = self.best.rows()
        numbers = {
            "step": self.step_count,
            "elapsed": self.elapsed,
            "maximum": self.maximum,
            "best": self.best.coherence,
            "symmetry": dataclasses.asdict(self.symmetry),
        }
        return tensors, numbers

    def restore(self, tensors: dict[str, torch.Tensor], numbers: dict[str, Any]) -> None:
        """Go on from a `state` of a descent of the same size and symmetry."""
        self.rows.copy_(tensors["rows"])
        norms = torch.linalg.vector_norm(self.rows, dim=1, keepdim=True)
        if float((norms - 1.0).abs().max()) > 1e-5:  # Ctrl-C came between a move and its normalisation
            self.rows /= norms
        self.velocity.copy_(tensors["velocity"])
        if "best" in tensors:
            self.best.offer(float(numbers["best"]), tensors["best"].to(self.rows.device))
        self.step_count, self.elapsed = int(numbers["step"]), float(numbers["elapsed"])
        self.maximum, self._measured = float(numbers["maximum"]), self.step_count > 0

    def finish(self) -> None:
        """Measure the rows that the last update left, which may be the best."""
        self.maximum = self._measure()
        self.best.offer(self.maximum, self.rows)

    def run(self, budget: Budget, each: Callable[[Descent, float], None] | None = None) -> None:
        """Step until the budget is used or its target reached; `each(descent, fraction)` after every step.

        An exception out of `each` (or Ctrl-C) leaves the state whole: `best` holds the best rows until then.
        """
        began = time.perf_counter() - self.elapsed
        while (fraction := budget.fraction(self.step_count, self.elapsed)) < 1.0:
            self.step(fraction)
            self.elapsed = time.perf_counter() - began
            if each is not None:
                each(self, budget.fraction(self.step_count, self.elapsed))
            if self.maximum < EXACT or (budget.target is not None and self.best.coherence <= budget.target):
                return
        self.finish()
        self.elapsed = time.perf_counter() - began
