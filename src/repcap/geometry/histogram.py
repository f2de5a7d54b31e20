"""Counts of pairwise cosines in fine bins, with the most extreme pairs: what `pairs` streams into and merges."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import NDArray

from repcap.errors import InputError

FINE_BINS = 30_000
"""Bins over [-1, 1]; a multiple of the 300 that the paper draws, and small enough that an index fits int16."""

PAPER_BINS = 300


@dataclasses.dataclass(frozen=True, order=True)
class Extreme:
    """One pair of rows and its cosine; i < j."""

    cosine: float
    i: int
    j: int


@dataclasses.dataclass(frozen=True)
class PairCounts:
    """Unordered pairs of rows by cosine. Two halves of the pairs add up to the whole: `a + b`.

    counts: shape (FINE_BINS,), int64; bin b holds cosines in [-1 + b w, -1 + (b + 1) w), w = 2 / FINE_BINS, the last
    one closed. Cosines are float32 products, so one within about 1e-7 of an edge may fall on either side.
    largest, smallest: the `keep` most extreme pairs, most extreme first.
    """

    counts: NDArray[np.int64]
    largest: tuple[Extreme, ...] = ()
    smallest: tuple[Extreme, ...] = ()
    keep: int = 10

    @classmethod
    def empty(cls, keep: int = 10) -> PairCounts:
        return cls(np.zeros(FINE_BINS, dtype=np.int64), keep=keep)

    @property
    def pairs(self) -> int:
        return int(self.counts.sum())

    def __add__(self, other: PairCounts) -> PairCounts:
        if self.keep != other.keep:
            raise InputError(f"cannot merge counts that keep {self.keep} and {other.keep} extreme pairs")
        return PairCounts(
            self.counts + other.counts,
            tuple(sorted(self.largest + other.largest, key=lambda e: (-e.cosine, e.i, e.j))[: self.keep]),
            tuple(sorted(self.smallest + other.smallest)[: self.keep]),
            self.keep,
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain lists, bins with a count only: what a worker sends back."""
        used = np.flatnonzero(self.counts)
        return {
            "bins": used.tolist(),
            "counts": self.counts[used].tolist(),
            "largest": [dataclasses.astuple(e) for e in self.largest],
            "smallest": [dataclasses.astuple(e) for e in self.smallest],
            "keep": self.keep,
        }

    @classmethod
    def from_dict(cls, value: dict[str, Any]) -> PairCounts:
        counts = np.zeros(FINE_BINS, dtype=np.int64)
        counts[value["bins"]] = value["counts"]
        return cls(
            counts,
            tuple(Extreme(*e) for e in value["largest"]),
            tuple(Extreme(*e) for e in value["smallest"]),
            value["keep"],
        )

    def histogram(self, bins: int = PAPER_BINS) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """(edges, counts) over [-1, 1] in `bins` bins; `bins` divides FINE_BINS."""
        if bins < 1 or FINE_BINS % bins:
            raise InputError(f"bins must divide {FINE_BINS}, got {bins}")
        return np.linspace(-1.0, 1.0, bins + 1), self.counts.reshape(bins, -1).sum(axis=1)

    def moments(self) -> tuple[float, float, float, float]:
        """(mean, std, skewness, excess kurtosis) from bin midpoints, with Sheppard's correction of the variance.

        The bins are 6.7e-5 wide: against the cosines themselves mean and std agree to about 1e-7 where many pairs
        share the bins, and to 3.4e-5 in the worst case, all pairs at one edge. NaN without pairs; skewness and
        kurtosis NaN where the spread is less than a bin.
        """
        total = self.pairs
        if not total:
            return (float("nan"),) * 4
        width = 2.0 / FINE_BINS
        middle = -1.0 + (np.arange(FINE_BINS) + 0.5) * width
        share = self.counts / total
        mean = float(share @ middle)
        centred = middle - mean
        square, cube, fourth = (float(share @ centred**power) for power in (2, 3, 4))
        variance = max(square - width**2 / 12.0, 0.0)
        if variance < width**2:
            return mean, float(np.sqrt(variance)), float("nan"), float("nan")
        fourth += -square * width**2 / 2.0 + 7.0 * width**4 / 240.0
        return mean, float(np.sqrt(variance)), cube / variance**1.5, fourth / variance**2 - 3.0

    def below(self, cosine: float) -> float:
        """Share of pairs with a cosine below `cosine`; linear within a bin, so exact to the mass of one bin."""
        if not self.pairs:
            return float("nan")
        edges = np.linspace(-1.0, 1.0, FINE_BINS + 1)
        cumulative = np.concatenate([[0], np.cumsum(self.counts)])
        return float(np.interp(cosine, edges, cumulative)) / self.pairs

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
