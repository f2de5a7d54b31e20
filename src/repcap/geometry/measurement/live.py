"""epsilon of a weight that lives on a device, in place: what is measured while a model trains."""

from __future__ import annotations

import torch

from repcap.errors import VectorsError
from repcap.geometry.epsilon import gram
from repcap.geometry.epsilon.epsilon import Spread
from repcap.geometry.epsilon.moments import MomentsBuilder
from repcap.geometry.rows.unit_rows import Normaliser, check_block
from repcap.numerics import Z_DEFAULT

BLOCK = 8192


def live_spread(weight: torch.Tensor, z: float = Z_DEFAULT, block_rows: int = BLOCK) -> Spread:
    """Mean and standard deviation of the cosines over all pairs of rows of `weight`, (n, d), where it lies.

    Products in float32 on the weight's own device, sums in float64 (on the cpu for mps, which has none). Rows that are
    zero or not finite are left out. No gradient is recorded. Agrees with `measure_matrix` to 1e-6 for rows with lengths
    between 1e-18 and 1e18; where nearly all rows coincide, the standard deviation keeps four decimals.

    Cost: n d^2 operations. Memory: three blocks of rows in float32, and 8 d^2 bytes.

    Raises
    ------
    VectorsError
        if fewer than two rows have a direction, or `weight` is no matrix of real numbers.
    """
    check_block(weight)
    if gram.fits(*weight.shape):
        return _few(weight, z)
    builder = MomentsBuilder(weight.shape[1], weight.device, torch.float32)
    with torch.no_grad():
        for block in weight.detach().split(block_rows):
            rows = block.float()
            # Pieces of 256 columns, summed in float64 where there is one: float32 norms of long rows are too small.
            wide = torch.float32 if rows.device.type == "mps" else torch.float64
            square = sum(piece.square().sum(1).to(wide) for piece in rows.split(256, dim=1))
            assert isinstance(square, torch.Tensor)
            length = square.sqrt().float()
            good = (length > 0) & torch.isfinite(length)
            units = rows / torch.where(good, length, 1.0)[:, None]
            builder.add(units if bool(good.all()) else units[good])
    _need_pair(builder.count)
    found = builder.result()
    return Spread("all", builder.count, weight.shape[1], found.mean, found.std, z, weight.shape[0] - builder.count)


def _few(weight: torch.Tensor, z: float) -> Spread:
    """The same of n <= d + 1 rows, from their cosines, in float64 on the cpu."""
    rows = Normaliser(torch.float64)(weight.detach().cpu(), torch.arange(len(weight)))
    _need_pair(len(rows.units))
    mean, std = gram.mean_std(gram.cosines(rows.units))
    return Spread("all", len(rows.units), weight.shape[1], mean, std, z, len(rows.dropped))


def _need_pair(count: int) -> None:
    if count < 2:
        raise VectorsError(f"{count} rows with a direction make no pair: at least two are needed")
