"""A matrix whose rows went through a linear change: what the all-pairs scans read in another gauge."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from repcap.matrix import Matrix

_GONE = 1e-6
"""A row of which less than this part is left has no direction: it was what was taken away."""


class Changed(Matrix):
    """Rows change(x) of the rows x of `base`, float32. unit: each row is made unit before.

    change: (b, d) float64 to (b, d) float64.
    """

    def __init__(self, base: Matrix, change: Callable[[torch.Tensor], torch.Tensor], *, unit: bool = False) -> None:
        self._base, self._change, self._unit = base, change, unit
        self.info, self.tokens, self.contiguous = base.info, base.tokens, base.contiguous

    def read(self, start: int, stop: int) -> torch.Tensor:
        return self._changed(self._base.read(start, stop))

    def take(self, indices: Sequence[int]) -> torch.Tensor:
        return self._changed(self._base.take(indices))

    def _changed(self, block: torch.Tensor) -> torch.Tensor:
        rows = block.double()
        length = torch.linalg.vector_norm(rows, dim=1, keepdim=True)
        if self._unit:
            rows = rows / length  # a zero row becomes NaN, and has no direction either way
            length = torch.ones_like(length)
        found = self._change(rows.clone())
        left = torch.linalg.vector_norm(found, dim=1)
        # No direction before, none after: centring would give a zero row the direction of the mean.
        found[(left <= (0.0 if self._unit else _GONE) * length[:, 0]) | (length[:, 0] == 0.0)] = 0.0
        self.bytes_read = self._base.bytes_read
        return found.float()

    def close(self) -> None:
        self._base.close()
