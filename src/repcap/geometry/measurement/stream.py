"""Moments of vectors that come by once, in blocks, and are not kept: states of a model as it reads a text.

The standard error is a jackknife over the blocks, because neighbouring vectors of a stream depend on each other
(Kuensch 1989); blocks may differ in size (Busing, Meijer and van der Leeden 1999). It needs the stream a second time:
leaving out block k takes |s|^2 - 2 s.s_k + |s_k|^2 and |G|_F^2 - 2 <G, G_k> + |G_k|_F^2, and the middle terms need the
whole sums.
"""

from __future__ import annotations

import math

import torch

from repcap.errors import VectorsError
from repcap.geometry.epsilon.epsilon import Spread
from repcap.geometry.epsilon.moments import Moments, MomentsBuilder
from repcap.geometry.readout.leverage import ReadoutLimits, rank_of, readout_limits
from repcap.geometry.rows.unit_rows import Normaliser
from repcap.numerics import Z_DEFAULT


class StreamMoments:
    """Two passes over a stream of (m, d) blocks: exact mean and standard deviation, then their standard error.

    All sums and products are float64, on the cpu. Memory: 8 d^2 bytes in the first pass, 16 d^2 in the second (the sums
    about the mean row), at most 512 rows and one block, a few numbers a block.
    """

    def __init__(self, dim: int) -> None:
        self.dim = dim
        self._builder: FedBuilder | None = FedBuilder(dim)
        self._moments: Moments | None = None
        self._centred: FedBuilder | None = None
        self._total = torch.zeros(dim, dtype=torch.float64)
        self._inner: list[tuple[int, float, float]] = []
        self._outer: list[tuple[float, float]] = []
        self.dropped = 0

    def add(self, block: torch.Tensor) -> None:
        """First pass: one whole block, (m, d). O(m d^2 + m^2 d)."""
        if self._builder is None:
            raise RuntimeError("the first pass is over")
        found = Normaliser(torch.float64)(block, torch.arange(len(block)))
        self.dropped += len(found.dropped)
        units = found.units
        self._builder.add(units)
        self._total += found.norms @ units
        s = units.sum(0)
        gram = units @ units.T
        self._inner.append((len(units), float(s @ s), float(gram.square().sum())))

    @property
    def moments(self) -> Moments:
        """Moments of the first pass, which ends here."""
        if self._moments is None:
            assert self._builder is not None
            self._moments, self._builder = self._builder.result(), None
        return self._moments

    def add_again(self, block: torch.Tensor) -> None:
        """Second pass: the same blocks in the same order. O(m d^2)."""
        moments = self.moments
        if self._centred is None:
            self._centred = FedBuilder(self.dim)
        found = Normaliser(torch.float64)(block, torch.arange(len(block)))
        units = found.units
        a, b = float((units @ moments.s).sum()), float(((units @ moments.G) * units).sum())
        self._outer.append((a, b))
        rest = units * found.norms[:, None] - self._total / max(moments.count, 1)
        left = torch.linalg.vector_norm(rest, dim=1)
        kept = left > 1e-9 * found.norms  # a state equal to the mean state has no direction from it
        if bool(kept.any()):
            self._centred.add(rest[kept] / left[kept, None])

    def spread(self, label: str, z: float = Z_DEFAULT) -> Spread:
        """Mean and standard deviation over all pairs of vectors."""
        found = self.moments
        _need_pair(found.count)
        return Spread(label, found.count, self.dim, found.mean, found.std, z, self.dropped)

    def readout(self) -> ReadoutLimits:
        """What their Gram matrix says of linear readouts, its rank taken as min(n, d). O(1)."""
        found = self.spread("all")
        return readout_limits(found.count, rank_of((), found.count, self.dim), found.second)

    def centred(self, z: float = Z_DEFAULT) -> Spread | None:
        """The same of the vectors less their mean, after the second pass; None where fewer than two are left.

        Ends the second pass.
        """
        if self._centred is None or self._centred.count < 2:
            return None
        found, self._centred = self._centred.result(), None
        return Spread("centred", found.count, self.dim, found.mean, found.std, z)

    def standard_error(self, z: float = Z_DEFAULT) -> float | None:
        """Jackknife standard error of epsilon over blocks, after the second pass; None from fewer than three blocks."""
        if len(self._outer) != len(self._inner):
            raise RuntimeError(f"{len(self._outer)} of {len(self._inner)} blocks came by again")
        found = self.moments
        S, F = float(found.s @ found.s), float(found.G.flatten() @ found.G.flatten())
        sizes, without = [], []
        for (size, s2, g2), (a, b) in zip(self._inner, self._outer, strict=True):
            left = found.count - size
            if size and left >= 2:
                sizes.append(size)
                without.append(_epsilon(left, S - 2.0 * a + s2, F - 2.0 * b + g2, z))
        if len(sizes) < 3:
            return None
        return block_jackknife(found.mean + z * found.std, without, sizes)


class FedBuilder:
    """A MomentsBuilder in float64, on the cpu, fed 512 rows or more at a time: every call of it goes over all of G."""

    FEED = 512

    def __init__(self, dim: int) -> None:
        self._builder = MomentsBuilder(dim, torch.device("cpu"), torch.float64)
        self._pending: list[torch.Tensor] = []
        self.count = 0

    def add(self, units: torch.Tensor) -> None:
        self._pending.append(units)
        self.count += len(units)
        if sum(map(len, self._pending)) >= self.FEED:
            self._feed()

    def _feed(self) -> None:
        if self._pending:
            self._builder.add(torch.cat(self._pending))
            self._pending = []

    def result(self) -> Moments:
        self._feed()
        return self._builder.result()


def _need_pair(count: int) -> None:
    if count < 2:
        raise VectorsError(f"{count} vectors with a direction make no pair: give a longer text")


def _epsilon(count: int, S: float, F: float, z: float) -> float:
    pairs = count * (count - 1)
    mean, second = (S - count) / pairs, (F - count) / pairs
    return mean + z * math.sqrt(max(second - mean * mean, 0.0))


def block_jackknife(value: float, without: list[float], sizes: list[int]) -> float:
    """Standard error of a statistic from its values without each block, the blocks being of these sizes.

    With n = sum m_k, h_k = n / m_k and pseudo-values p_k = h_k value - (h_k - 1) without_k, and J their jackknife
    estimate, the variance is 1/g sum_k (p_k - J)^2 / (h_k - 1) (Busing, Meijer and van der Leeden 1999, eq. 10). For
    equal sizes this is the usual delete-a-group jackknife.
    """
    n, g = sum(sizes), len(sizes)
    estimate = g * value - sum((1.0 - m / n) * w for w, m in zip(without, sizes, strict=True))
    total = 0.0
    for w, m in zip(without, sizes, strict=True):
        h = n / m
        total += (h * value - (h - 1.0) * w - estimate) ** 2 / (h - 1.0)
    return math.sqrt(total / g)
