"""Explicit line sets as matrices whose rows are made when they are read, so that any number of them can be streamed."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import torch

from repcap.constructions.galois import field
from repcap.errors import InputError
from repcap.matrix import Matrix, MatrixInfo

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


class Hadamard(SignLines):
    """Standard basis and Hadamard basis of R^d, d = 2^M: 2 d lines at 1/sqrt(d)."""

    def __init__(self, bits: int) -> None:
        super().__init__("basis + Hadamard", bits, 1, 2.0 ** (-bits / 2), True, True)

    def signs(self, form: int) -> Array:
        return np.ones(self.dim)


class DelsarteGoethals(SignLines):
    """The Delsarte-Goethals set of order r in R^d, d = 2^M, M even, 0 <= r < M/2; r = 0 is the Kerdock set.

    2^(M + (M-1)(r+1)) + d lines at 2^r / sqrt(d). The form with coefficients (a, b_1 .. b_r) in F_{2^(M-1)} is, on
    F_{2^(M-1)} x F_2,
    Tr(a^2 x y) + Tr(a x) Tr(a y) + s Tr(a y) + t Tr(a x) + sum_j Tr(b_j (x^(2^j) y + x y^(2^j))).
    (Delsarte and Goethals 1975; Kerdock 1972.)
    """

    def __init__(self, bits: int, r: int) -> None:
        if bits < 2 or bits % 2 or not 0 <= r < bits // 2:
            raise InputError(f"Delsarte-Goethals sets need d = 4^m and 0 <= r < m, got d = 2^{bits}, r = {r}")
        self.r = r
        self._field = field(2, bits - 1)
        name = "Kerdock" if r == 0 else f"Delsarte-Goethals r={r}"
        super().__init__(name, bits, 1 << ((bits - 1) * (r + 1)), 2.0 ** (r - bits / 2), True, True)
        values = np.arange(1 << bits, dtype=np.int64)
        self._digits = ((values[:, None] >> np.arange(bits)) & 1).astype(np.float64)  # (d, M)

    def form(self, index: int) -> npt.NDArray[np.int64]:
        """The alternating matrix (M, M) over F_2 of form `index`, 0 <= index < forms."""
        f, width = self._field, self.bits - 1
        coefficients = [(index >> (width * j)) & ((1 << width) - 1) for j in range(self.r + 1)]
        a, x = coefficients[0], np.int64(1) << np.arange(width, dtype=np.int64)
        linear = f.trace(f.mul(a, x))
        matrix = np.zeros((self.bits, self.bits), dtype=np.int64)
        matrix[:width, :width] = f.trace(f.mul(f.power(a, 2), f.mul(x[:, None], x[None, :]))) ^ np.outer(linear, linear)
        matrix[width, :width] = matrix[:width, width] = linear
        for j, b in enumerate(coefficients[1:], start=1):
            cross = f.mul(f.power(x, 1 << j)[:, None], x[None, :])
            matrix[:width, :width] ^= f.trace(f.mul(b, cross ^ cross.T))
        return matrix

    def signs(self, form: int) -> Array:
        # Q(v) = sum over i < j of B_ij v_i v_j has B as its polar form.
        upper = np.triu(self.form(form), 1).astype(np.float64)
        return np.asarray(1.0 - 2.0 * (((self._digits @ upper) * self._digits).sum(axis=1) % 2))


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


def quadratic_forms(bits: int, h: int) -> TraceLines:
    """Forms of rank >= 2 h on F_{2^M}, M odd, 1 <= h <= (M-1)/2: 2^(M + M((M-1)/2 - h + 1)) + d lines at 2^-h."""
    half = (bits - 1) // 2
    if bits < 3 or bits % 2 == 0 or not 1 <= h <= half:
        raise InputError(f"sets of quadratic forms need d = 2^M, M odd, 1 <= h <= (M-1)/2; got d = 2^{bits}, h = {h}")
    return TraceLines(f"quadratic forms h={h}", bits, [1 + 2**j for j in range(h, half + 1)], 2.0**-h, True)


def dual_bch(bits: int, t: int) -> TraceLines:
    """Dual of the t-error-correcting BCH code: 2^(t M) + d lines at <= 2(t-1)/sqrt(d) (Weil), d = 2^M.

    The exponents 3, 5 .. 2t-1 have cosets of full size while 2t - 1 < 2^ceil(M/2) + 1.
    """
    if bits < 3 or t < 2 or 2 * t - 2 >= 2 ** (-(-bits // 2)):
        raise InputError(f"dual BCH sets need d = 2^M, t >= 2 and 2t - 2 < 2^ceil(M/2); got d = 2^{bits}, t = {t}")
    claimed = min(2 * (t - 1) / np.sqrt(2.0**bits), 1.0)  # 1 where Weil's bound says nothing
    return TraceLines(f"dual BCH t={t}", bits, range(3, 2 * t, 2), float(claimed), False)


class ExponentialLines(Lines):
    """x -> {1, i} e(f(x)) / sqrt(q) over the field of q = p^m elements, deg f <= n, f(0) = 0, as vectors of R^(2 q).

    f runs over the polynomials whose exponents are prime to p: 2 q^(n - floor(n/p)) lines at <= (n-1)/sqrt(q) (Weil).
    e is the additive character exp(2 pi i Tr / p). Real parts come first, then imaginary parts.
    """

    def __init__(self, p: int, m: int, n: int) -> None:
        if p == 2 or n < 1:
            raise InputError(
                f"exponential sums need an odd prime power and a degree of at least 1, got p = {p}, n = {n}"
            )
        self._field = field(p, m)
        q = self._field.q
        if (n - 1) ** 2 >= q:
            raise InputError(f"exponential sums need (n - 1)^2 < q, or nothing is proven: got q = {q}, degree n = {n}")
        exponents = [j for j in range(1, n + 1) if j % p]
        self._powers = [self._field.power(self._field.elements(), j) for j in exponents]
        name = f"exponential sums q={q} degree<={n}"
        super().__init__(name, 2 * q ** len(exponents), 2 * q, (exponents[-1] - 1) / float(np.sqrt(q)), n <= 1)

    def rows(self, start: int, stop: int) -> Array:
        q = self._field.q
        index = [divmod(i, 2) for i in range(start, stop)]  # (polynomial, turned by i or not)
        total = np.zeros((len(index), q), dtype=np.int64)
        for j, power in enumerate(self._powers):
            coefficients = np.array([f // q**j % q for f, _ in index], dtype=np.int64)
            total = self._field.add(total, self._field.mul(coefficients[:, None], power[None, :]))
        angle = 2.0 * np.pi / self._field.p * self._field.trace(total)
        angle += np.pi / 2 * np.array([turn for _, turn in index], dtype=np.float64)[:, None]
        return np.asarray(np.concatenate([np.cos(angle), np.sin(angle)], axis=1) / np.sqrt(q))


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
