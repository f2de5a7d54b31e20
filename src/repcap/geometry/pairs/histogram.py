"""Counts of pairwise cosines in fine bins, exact sums, and the most extreme pairs: what `pairs` streams and merges."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from repcap.errors import InputError

FINE_BINS = 30_000
"""Bins over [-1, 1]; a multiple of the 300 that the paper draws, and small enough that an index fits int16."""

PAPER_BINS = 300

ROUNDING = 5e-7
"""Float32 products of unit rows are within this of their cosines. A pair is beyond epsilon only by more than this, so
that pairs whose cosine is epsilon itself (all rows equal, say) are not split by chance."""


@dataclasses.dataclass(frozen=True, order=True)
class Extreme:
    """One pair of rows and its cosine; i < j."""

    cosine: float
    i: int
    j: int


@dataclasses.dataclass(frozen=True)
class Wanted:
    """What is noted of the pairs beyond their bins; counts add up only where it is the same.

    keep: how many of the most extreme pairs at either end. centre: powers of the cosines are added up about a number
    near it; near the mean they keep the most digits. epsilon: pairs above it and below minus it are counted one by one,
    or None.
    """

    keep: int = 10
    centre: float = 0.0
    epsilon: float | None = None

    @property
    def origin(self) -> int:
        """`centre` in bins from cosine 0, a whole number: float32 takes it away exactly."""
        return round(self.centre * FINE_BINS / 2)


_QUANTUM = 200
"""Sums of powers are whole multiples of 2^-200: whole numbers add up to the same total in any order."""


def quanta(value: float) -> int:
    """A sum of powers as a whole number of quanta. 0 for what is no number."""
    return int(math.ldexp(value, _QUANTUM)) if math.isfinite(value) else 0


@dataclasses.dataclass(frozen=True)
class PairCounts:
    """Unordered pairs of rows by cosine. Two halves of the pairs add up to the whole: `a + b`, in any order.

    counts: shape (FINE_BINS,), int64; bin b holds cosines in [-1 + b w, -1 + (b + 1) w), w = 2 / FINE_BINS, the last
    one closed. Cosines are float32 products, so one within about 1e-7 of an edge may fall on either side.
    largest, smallest: the `keep` most extreme pairs, most extreme first; of equal ones those of the lowest numbers.
    powers: sums of (cosine - centre)^k, k = 1 .. 4, in quanta, with the centre at a whole number of bins.
    above, below: pairs beyond epsilon by more than `ROUNDING`, on either side.
    """

    counts: NDArray[np.int64]
    largest: tuple[Extreme, ...] = ()
    smallest: tuple[Extreme, ...] = ()
    wanted: Wanted = Wanted()
    powers: tuple[int, int, int, int] = (0, 0, 0, 0)
    above: int = 0
    below: int = 0

    @classmethod
    def empty(cls, wanted: Wanted = Wanted()) -> PairCounts:
        return cls(np.zeros(FINE_BINS, dtype=np.int64), wanted=wanted)

    @property
    def pairs(self) -> int:
        return int(self.counts.sum())

    def __add__(self, other: PairCounts) -> PairCounts:
        if self.wanted != other.wanted:
            raise InputError(f"cannot merge counts of {self.wanted} and of {other.wanted}")
        keep = self.wanted.keep
        one, two, three, four = (x + y for x, y in zip(self.powers, other.powers, strict=True))
        return PairCounts(
            self.counts + other.counts,
            tuple(sorted({*self.largest, *other.largest}, key=lambda e: (-e.cosine, e.i, e.j))[:keep]),
            tuple(sorted({*self.smallest, *other.smallest})[:keep]),
            self.wanted,
            (one, two, three, four),
            self.above + other.above,
            self.below + other.below,
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain lists, bins with a count only: what a worker sends back."""
        used = np.flatnonzero(self.counts)
        return {
            "bins": used.tolist(),
            "counts": self.counts[used].tolist(),
            "largest": [dataclasses.astuple(e) for e in self.largest],
            "smallest": [dataclasses.astuple(e) for e in self.smallest],
            "wanted": dataclasses.astuple(self.wanted),
            "powers": list(self.powers),
            "above": self.above,
            "below": self.below,
        }

    @classmethod
    def from_dict(cls, value: dict[str, Any]) -> PairCounts:
        counts = np.zeros(FINE_BINS, dtype=np.int64)
        counts[value["bins"]] = value["counts"]
        one, two, three, four = value["powers"]
        return cls(
            counts,
            tuple(Extreme(*e) for e in value["largest"]),
            tuple(Extreme(*e) for e in value["smallest"]),
            Wanted(*value["wanted"]),
            (one, two, three, four),
            value["above"],
            value["below"],
        )

    def histogram(self, bins: int = PAPER_BINS) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """(edges, counts) over [-1, 1] in `bins` bins; `bins` divides FINE_BINS."""
        if bins < 1 or FINE_BINS % bins:
            raise InputError(f"bins must divide {FINE_BINS}, got {bins}")
        return np.linspace(-1.0, 1.0, bins + 1), self.counts.reshape(bins, -1).sum(axis=1)

    def moments(self) -> tuple[float, float, float, float]:
        """(mean, std, skewness, excess kurtosis) of the cosines, from the sums of their powers.

        The cosines are float32 products, within about 1e-7, and so are mean and std where the centre is near the mean;
        skewness and kurtosis are right to some 1e-7 / std. NaN without pairs; skewness and kurtosis NaN where the
        spread is no more than that rounding.
        """
        total = self.pairs
        if not total:
            return (float("nan"),) * 4
        first, second, third, fourth = (math.ldexp(power / total, -_QUANTUM) for power in self.powers)
        mean = 2.0 * self.wanted.origin / FINE_BINS + first
        variance = max(second - first**2, 0.0)
        std = math.sqrt(variance)
        if std < 4.0 * ROUNDING:
            return mean, std, float("nan"), float("nan")
        cube = third - 3.0 * first * second + 2.0 * first**3
        square = fourth - 4.0 * first * third + 6.0 * first**2 * second - 3.0 * first**4
        return mean, std, cube / std**3, square / variance**2 - 3.0

    def share_below(self, cosine: float) -> float:
        """Share of pairs with a cosine below `cosine`; linear within a bin, so exact to the mass of one bin.

        Where the extremes are known, no pair counts as beyond them.
        """
        total = self.pairs
        if not total:
            return float("nan")
        if self.smallest and cosine <= self.smallest[0].cosine + ROUNDING:
            return 0.0
        if self.largest and cosine >= self.largest[0].cosine - ROUNDING:
            return 1.0
        edges = np.linspace(-1.0, 1.0, FINE_BINS + 1)
        cumulative = np.concatenate([[0], np.cumsum(self.counts)])
        return float(np.interp(cosine, edges, cumulative)) / total

    def quantile(self, share: float) -> float:
        """Cosine below which `share` of the pairs lie, to the width of a bin (6.7e-5)."""
        if not 0.0 <= share <= 1.0:
            raise InputError(f"a quantile is asked for by a share from 0 to 1, got {share}")
        total = self.pairs
        if not total:
            return float("nan")
        cumulative = np.cumsum(self.counts)
        rank = share * total
        bin_ = int(np.searchsorted(cumulative, rank, side="left"))
        while self.counts[bin_] == 0:  # rank 0 falls before the first pair
            bin_ += 1
        before = int(cumulative[bin_] - self.counts[bin_])
        within = max(rank - before, 0.0) / int(self.counts[bin_])
        return float(-1.0 + (bin_ + within) * 2.0 / FINE_BINS)
