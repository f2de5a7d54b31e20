"""How far the numbers of a random sample of pairs can be trusted: 95 % intervals."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

from repcap.geometry.pairs.histogram import PairCounts
from repcap.geometry.pairs.tail import Tail

NORMAL_95 = 1.959963984540054
"""97.5 % quantile of the standard normal distribution."""

Interval = tuple[float, float]


@dataclasses.dataclass(frozen=True)
class SampleIntervals:
    """95 % intervals of what a sample of pairs estimates, each drawn independently of the others.

    mean, std, epsilon: the estimate +- 1.96 `epsilon_se` and its kin (delta method). above, below: Wilson's interval of
    a share. quantiles: from order statistics; -1 or 1 where the sample is too small to bound the quantile on that side.
    """

    mean: Interval
    std: Interval
    epsilon: Interval
    epsilon_se: float
    above: Interval
    below: Interval
    quantiles: tuple[Interval, ...]

    def to_dict(self) -> dict[str, Any]:
        record = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        record.pop("epsilon_se")
        return {
            "level": 0.95,
            **{key: list(value) for key, value in record.items() if key != "quantiles"},
            "quantiles": [list(one) for one in self.quantiles],
        }


def sample_intervals(counted: PairCounts, z: float, tail: Tail, shares: Sequence[float]) -> SampleIntervals:
    """Intervals of a sample's moments, of its shares beyond epsilon, and of its quantiles at `shares`.

    With M pairs, skewness g and excess kurtosis h: Var(mean) = s^2/M, Cov(mean, std) = s^2 g/(2M),
    Var(std) = s^2 (h + 2)/(4M).
    """
    mean, std, skewness, kurtosis = counted.moments()
    pairs = counted.pairs
    if math.isnan(skewness):  # no more spread than rounding
        skewness = kurtosis = 0.0
    se_mean = std / math.sqrt(pairs)
    se_std = se_mean * math.sqrt(max(0.0, kurtosis + 2.0)) / 2.0
    se = se_mean * math.sqrt(max(0.0, 1.0 + z * skewness + z * z * (kurtosis + 2.0) / 4.0))
    return SampleIntervals(
        mean=_around(mean, se_mean),
        std=(max(0.0, std - NORMAL_95 * se_std), std + NORMAL_95 * se_std),
        epsilon=_around(mean + z * std, se),
        epsilon_se=se,
        above=wilson(tail.above, pairs),
        below=wilson(tail.below, pairs),
        quantiles=tuple(_quantile(counted, share) for share in shares),
    )


def _around(value: float, se: float) -> Interval:
    return value - NORMAL_95 * se, value + NORMAL_95 * se


def wilson(share: float, count: int) -> Interval:
    """Wilson's 95 % interval (1927) of a probability of which `count` independent draws showed `share`."""
    square = NORMAL_95**2 / count
    middle = (share + square / 2.0) / (1.0 + square)
    half = NORMAL_95 / (1.0 + square) * math.sqrt(share * (1.0 - share) / count + square / (4.0 * count))
    return max(0.0, middle - half) if share > 0.0 else 0.0, min(1.0, middle + half) if share < 1.0 else 1.0


def _quantile(counted: PairCounts, share: float) -> Interval:
    """Sample quantiles at the ends of the interval of the share of draws that fall below the quantile."""
    low, high = wilson(share, counted.pairs)
    return (
        counted.quantile(low) if low * counted.pairs >= 1.0 else -1.0,
        counted.quantile(high) if (1.0 - high) * counted.pairs >= 1.0 else 1.0,
    )
