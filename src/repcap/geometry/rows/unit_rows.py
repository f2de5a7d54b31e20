"""Rows to unit rows: a direction is a direction, whatever its length.

A row that is zero or holds a NaN or an infinity has no direction. It is left out and named. Every other row is divided
by its length, from 1e-45 (a float32 subnormal) to 1e308.
"""

from __future__ import annotations

import dataclasses
import math

import torch

from repcap.errors import VectorsError

ZERO, NON_FINITE, NO_REST = "zero", "non-finite", "nothing left"
"""Why a row has no direction. `nothing left`: what was removed (a mean, top directions) was the whole row."""

_NORM_CHUNK = 256
_SAFE = {torch.float32: (1e-13, 1e18), torch.float64: (1e-140, 1e140)}
"""Lengths between which squaring, summing and dividing neither overflow nor lose bits."""


@dataclasses.dataclass(frozen=True)
class UnitRows:
    """The rows of one block that have a direction.

    units: (m, d) float32 or float64, rows of length 1 within rounding. It may share the `Normaliser`'s buffer: use it
    before the next block is normalised.
    norms: (m,) float64, lengths of the stored rows.
    indices: (m,) int64, row numbers in the matrix.
    dropped: (row number, reason) of the rows without a direction.
    """

    units: torch.Tensor
    norms: torch.Tensor
    indices: torch.Tensor
    dropped: tuple[tuple[int, str], ...] = ()


def compute_dtype(name: str) -> torch.dtype:
    """`float32` or `float64`: the precision of the matrix products. Sums are float64 either way.

    Raises
    ------
    VectorsError
        for any other name. In half precision the third digit of epsilon is lost.
    """
    try:
        return {"float32": torch.float32, "float64": torch.float64}[name]
    except KeyError:
        raise VectorsError(f"cannot compute in {name}: use float32 (the default) or float64") from None


def check_block(block: torch.Tensor) -> None:
    """Refuse what is no block of real vectors: (b, d) with d >= 1 and a floating dtype.

    Raises
    ------
    VectorsError
        for another rank, no columns, complex, integer or boolean values.
    """
    if block.ndim != 2:
        shape = "x".join(str(size) for size in block.shape) or "a single number"
        raise VectorsError(f"expected a matrix with one vector a row, got {block.ndim} dimensions ({shape})")
    if block.shape[1] == 0:
        raise VectorsError("the rows have no columns: nothing to measure")
    if block.is_complex():
        raise VectorsError(f"complex values ({_name(block)}) have no real cosine: stack real and imaginary parts first")
    if not block.is_floating_point():
        raise VectorsError(
            f"{_name(block)} values are codes until their scale and zero point are applied: convert to floats first"
        )


def _name(tensor: torch.Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def lengths(rows: torch.Tensor) -> torch.Tensor:
    """Row lengths, (m,) float64, of (m, d) float32 or float64 rows.

    float32 squares are summed over pieces of 256 columns and the pieces in float64: torch's float32 norm of a long row
    is 5e-7 too small on average, which would go straight into epsilon. A row gets the same length to the last bit
    wherever it stands in a block.
    """
    if rows.shape[0] == 1:  # torch splits a reduction to one number over its threads, and then rounds differently
        return lengths(rows.expand(2, -1))[:1]
    square = torch.zeros(rows.shape[0], dtype=torch.float64)
    whole = rows.shape[1] // _NORM_CHUNK * _NORM_CHUNK
    if whole:
        pieces = rows[:, :whole].unflatten(1, (-1, _NORM_CHUNK))  # (m, pieces, 256)
        square += torch.linalg.vector_norm(pieces, dim=2).double().square_().sum(1)
    if whole < rows.shape[1]:
        square += torch.linalg.vector_norm(rows[:, whole:], dim=1).double().square_()
    return square.sqrt_()


class Normaliser:
    """Blocks of rows to unit rows of one precision, through one buffer that is used again (fresh pages cost more)."""

    def __init__(self, dtype: torch.dtype) -> None:
        self.dtype = dtype
        self._buffer: torch.Tensor | None = None
        self._wide: Normaliser | None = None

    def __call__(self, block: torch.Tensor, indices: torch.Tensor) -> UnitRows:
        """Unit rows of `block`, (b, d), whose rows have these numbers. O(b d) time; memory of one block.

        Raises
        ------
        VectorsError
            if `block` is no block of real vectors.
        """
        check_block(block)
        if block.dtype == torch.float64 and self.dtype == torch.float32:
            self._wide = self._wide or Normaliser(torch.float64)
            wide = self._wide(block, indices)
            return dataclasses.replace(wide, units=self._copy(wide.units))
        rows = self._copy(block)
        norms = lengths(rows)
        low, high = _SAFE[self.dtype]
        odd = ((norms > low) & (norms < high)).logical_not_().nonzero()[:, 0]  # NaN is odd, too
        divisor = norms.to(self.dtype)
        divisor[odd] = 1.0
        rows.div_(divisor[:, None])
        if not len(odd):
            return UnitRows(rows, norms, indices)
        return self._mend(block, rows, norms, indices, odd)

    def _copy(self, block: torch.Tensor) -> torch.Tensor:
        if self._buffer is None or self._buffer.shape[0] < block.shape[0] or self._buffer.shape[1] != block.shape[1]:
            self._buffer = torch.empty(block.shape, dtype=self.dtype)
        rows = self._buffer[: block.shape[0]]
        rows.copy_(block)
        return rows

    def _mend(
        self, block: torch.Tensor, rows: torch.Tensor, norms: torch.Tensor, indices: torch.Tensor, odd: torch.Tensor
    ) -> UnitRows:
        """Treat the odd rows in float64, after dividing each by its largest value."""
        dropped: list[tuple[int, str]] = []
        keep = torch.ones(len(norms), dtype=torch.bool)
        for position in odd.tolist():
            row = block[position].double()
            largest = float(row.abs().max())
            if largest == 0.0 or not math.isfinite(largest):
                dropped.append((int(indices[position]), ZERO if largest == 0.0 else NON_FINITE))
                keep[position] = False
                continue
            scaled = row / largest
            length = float(lengths(scaled[None])[0])
            rows[position] = (scaled / length).to(self.dtype)
            norms[position] = largest * length
        if not dropped:
            return UnitRows(rows, norms, indices)
        return UnitRows(rows[keep], norms[keep], indices[keep], tuple(dropped))
