"""Quadratic forms over F_2: Hadamard's two bases, Kerdock, Delsarte-Goethals, and forms of high rank in odd M."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from repcap.constructions.family import Block, Family, exponent_of_two, fits, powers_of_two
from repcap.constructions.galois import field
from repcap.constructions.lines import Array
from repcap.constructions.signs import SignLines
from repcap.constructions.traces import TraceLines
from repcap.errors import InputError


def _hadamard(d: int, eps: float) -> Iterator[Block]:
    """Standard and Hadamard basis of R^(2^M), M >= 2: 2 d lines at 1/sqrt(d)."""
    for bits in powers_of_two(d, 2):
        if fits(2.0 ** (-bits / 2), eps):
            yield Block("hadamard", "basis + Hadamard", 1 << bits, 2 << bits, 2.0 ** (-bits / 2), True, {"bits": bits})


class Hadamard(SignLines):
    """Standard basis and Hadamard basis of R^d, d = 2^M: 2 d lines at 1/sqrt(d)."""

    def __init__(self, bits: int) -> None:
        super().__init__("basis + Hadamard", bits, 1, 2.0 ** (-bits / 2), True, True)

    def signs(self, form: int) -> Array:
        return np.ones(self.dim)


def _kerdock(d: int, eps: float) -> Iterator[Block]:
    """Real mutually unbiased bases from Kerdock sets, d = 4^m: d(d/2 + 1) lines at exactly 1/sqrt(d).

    (A. M. Kerdock 1972; P. J. Cameron and J. J. Seidel 1973.)
    """
    for bits in powers_of_two(d, 2):
        size = 1 << bits
        if bits % 2 == 0 and fits(2.0 ** (-bits / 2), eps):
            k = size * (size // 2 + 1)
            yield Block("kerdock", "Kerdock (real MUBs)", size, k, 2.0 ** (-bits / 2), True, {"bits": bits})


def _delsarte_goethals(d: int, eps: float) -> Iterator[Block]:
    """2^(M + (M-1)(r+1)) + d lines at 2^r / sqrt(d), d = 2^M, M even, 1 <= r < M/2 (P. Delsarte, J.-M. Goethals 1975).

    Alternating forms that differ pairwise by rank >= M - 2r, with the standard basis; r = 0 is `kerdock`.
    """
    for bits in powers_of_two(d, 4):
        usable = [r for r in range(1, bits // 2) if bits % 2 == 0 and fits(2.0 ** (r - bits / 2), eps)]
        if usable:
            r, size = usable[-1], 1 << bits
            k = (1 << (bits + (bits - 1) * (r + 1))) + size
            name, params = f"Delsarte-Goethals r={r}", {"bits": bits, "r": r}
            yield Block("delsarte_goethals", name, size, k, 2.0 ** (r - bits / 2), True, params)


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


def _quadratic_forms(d: int, eps: float) -> Iterator[Block]:
    """2^(M + M((M-1)/2 - h + 1)) + d lines at 2^-h, d = 2^M, M odd: forms whose differences have rank >= 2h.

    (P. Delsarte and J.-M. Goethals 1975; h = (M-1)/2 is the family of R. Gold, 1967.)
    """
    for bits in powers_of_two(d, 3):
        half = (bits - 1) // 2
        usable = [h for h in range(1, half + 1) if bits % 2 and fits(2.0**-h, eps)]
        if usable:
            h, size = usable[0], 1 << bits
            k = (1 << (bits + bits * (half - h + 1))) + size
            name = f"quadratic forms h={h}" if h < half else "Gold"
            yield Block("quadratic_forms", name, size, k, 2.0**-h, True, {"bits": bits, "h": h})


def quadratic_forms(bits: int, h: int) -> TraceLines:
    """Forms of rank >= 2 h on F_{2^M}, M odd, 1 <= h <= (M-1)/2: 2^(M + M((M-1)/2 - h + 1)) + d lines at 2^-h."""
    half = (bits - 1) // 2
    if bits < 3 or bits % 2 == 0 or not 1 <= h <= half:
        raise InputError(f"sets of quadratic forms need d = 2^M, M odd, 1 <= h <= (M-1)/2; got d = 2^{bits}, h = {h}")
    return TraceLines(f"quadratic forms h={h}", bits, [1 + 2**j for j in range(h, half + 1)], 2.0**-h, True)


def _choose_forms(d: int, given: Mapping[str, int]) -> dict[str, Any]:
    bits = exponent_of_two(d)
    return {"bits": bits, "h": given.get("h", (bits - 1) // 2)}


HADAMARD = Family(
    "hadamard",
    "The axes and the rows of Sylvester's matrix have cosine 1/sqrt(d).",
    _hadamard,
    lambda d, params: Hadamard(int(params["bits"])),
    command="hadamard",
    choose=lambda d, given: {"bits": exponent_of_two(d)},
)
KERDOCK = Family(
    "kerdock",
    "d/2 + 1 real mutually unbiased bases in d = 4^m (A. M. Kerdock 1972; P. J. Cameron and J. J. Seidel 1973).",
    _kerdock,
    lambda d, params: DelsarteGoethals(int(params["bits"]), 0),
    command="kerdock",
    choose=lambda d, given: {"bits": exponent_of_two(d)},
)
DELSARTE_GOETHALS = Family(
    "delsarte_goethals",
    "Alternating forms that differ pairwise by rank >= M - 2r, M even (P. Delsarte and J.-M. Goethals 1975).",
    _delsarte_goethals,
    lambda d, params: DelsarteGoethals(int(params["bits"]), int(params["r"])),
    command="delsarte-goethals",
    options=("r",),
    choose=lambda d, given: {"bits": exponent_of_two(d), "r": given.get("r", 1)},
)
QUADRATIC_FORMS = Family(
    "quadratic_forms",
    "Quadratic forms that differ pairwise by rank >= 2h, M odd (P. Delsarte and J.-M. Goethals 1975; R. Gold 1967).",
    _quadratic_forms,
    lambda d, params: quadratic_forms(int(params["bits"]), int(params["h"])),
    command="quadratic-forms",
    options=("h",),
    choose=_choose_forms,
)
