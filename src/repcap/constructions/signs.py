"""Vectors of signs over F_2^M, one orthonormal basis of R^(2^M) a function: what the binary families share."""

from __future__ import annotations

from abc import abstractmethod
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from repcap.constructions.lines import Array, Basis, Lines


@lru_cache(maxsize=16)
def _hadamard(bits: int) -> Array:
    """Sylvester's Hadamard matrix of order 2^bits: entry (l, v) is (-1)^(l . v) over the binary digits."""
    matrix = np.ones((1, 1))
    for _ in range(bits):
        matrix = np.block([[matrix, matrix], [matrix, -matrix]])
    return matrix


def hadamard_rows(indices: npt.NDArray[np.int64], bits: int) -> Array:
    """Rows of the Hadamard matrix of order 2^bits, from two tables of order about 2^(bits/2)."""
    low = bits // 2
    left, right = _hadamard(bits - low)[indices >> low], _hadamard(low)[indices & ((1 << low) - 1)]
    return np.asarray((left[:, :, None] * right[:, None, :]).reshape(len(indices), 1 << bits))


class SignLines(Lines):
    """Vectors (-1)^(Q(v) + l.v) / sqrt(d) over v in F_2^M, d = 2^M: one block of d rows (all l) for each Q.

    The standard basis of R^d comes first where it is part of the set: its cosine with the others is 1/sqrt(d).
    `signs(f)` gives (-1)^Q of form f; each such block is an orthonormal basis.
    """

    def __init__(self, name: str, bits: int, forms: int, claimed: float, exact: bool, basis: bool) -> None:
        self.bits, self.forms = bits, forms
        self._offset = (1 << bits) if basis else 0
        super().__init__(name, (forms << bits) + self._offset, 1 << bits, claimed, exact)

    @abstractmethod
    def signs(self, form: int) -> Array:
        """(-1)^Q(v) for v = 0..d-1."""

    def rows(self, start: int, stop: int) -> Array:
        d = self.dim
        parts = []
        while start < stop:
            if start < self._offset:
                end = min(stop, self._offset)
                parts.append(Basis(d, d).rows(start, end))
            else:
                form, first = divmod(start - self._offset, d)
                end = min(stop, start + d - first)
                block = hadamard_rows(np.arange(first, first + end - start, dtype=np.int64), self.bits)
                parts.append(block * (self.signs(form) / np.sqrt(d)))
            start = end
        return np.concatenate(parts) if parts else np.zeros((0, d))
