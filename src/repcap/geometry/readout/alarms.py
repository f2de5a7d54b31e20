"""False alarms of a linear readout: how often an idle row reads above a threshold while s others are active.

Row i reads sum_j a_j w_ij over the s active rows j, a_j = +1 or -1 at random, w_ij = w_i . u_j. Of s rows drawn at
random the reading is a sum of s independent draws from the weights of row i, so its distribution is the s-fold
convolution of theirs: with phi_i the characteristic function of the weights (real, for the signs make them symmetric),

    FA(s) = mean over i of P(|reading| > theta) = sum_k c_k mean_i phi_i(k)^s

on a grid of theta/256, c_k the transform of the two tails. A normal curve of variance s q, plus s times the tail of the
weights, is the same to first order; the convolution also holds where a large weight and the rest add up. phi_i is exact
over all n weights of row i; the mean is over all rows, or over 1024 random ones.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import torch

from repcap.geometry.rows.reader import RowReader

ROWS = 1024
"""Rows whose weights are looked at; of more rows so many random ones. They read all others."""
_STEPS = 256
_GRID = 8192
_FEW = 256


@dataclasses.dataclass(frozen=True, eq=False)
class AlarmCurve:
    """False alarms over the number of active rows.

    phi: (m, bins) float64, characteristic functions of the weights of m rows. tail: (bins,), c_k. count: rows, n.
    """

    phi: np.ndarray
    tail: np.ndarray
    count: int

    def rate(self, active: int) -> float:
        """FA(s): the share of idle rows that read above the threshold while s = `active` others are on."""
        return float(np.clip((self.phi**active).mean(0) @ self.tail, 0.0, 1.0))

    def most(self, delta: float) -> int:
        """s_max: the largest s with FA(s) <= delta; 0 where even one active row gives more, n where none does."""
        if self.rate(1) > delta:
            return 0
        if self.rate(self.count) <= delta:
            return self.count
        low, high = 1, 2
        while high < self.count and self.rate(high) <= delta:
            low, high = high, 2 * high
        high = min(high, self.count)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self.rate(middle) <= delta else (low, middle)
        return low


def alarm_curve(reader: RowReader, readers: torch.Tensor, own: torch.Tensor, theta: float) -> AlarmCurve:
    """Weights of some rows with all rows, and what follows. 2 m n d operations; memory m x 8192 counts of 8 bytes.

    reader: of the float32 unit rows u_j, (n, d). readers: (m, d) float32, the w_i. own: (m,) their row numbers.
    """
    counts = torch.zeros((len(own), _GRID), dtype=torch.int64)
    total = 0
    for block in reader.units():
        total += len(block.indices)
        itself = _places(block.indices, own)
        for first in range(0, len(own), _FEW):
            weights = readers[first : first + _FEW] @ block.units.T
            at = itself[first : first + _FEW]
            here = (at >= 0).nonzero()[:, 0]
            weights[here, at[here]] = 0.0
            place = (weights * (_STEPS / theta)).round_().clamp_(-_GRID // 4, _GRID // 4).long()
            place = place % _GRID + _GRID * torch.arange(len(weights))[:, None]
            found = torch.bincount(place.flatten(), minlength=_GRID * len(weights))
            counts[first : first + len(weights)] += found.view(len(weights), _GRID)
    counts[:, 0] -= 1  # of the row itself, which is not idle
    shares = counts.numpy() / max(total - 1, 1)
    return AlarmCurve(np.fft.rfft(shares, axis=1).real, _tail_weights(), total)


def _places(indices: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
    """Where the row numbers `wanted` stand in the ascending `indices`; -1 for those that are not among them."""
    at = torch.searchsorted(indices, wanted).clamp_(max=len(indices) - 1)
    return torch.where(indices[at] == wanted, at, -1)


def _tail_weights() -> np.ndarray:
    """c_k, k = 0..grid/2: what turns a characteristic function into the mass beyond +-256 steps, half of it at them."""
    away = np.minimum(np.arange(_GRID), _GRID - np.arange(_GRID))
    beyond = np.where(away > _STEPS, 1.0, np.where(away == _STEPS, 0.5, 0.0))
    twice = np.full(_GRID // 2 + 1, 2.0)
    twice[[0, -1]] = 1.0
    weights: np.ndarray = np.fft.rfft(beyond).real * twice / _GRID
    return weights


@dataclasses.dataclass(frozen=True)
class Simulated:
    """What `draws` random states of s active rows gave.

    rms: of what idle rows read. rate: share of idle rows beyond the threshold. found: share of the draws in which every
    active row reads more than every idle one.
    """

    active: int
    draws: int
    rms: float
    rate: float
    found: float


def simulate_alarms(
    reader: RowReader, inverse: torch.Tensor | None, indices: torch.Tensor, active: int, draws: int, theta: float,
    seed: int = 0,
) -> Simulated:  # fmt: skip
    """Draw states of s = `active` rows with random signs, and read all rows. 2 draws n d operations; memory draws x d.

    reader: of float32 unit rows. inverse: G^+ for the best linear readout, None for the direct one. indices: (n,) row
    numbers to draw from.
    """
    rng = np.random.default_rng([seed, active])
    chosen = np.stack([rng.choice(len(indices), active, replace=False) for _ in range(draws)])
    signs = torch.from_numpy(rng.choice([-1.0, 1.0], (draws, active))).float()
    needed, place = np.unique(chosen, return_inverse=True)
    rows = torch.cat([block.units.clone() for block in reader.replaced(rows=indices[needed]).units()])
    state = (rows[torch.from_numpy(place.reshape(chosen.shape))] * signs[:, :, None]).sum(1)  # (draws, d)
    asked = state if inverse is None else (state.double() @ inverse).float()
    numbers = indices[torch.from_numpy(chosen)]
    square, alarms, idle = 0.0, 0, 0
    most_idle, least_active = torch.zeros(draws), torch.full((draws,), torch.inf)
    for block in reader.units():
        reading = asked @ block.units.T
        if inverse is not None:
            units = block.units.double()
            reading /= ((units @ inverse) * units).sum(1).float()
        at = _places(block.indices, numbers)
        draw, which = (at >= 0).nonzero(as_tuple=True)
        on = torch.zeros_like(reading, dtype=torch.bool)
        on[draw, at[draw, which]] = True
        size = reading.abs_()
        least_active = torch.minimum(least_active, size.masked_fill(~on, torch.inf).amin(1))
        size.masked_fill_(on, 0.0)
        most_idle = torch.maximum(most_idle, size.amax(1))
        square += float(size.double().square().sum())
        alarms += int((size > theta).sum())
        idle += int((~on).sum())
    found = float((least_active > most_idle).double().mean())
    return Simulated(active, draws, (square / max(idle, 1)) ** 0.5, alarms / max(idle, 1), found)
