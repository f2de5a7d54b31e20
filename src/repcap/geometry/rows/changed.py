"""A matrix whose rows went through a linear change: what the all-pairs scans read in another gauge."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from repcap.geometry.rows.reader import Transform
from repcap.matrix import Matrix

_GONE = 1e-6
"""A row of which less than this part is left has no direction: it was what was taken away."""


class Changed(Matrix):
    """Unit rows along change(x) of the rows x of `base`, float32; zero where nothing is left of x.

    change: (b, d) float64 to (b, d) float64, in place if it likes.
    """

    def __init__(self, base: Matrix, change: Transform) -> None:
        self._base, self._change = base, change
        self.info, self.tokens, self.contiguous = base.info, base.tokens, base.contiguous

    def read(self, start: int, stop: int) -> torch.Tensor:
        return self._changed(self._base.read(start, stop))

    def take(self, indices: Sequence[int]) -> torch.Tensor:
        return self._changed(self._base.take(indices))

    def _changed(self, block: torch.Tensor) -> torch.Tensor:
        self.bytes_read = self._base.bytes_read
        rows = block.double()
        length = torch.linalg.vector_norm(rows, dim=1, keepdim=True)
        found = self._change(rows.clone())
        left = torch.linalg.vector_norm(found, dim=1, keepdim=True)
        # No direction before, none after: centring would give a zero row the direction of the mean.
        unit: torch.Tensor = found / left
        return unit.masked_fill_((left <= _GONE * length) | (length == 0.0), 0.0).float()

    def close(self) -> None:
        self._base.close()
