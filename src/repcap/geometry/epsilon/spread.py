"""Mean and standard deviation of one set of rows, to the precision that was promised.

The one-pass formula takes the difference of two nearly equal numbers where all cosines are nearly equal. Then the rows
are read once more, and the sums are taken about the mean direction, in float64.
"""

from __future__ import annotations

import math

import torch

from repcap.errors import VectorsError
from repcap.geometry.epsilon import gram
from repcap.geometry.epsilon.epsilon import Spread
from repcap.geometry.epsilon.moments import Moments, MomentsBuilder
from repcap.geometry.epsilon.passes import FirstPass, first_pass
from repcap.geometry.rows.reader import RowReader

_ROUNDING = {torch.float32: (3e-8, 3e-7), torch.float64: (2e-16, 1e-15)}
"""Relative error of the mean squared cosine: of many rows, and what one row adds (it averages out as 1/sqrt(n))."""
_WANTED = {torch.float32: 1.5e-7, torch.float64: 1.5e-13}
"""Largest error of the standard deviation that is let pass."""


def needs_care(moments: Moments, dtype: torch.dtype) -> bool:
    """Whether rounding of the one-pass sums could show in the standard deviation: |d std| = |d second| / (2 std)."""
    many, one = _ROUNDING[dtype]
    error = (many + one / math.sqrt(moments.count)) * (moments.second + 1.0 / moments.count)
    return error > 2.0 * moments.std * _WANTED[dtype]


def spread(
    reader: RowReader,
    first: FirstPass,
    label: str,
    z: float,
    *,
    padding: bool = True,
    repeats: bool = True,
    moments: Moments | None = None,
) -> Spread:
    """Mean and standard deviation of the rows of a first pass, with or without padding and repeats.

    moments: those of exactly these rows where they are at hand. O(1) where the first pass suffices; else one more
    pass over the rows.

    Raises
    ------
    VectorsError
        if fewer than two rows are left.
    """
    mask = first.mask(padding=padding, repeats=repeats)
    count = int(mask.sum())
    if count < 2:
        raise VectorsError(f"{count} rows with a direction make no pair: at least two are needed")
    if first.held is not None:
        mean, std = gram.mean_std(gram.cosines(first.held[mask]))
    else:
        sums = moments or first.moments(padding=padding, repeats=repeats)
        mean, std = sums.mean, sums.std
        exact = reader.replaced(rows=first.indices[mask], dtype=torch.float64)
        if gram.fits(count, reader.dim):
            held = first_pass(exact, find_repeats=False).held
            assert held is not None
            mean, std = gram.mean_std(gram.cosines(held))
        elif needs_care(sums, reader.dtype):
            mean, std = about_mean(exact, sums.s / sums.count)
    return Spread(label, count, reader.dim, mean, std, z, len(first.dropped))


def spread_of(reader: RowReader, label: str, z: float) -> Spread | None:
    """Mean and standard deviation of all rows of `reader`, from nothing: one pass, O(n d^2).

    None where fewer than two of them have a direction.
    """
    first = first_pass(reader, find_repeats=False)
    return None if first.count < 2 else spread(reader, first, label, z)


def moments_about(reader: RowReader, centre: torch.Tensor) -> Moments:
    """Count, sum and outer products of v_i = u_i - `centre`, (d,) float64. One pass, O(n d^2) in float64.

    reader: of float64 unit rows.
    """
    builder = MomentsBuilder(reader.dim, reader.device, torch.float64)
    for block in reader.units():
        builder.add((block.units - centre).to(reader.device))
    return builder.result()


def about_mean(reader: RowReader, centre: torch.Tensor) -> tuple[float, float]:
    """Mean and standard deviation from sums about `centre`, (d,) float64, the mean of the unit rows.

    With v_i = u_i - m and p_i = m.v_i the cosine is c_ij = |m|^2 + D_ij, D_ij = p_i + p_j + v_i.v_j, and every sum of
    D and D^2 follows from n, sum_i v_i and sum_i v_i v_i^T. D is small where the rows lie close together, so squares
    of small numbers are added where the plain formula subtracts squares of numbers near 1. O(n d^2) in float64.
    """
    sums = moments_about(reader, centre)
    n, sigma, V = sums.count, sums.s, sums.G
    p = float(centre @ sigma)  # sum_i p_i
    own = (2.0 * p + float(V.trace())) / n  # D_ii = 1 - |m|^2
    first = 2.0 * n * p + float(sigma @ sigma) - n * own
    Vm = V @ centre
    second = 2.0 * n * float(centre @ Vm) + 2.0 * p * p + 4.0 * float(Vm @ sigma)
    second += float(V.flatten() @ V.flatten()) - n * own**2
    pairs = n * (n - 1)
    shift = first / pairs
    return float(centre @ centre) + shift, math.sqrt(max(second / pairs - shift * shift, 0.0))
