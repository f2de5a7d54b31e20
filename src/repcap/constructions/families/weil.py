"""Sets whose coherence is Weil's bound on character sums: dual BCH codes, and exponential sums in R^(2q)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from repcap.constructions.family import Block, Family, exponent_of_two, powers_of_two
from repcap.constructions.galois import field
from repcap.constructions.lines import Array, Lines
from repcap.constructions.primes import odd_prime_powers_below, prime_power
from repcap.constructions.traces import TraceLines
from repcap.domain import loosened
from repcap.errors import InputError


def _dual_bch(d: int, eps: float) -> Iterator[Block]:
    """2^(tM) + d lines at <= 2(t-1)/sqrt(d), d = 2^M: (-1)^Tr(f), f odd of degree <= 2t-1.

    Weil's bound |sum (-1)^Tr(f)| <= (deg f - 1) sqrt(d) holds as every exponent of f is odd (L. Carlitz and
    S. Uchiyama 1957).
    """
    for bits in powers_of_two(d, 3):
        t = int(loosened(eps) * 2.0 ** (bits / 2) / 2.0) + 1
        coherence = 2.0 * (t - 1) * 2.0 ** (-bits / 2)
        if t >= 2 and coherence < 1.0:
            k = (1 << (t * bits)) + (1 << bits)
            yield Block("dual_bch", f"dual BCH t={t}", 1 << bits, k, coherence, False, {"bits": bits, "t": t})


def dual_bch(bits: int, t: int) -> TraceLines:
    """Dual of the t-error-correcting BCH code: 2^(t M) + d lines at <= 2(t-1)/sqrt(d) (Weil), d = 2^M.

    The exponents 3, 5 .. 2t-1 have cosets of full size while 2t - 1 < 2^ceil(M/2) + 1.
    """
    if bits < 3 or t < 2 or 2 * t - 2 >= 2 ** (-(-bits // 2)):
        raise InputError(f"dual BCH sets need d = 2^M, t >= 2 and 2t - 2 < 2^ceil(M/2); got d = 2^{bits}, t = {t}")
    claimed = min(2 * (t - 1) / np.sqrt(2.0**bits), 1.0)  # 1 where Weil's bound says nothing
    return TraceLines(f"dual BCH t={t}", bits, range(3, 2 * t, 2), float(claimed), False)


def _exponential_sums(d: int, eps: float) -> Iterator[Block]:
    """2 q^(n - floor(n/p)) lines at <= (n-1)/sqrt(q) in R^(2q), q an odd prime power of p: x -> {1, i} e(f(x))/sqrt(q).

    f runs over the polynomials of degree <= n whose exponents are prime to p (A. Weil 1948).
    """
    for p, m in odd_prime_powers_below(d // 2):
        q = p**m
        n = int(loosened(eps) * math.sqrt(q)) + 1
        n -= n % p == 0  # an exponent that is not used
        coherence = (n - 1) / math.sqrt(q)
        if n >= 2 and coherence < 1.0:
            k, name = 2 * q ** (n - n // p), f"exponential sums q={q} degree<={n}"
            params = {"p": p, "m": m, "n": n}
            # Gauss sums have absolute value sqrt(q), but their real part, which counts here, may be less.
            yield Block("exponential_sums", name, 2 * q, k, coherence, False, params)


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


def _choose_sums(d: int, given: Mapping[str, int]) -> dict[str, Any]:
    power = prime_power(d // 2) if d % 2 == 0 else None
    if power is None or power[0] == 2:
        raise InputError(f"exponential sums need d = 2 q with q an odd prime power, got d = {d}")
    return {"p": power[0], "m": power[1], "n": given.get("n", 2)}


DUAL_BCH = Family(
    "dual_bch",
    "|sum (-1)^Tr(f)| <= (deg f - 1) sqrt(d) for f with odd exponents (A. Weil 1948; L. Carlitz, S. Uchiyama 1957).",
    _dual_bch,
    lambda d, params: dual_bch(int(params["bits"]), int(params["t"])),
    command="bch",
    options=("t",),
    choose=lambda d, given: {"bits": exponent_of_two(d), "t": given.get("t", 2)},
)
EXPONENTIAL_SUMS = Family(
    "exponential_sums",
    "|sum e(f(x))| <= (deg f - 1) sqrt(q) for f whose exponents are prime to p (A. Weil 1948).",
    _exponential_sums,
    lambda d, params: ExponentialLines(int(params["p"]), int(params["m"]), int(params["n"])),
    command="exponential-sums",
    options=("n",),
    choose=_choose_sums,
)
