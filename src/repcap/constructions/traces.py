"""Vectors of signs from traces of polynomials over F_{2^M}."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from repcap.constructions.galois import field
from repcap.constructions.lines import Array
from repcap.constructions.signs import SignLines


class TraceLines(SignLines):
    """Vectors (-1)^Tr(sum_s a_s x^s + l x) over F_{2^M}, for a list of exponents s; all a_s in F_{2^M}."""

    def __init__(self, name: str, bits: int, exponents: Sequence[int], claimed: float, exact: bool) -> None:
        self._field = field(2, bits)
        self._powers = [self._field.power(self._field.elements(), s) for s in exponents]
        super().__init__(name, bits, 1 << (bits * len(exponents)), claimed, exact, True)

    def signs(self, form: int) -> Array:
        total = np.zeros(self.dim, dtype=np.int64)
        for j, power in enumerate(self._powers):
            total ^= self._field.mul((form >> (self.bits * j)) & (self.dim - 1), power)
        return np.asarray(1.0 - 2.0 * self._field.trace(total), dtype=np.float64)
