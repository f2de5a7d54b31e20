"""Explicit line sets as matrices whose rows are made when they are read, so that any number of them can be streamed.

No torch until rows are read: what is known of the sets is asked for by commands that must start fast.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from repcap.errors import InputError
from repcap.matrix import Matrix, MatrixInfo

if TYPE_CHECKING:
    import torch

Array = npt.NDArray[np.float64]


class Lines(Matrix):
    """k unit vectors in R^d that are known exactly. `read(start, stop)` makes rows start..stop-1, float64."""

    claimed: float
    """Coherence that the theory gives: the value where `exact`, else an upper bound on it."""
    exact: bool

    def __init__(self, name: str, k: int, d: int, claimed: float, exact: bool) -> None:
        self.name = name
        self.claimed, self.exact = claimed, exact
        self.info = MatrixInfo(source=f"construction:{name}", name=name, count=k, dim=d, dtype="float64")

    def read(self, start: int, stop: int) -> torch.Tensor:
        if not 0 <= start <= stop <= self.count:
            raise InputError(f"{self.name} has rows 0 to {self.count - 1}, asked for {start} to {stop - 1}")
        import torch

        rows = torch.from_numpy(np.ascontiguousarray(self.rows(start, stop)))
        self.bytes_read += rows.numel() * 8
        return rows

    @abstractmethod
    def rows(self, start: int, stop: int) -> Array:
        """Rows start..stop-1, shape (stop - start, d), norm 1 up to rounding."""


class Table(Lines):
    """A set that is held in memory, (k, d) float64."""

    def __init__(self, name: str, table: Array, claimed: float, exact: bool = True) -> None:
        super().__init__(name, table.shape[0], table.shape[1], claimed, exact)
        self._table = table / np.linalg.norm(table, axis=1, keepdims=True)

    def rows(self, start: int, stop: int) -> Array:
        return np.asarray(self._table[start:stop])


class Basis(Lines):
    """The first k vectors of the standard basis of R^d, k <= d: coherence 0."""

    def __init__(self, k: int, d: int) -> None:
        super().__init__("orthonormal", k, d, 0.0, True)

    def rows(self, start: int, stop: int) -> Array:
        block = np.zeros((stop - start, self.dim))
        block[np.arange(stop - start), np.arange(start, stop)] = 1.0
        return block


class DirectSum(Lines):
    """Sets in orthogonal blocks of coordinates, one after another, then zeros: R^d1 + R^d2 + ... inside R^d."""

    def __init__(self, parts: Sequence[Lines], d: int, name: str | None = None) -> None:
        if sum(part.dim for part in parts) > d:
            raise InputError(f"the parts need {sum(part.dim for part in parts)} coordinates, R^{d} has {d}")
        self._parts = list(parts)
        name = name or " + ".join(f"{part.name} in R^{part.dim}" for part in parts)
        claimed, exact = max(part.claimed for part in parts), all(part.exact for part in parts)
        super().__init__(name, sum(part.count for part in parts), d, claimed, exact)

    def rows(self, start: int, stop: int) -> Array:
        block = np.zeros((stop - start, self.dim))
        row, column = 0, 0
        for part in self._parts:
            first, last = max(start, row), min(stop, row + part.count)
            if first < last:
                block[first - start : last - start, column : column + part.dim] = part.rows(first - row, last - row)
            row, column = row + part.count, column + part.dim
        return block


class Prefix(Lines):
    """The first k rows of a larger set: any subset keeps its coherence or lowers it."""

    def __init__(self, lines: Lines, k: int) -> None:
        self._lines = lines
        super().__init__(lines.name, k, lines.dim, lines.claimed, lines.exact and k == lines.count)

    def rows(self, start: int, stop: int) -> Array:
        return self._lines.rows(start, stop)


def in_subspace(vectors: Array, normals: Array) -> Array:
    """Coordinates of `vectors` (k, d), which are orthogonal to the rows of `normals` (c, d), in a basis of R^(d-c)."""
    basis = np.linalg.svd(np.atleast_2d(normals))[2][np.linalg.matrix_rank(normals) :]
    return np.asarray(vectors @ basis.T)


def from_gram(signs: Array, angle: float, d: int) -> Array:
    """Equiangular lines with Gram matrix I + angle * signs of rank d (signs: 0 on the diagonal, +-1 elsewhere)."""
    values, axes = np.linalg.eigh(np.eye(len(signs)) + angle * signs)
    return np.asarray(axes[:, -d:] * np.sqrt(values[-d:]))
