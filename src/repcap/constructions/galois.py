"""Arithmetic in a finite field of p^m elements, vectorised over numpy arrays, as far as the constructions need it.

An element is the integer whose base-p digits are its coefficients in the powers of a primitive element g, so that
0..q-1 are the elements and addition for p = 2 is XOR. Products go through tables of logarithms to the base g.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from itertools import product

import numpy as np
import numpy.typing as npt

from repcap.constructions.primes import prime_factors, prime_power
from repcap.errors import DomainError

Elements = npt.NDArray[np.int64]

LARGEST = 1 << 22
"""Largest field for which tables are made (two tables of q 64-bit integers)."""


class Field:
    """The field of q = p^m elements. Use `field(p, m)`, which keeps its tables."""

    def __init__(self, p: int, m: int) -> None:
        if prime_power(p) != (p, 1) or m < 1:
            raise DomainError(f"a finite field needs a prime and a degree of at least 1, got p = {p}, m = {m}")
        if p**m > LARGEST:
            raise DomainError(f"the field of {p}^{m} elements is too large for tables (at most {LARGEST} elements)")
        self.p, self.m, self.q = p, m, p**m
        self._exp = self._powers()
        self._log = np.zeros(self.q, dtype=np.int64)
        self._log[self._exp] = np.arange(self.q - 1)
        self._trace: Elements | None = None

    def _powers(self) -> Elements:
        """g^0 .. g^(q-2) for a primitive g: a root of the first monic polynomial of degree m under which x is one."""
        p, m, order = self.p, self.m, self.q - 1
        if m == 1:
            divisors = prime_factors(order) if order > 1 else []
            g = next(g for g in range(1, p) if all(pow(g, order // f, p) != 1 for f in divisors))
            return self._walk(lambda value: value * g % p)
        for low in product(range(p), repeat=m):  # x^m = -(low_0 + low_1 x + ...)
            if low[0] == 0:
                continue
            reduction = [-c % p for c in low]

            def times_x(value: int, reduction: list[int] = reduction, high: int = p ** (m - 1)) -> int:
                top, rest = divmod(value, high)
                shifted = rest * p
                if p == 2:
                    return shifted ^ (sum(c << i for i, c in enumerate(reduction)) if top else 0)
                return int(sum(((shifted // p**i % p + top * c) % p) * p**i for i, c in enumerate(reduction)))

            powers = self._walk(times_x)
            if len(powers) == order:
                return powers
        raise AssertionError("every finite field has a primitive polynomial")

    def _walk(self, step: Callable[[int], int]) -> Elements:
        """1, step(1), step(step(1)) ... until 1 comes back."""
        powers, value = [1], step(1)
        while value != 1 and len(powers) < self.q:
            powers.append(value)
            value = step(value)
        return np.array(powers, dtype=np.int64)

    def elements(self) -> Elements:
        """0..q-1."""
        return np.arange(self.q, dtype=np.int64)

    def add(self, a: npt.ArrayLike, b: npt.ArrayLike) -> Elements:
        """a + b, broadcast."""
        left, right = np.asarray(a, dtype=np.int64), np.asarray(b, dtype=np.int64)
        if self.p == 2:
            return np.asarray(left ^ right)
        total = np.zeros(np.broadcast_shapes(left.shape, right.shape), dtype=np.int64)
        for i in range(self.m):
            unit = self.p**i
            total += (left // unit + right // unit) % self.p * unit
        return total

    def mul(self, a: npt.ArrayLike, b: npt.ArrayLike) -> Elements:
        """a b, broadcast."""
        left, right = np.asarray(a, dtype=np.int64), np.asarray(b, dtype=np.int64)
        logs = (self._log[left] + self._log[right]) % (self.q - 1)
        return np.where((left == 0) | (right == 0), 0, self._exp[logs])

    def power(self, a: npt.ArrayLike, n: int) -> Elements:
        """a^n for n >= 1."""
        base = np.asarray(a, dtype=np.int64)
        return np.where(base == 0, 0, self._exp[self._log[base] * (n % (self.q - 1)) % (self.q - 1)])

    def minus_one(self) -> int:
        """The element -1."""
        return 1 if self.p == 2 else int(self._exp[(self.q - 1) // 2])

    def trace(self, a: npt.ArrayLike) -> Elements:
        """Tr(a) = a + a^p + ... + a^(p^(m-1)), an integer 0..p-1, from a table of all q traces."""
        if self._trace is None:
            conjugate = self.elements()
            total = conjugate
            for _ in range(self.m - 1):
                conjugate = self.power(conjugate, self.p)
                total = self.add(total, conjugate)
            self._trace = total
        return self._trace[np.asarray(a, dtype=np.int64)]


@lru_cache(maxsize=8)
def field(p: int, m: int) -> Field:
    """The field of p^m elements, with its tables made once.

    Raises
    ------
    DomainError
        if p is no prime, m < 1, or the tables would be too large.
    """
    return Field(p, m)
