"""Matrices made of other matrices: some of the rows, several one below the other, columns scaled. Nothing is copied."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
import torch

from repcap.errors import VectorsError
from repcap.matrix import Matrix, Tokens


class Subset(Matrix):
    """Rows `indices` of `base`, in that order, numbered 0, 1, ...; memory: 8 bytes a row, and what is read."""

    def __init__(self, base: Matrix, indices: np.ndarray) -> None:
        self._base, self._indices = base, np.asarray(indices, dtype=np.int64)
        self.info = dataclasses.replace(base.info, count=len(self._indices))
        self.contiguous = base.contiguous
        self.tokens = None if base.tokens is None else _SubsetTokens(base.tokens, self._indices)

    def read(self, start: int, stop: int) -> torch.Tensor:
        chosen = self._indices[start:stop]
        first, last = int(chosen.min()), int(chosen.max())
        # One read of a span that is mostly wanted beats many small ones.
        if last - first + 1 <= 2 * len(chosen):
            block = self._base.read(first, last + 1)
            found = block if np.array_equal(chosen, np.arange(first, last + 1)) else block[chosen - first]
        else:
            found = self._base.take(chosen.tolist())
        self.bytes_read = self._base.bytes_read
        return found

    def take(self, indices: Sequence[int]) -> torch.Tensor:
        found = self._base.take(self._indices[np.asarray(indices, dtype=np.int64)].tolist())
        self.bytes_read = self._base.bytes_read
        return found

    def close(self) -> None:
        self._base.close()


@dataclasses.dataclass(frozen=True)
class _SubsetTokens:
    base: Tokens
    indices: np.ndarray

    @property
    def count(self) -> int:
        return len(self.indices)

    def text(self, index: int) -> str | None:
        return self.base.text(int(self.indices[index])) if 0 <= index < len(self.indices) else None


class Stacked(Matrix):
    """The rows of several matrices of one width, one below the other.

    Raises
    ------
    VectorsError
        if there is none, or their widths differ.
    """

    def __init__(self, parts: Sequence[Matrix]) -> None:
        widths = {part.dim for part in parts}
        if len(widths) != 1:
            raise VectorsError(f"matrices of widths {sorted(widths)} have no rows in common: give one width")
        self._parts = list(parts)
        self._ends = np.cumsum([part.count for part in parts])
        self.info = dataclasses.replace(parts[0].info, count=int(self._ends[-1]))
        self.contiguous = any(part.contiguous for part in parts)

    def read(self, start: int, stop: int) -> torch.Tensor:
        blocks = []
        for part, end in zip(self._parts, self._ends.tolist(), strict=True):
            first, last = max(start, end - part.count), min(stop, end)
            if first < last:
                blocks.append(part.read(first - end + part.count, last - end + part.count))
        self.bytes_read = sum(part.bytes_read for part in self._parts)
        return blocks[0] if len(blocks) == 1 else torch.cat([block.to(torch.float32) for block in blocks])

    def take(self, indices: Sequence[int]) -> torch.Tensor:
        wanted = np.asarray(indices, dtype=np.int64)
        which = np.searchsorted(self._ends, wanted, side="right")
        out = torch.empty((len(wanted), self.dim))
        for number in np.unique(which).tolist():
            part, here = self._parts[number], which == number
            rows = part.take((wanted[here] - self._ends[number] + part.count).tolist())
            out[torch.from_numpy(here)] = rows.to(torch.float32)
        self.bytes_read = sum(part.bytes_read for part in self._parts)
        return out

    def close(self) -> None:
        for part in self._parts:
            part.close()


class ScaledColumns(Matrix):
    """Rows of `base` times `scale`, (d,), element by element: what a gain in front of a weight makes of its rows."""

    def __init__(self, base: Matrix, scale: torch.Tensor) -> None:
        if scale.shape != (base.dim,):
            raise VectorsError(f"a gain of shape {tuple(scale.shape)} does not fit rows of {base.dim} columns")
        self._base, self._scale = base, scale.double()
        self.info, self.tokens, self.contiguous = base.info, base.tokens, base.contiguous

    def read(self, start: int, stop: int) -> torch.Tensor:
        return self._times(self._base.read(start, stop))

    def take(self, indices: Sequence[int]) -> torch.Tensor:
        return self._times(self._base.take(indices))

    def _times(self, block: torch.Tensor) -> torch.Tensor:
        self.bytes_read = self._base.bytes_read
        return block.double() * self._scale

    def close(self) -> None:
        self._base.close()
