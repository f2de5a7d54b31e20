"""How heavy the tail of the cosines is, against two models of it: a normal curve and random directions."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

from repcap.geometry.pairs.histogram import PairCounts
from repcap.laws.limits.existence import log_cap

ALPHAS = (0.0455, 1e-3, 1e-4, 1e-6)
"""0.0455 is the share of a normal curve beyond two standard deviations."""
GAUGES = ("stored", "centred", "top1", "whitened")
"""Names of what `geometry.readout.gauges` does to rows before their pairs are counted."""


@dataclasses.dataclass(frozen=True)
class Tail:
    """Shares of pairs beyond +-epsilon: `above` it, `below` minus it, and `both`."""

    above: float
    below: float

    @property
    def both(self) -> float:
        """Share of pairs with |cosine| > epsilon; all of them where epsilon is below 0, and the two sides overlap."""
        return min(self.above + self.below, 1.0)

    def to_dict(self) -> dict[str, Any]:
        return {"above": self.above, "below": self.below, "both": self.both}


@dataclasses.dataclass(frozen=True)
class TailPoint:
    """epsilon: |cosine| that a share alpha of the pairs reaches, eps_alpha. dim: d_alpha, the dimension in which random
    directions have the same. random: eps_alpha of random directions in R^d. None where too few pairs were counted.
    """

    alpha: float
    epsilon: float | None
    dim: float | None
    random: float


@dataclasses.dataclass(frozen=True)
class GaugeTail:
    """The tail of |cosine| of the rows in one gauge."""

    gauge: str
    points: tuple[TailPoint, ...]

    def to_dict(self) -> dict[str, Any]:
        return {"gauge": self.gauge, "points": [dataclasses.asdict(point) for point in self.points]}


def measured_tail(counts: PairCounts, epsilon: float) -> Tail:
    """Shares of pairs with a cosine above epsilon and below -epsilon.

    Exact where `counts` was made for this epsilon (a pair within float32 rounding of it is not beyond it), else to the
    mass of one fine bin.
    """
    if counts.wanted.epsilon == epsilon and counts.pairs:
        return Tail(counts.above / counts.pairs, counts.below / counts.pairs)
    return Tail(max(0.0, 1.0 - counts.share_below(epsilon)), counts.share_below(-epsilon))


def normal_tail(mean: float, std: float, epsilon: float) -> Tail:
    """The same of a normal distribution with this mean and standard deviation."""
    if std == 0.0:
        return Tail(float(mean > epsilon), float(mean < -epsilon))
    upper: Callable[[float], float] = lambda x: 0.5 * math.erfc(x / math.sqrt(2.0))  # noqa: E731 - reads as the formula
    return Tail(upper((epsilon - mean) / std), upper((epsilon + mean) / std))


def random_tail(dim: int, epsilon: float) -> Tail:
    """The same of random directions in R^d, exactly: half of P(|cos| >= epsilon) on each side.

    The cosine c of two independent random directions has (c + 1)/2 ~ Beta((d - 1)/2, (d - 1)/2), so
    P(|c| >= e) = I_{1-e^2}((d - 1)/2, 1/2). In d = 1 every pair is at +-1. Where epsilon is below 0, `above` it and
    `below` -epsilon hold more than half each.
    """
    if epsilon < 0.0:
        side = 1.0 - random_tail(dim, -epsilon).above
    elif epsilon >= 1.0:
        side = 0.0
    elif epsilon == 0.0 or dim == 1:
        side = 0.5
    else:
        side = 0.5 * math.exp(float(log_cap(dim, epsilon)))
    return Tail(side, side)


def random_moments(dim: int) -> dict[str, float]:
    """mean, std, skewness and excess kurtosis of the cosine of random directions in R^d: 0, d^-1/2, 0, -6/(d + 2)."""
    return {"mean": 0.0, "std": dim**-0.5, "skewness": 0.0, "excess_kurtosis": -6.0 / (dim + 2.0)}
