"""The SHA-256 of a matrix, taken while its rows are read for something else."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

from repcap.matrix import Matrix

if TYPE_CHECKING:
    import torch


class HashedMatrix(Matrix):
    """A matrix that hashes its rows while they are read from first to last, in one go; nothing is read for it."""

    def __init__(self, inner: Matrix) -> None:
        self._inner = inner
        self.info, self.tokens, self.contiguous = inner.info, inner.tokens, inner.contiguous
        self.identity = inner.identity
        self._hash = hashlib.sha256()
        self._next = 0

    @property
    def bytes_read(self) -> int:  # type: ignore[override]
        return self._inner.bytes_read

    @property
    def sha256(self) -> str | None:
        """Of all rows as `read` gives them, or None while not all were read in order."""
        return self._hash.hexdigest() if self._next == self.count else None

    def read(self, start: int, stop: int) -> torch.Tensor:
        import torch

        block = self._inner.read(start, stop)
        if start == self._next:
            self._hash.update(block.resolve_neg().contiguous().view(torch.uint8).numpy().data)
            self._next = stop
        return block

    def prefetch(self, spans: Sequence[tuple[int, int]]) -> None:
        self._inner.prefetch(spans)

    def take(self, indices: Sequence[int]) -> torch.Tensor:
        return self._inner.take(indices)

    def close(self) -> None:
        self._inner.close()
