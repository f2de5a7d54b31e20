"""The families of explicit line sets: for each, the largest member with at most d dimensions and coherence <= eps.

Every function `family(d, eps)` returns blocks (`Block`): sets that are proven to exist, with exact k. Sources stand at
each. `constructions.py` chooses among them and fits them into R^d. Integers are exact, however large.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

from repcap.constructions.primes import is_hadamard_order, odd_prime_powers_below, prime_power
from repcap.domain import loosened
from repcap.laws.limits.plane import lines_in_plane


@dataclasses.dataclass(frozen=True)
class Block:
    """k lines in R^d, exactly known."""

    family: str
    name: str
    d: int
    k: int
    coherence: float
    exact: bool
    """Whether the coherence is the value itself; else it is a proven upper bound on it (Weil)."""
    params: dict[str, Any] = dataclasses.field(default_factory=dict, hash=False)


def fits(coherence: float, eps: float) -> bool:
    """coherence <= eps, up to the rounding of either."""
    return coherence <= loosened(eps)


def orthonormal(d: int, eps: float) -> Iterator[Block]:
    """d axes, coherence 0."""
    yield Block("orthonormal", "orthonormal basis", d, d, 0.0, True)


def simplex(d: int, eps: float) -> Iterator[Block]:
    """d + 1 lines through the corners of a regular simplex, coherence 1/d; in the plane they are a `polygon`."""
    if d >= 3 and fits(1.0 / d, eps):
        yield Block("simplex", "simplex", d, d + 1, 1.0 / d, True)


def polygon(d: int, eps: float) -> Iterator[Block]:
    """k lines in the plane at equal angles, coherence cos(pi/k): the optimum for d = 2."""
    k = lines_in_plane(eps)
    if d >= 2 and k >= 3:
        yield Block("polygon", f"{k} equal angles in the plane", 2, k, math.cos(math.pi / k), True, {"k": k})


def root_d(d: int, eps: float) -> Iterator[Block]:
    """d(d-1) lines of the root system D_d: e_i +- e_j, coherence 1/2."""
    if d >= 3 and fits(0.5, eps):
        yield Block("root_d", f"root system D{d}", d, d * (d - 1), 0.5, True)


def hadamard(d: int, eps: float) -> Iterator[Block]:
    """Standard and Hadamard basis of R^(2^M), M >= 2: 2 d lines at 1/sqrt(d)."""
    for bits in _bits(d, 2):
        if fits(2.0 ** (-bits / 2), eps):
            yield Block("hadamard", "basis + Hadamard", 1 << bits, 2 << bits, 2.0 ** (-bits / 2), True, {"bits": bits})


def kerdock(d: int, eps: float) -> Iterator[Block]:
    """Real mutually unbiased bases from Kerdock sets, d = 4^m: d(d/2 + 1) lines at exactly 1/sqrt(d).

    (A. M. Kerdock 1972; P. J. Cameron and J. J. Seidel 1973.)
    """
    for bits in _bits(d, 2):
        size = 1 << bits
        if bits % 2 == 0 and fits(2.0 ** (-bits / 2), eps):
            k = size * (size // 2 + 1)
            yield Block("kerdock", "Kerdock (real MUBs)", size, k, 2.0 ** (-bits / 2), True, {"bits": bits})


def delsarte_goethals(d: int, eps: float) -> Iterator[Block]:
    """2^(M + (M-1)(r+1)) + d lines at 2^r / sqrt(d), d = 2^M, M even, 1 <= r < M/2 (P. Delsarte, J.-M. Goethals 1975).

    Alternating forms that differ pairwise by rank >= M - 2r, with the standard basis; r = 0 is `kerdock`.
    """
    for bits in _bits(d, 4):
        usable = [r for r in range(1, bits // 2) if bits % 2 == 0 and fits(2.0 ** (r - bits / 2), eps)]
        if usable:
            r, size = usable[-1], 1 << bits
            k = (1 << (bits + (bits - 1) * (r + 1))) + size
            name, params = f"Delsarte-Goethals r={r}", {"bits": bits, "r": r}
            yield Block("delsarte_goethals", name, size, k, 2.0 ** (r - bits / 2), True, params)


def quadratic_forms(d: int, eps: float) -> Iterator[Block]:
    """2^(M + M((M-1)/2 - h + 1)) + d lines at 2^-h, d = 2^M, M odd: forms whose differences have rank >= 2h.

    (P. Delsarte and J.-M. Goethals 1975; h = (M-1)/2 is the family of R. Gold, 1967.)
    """
    for bits in _bits(d, 3):
        half = (bits - 1) // 2
        usable = [h for h in range(1, half + 1) if bits % 2 and fits(2.0**-h, eps)]
        if usable:
            h, size = usable[0], 1 << bits
            k = (1 << (bits + bits * (half - h + 1))) + size
            name = f"quadratic forms h={h}" if h < half else "Gold"
            yield Block("quadratic_forms", name, size, k, 2.0**-h, True, {"bits": bits, "h": h})


def dual_bch(d: int, eps: float) -> Iterator[Block]:
    """2^(tM) + d lines at <= 2(t-1)/sqrt(d), d = 2^M: (-1)^Tr(f), f odd of degree <= 2t-1.

    Weil's bound |sum (-1)^Tr(f)| <= (deg f - 1) sqrt(d) holds as every exponent of f is odd (L. Carlitz and
    S. Uchiyama 1957).
    """
    for bits in _bits(d, 3):
        t = int(loosened(eps) * 2.0 ** (bits / 2) / 2.0) + 1
        coherence = 2.0 * (t - 1) * 2.0 ** (-bits / 2)
        if t >= 2 and coherence < 1.0:
            k = (1 << (t * bits)) + (1 << bits)
            yield Block("dual_bch", f"dual BCH t={t}", 1 << bits, k, coherence, False, {"bits": bits, "t": t})


def reed_muller(d: int, eps: float) -> Iterator[Block]:
    """Words of the Reed-Muller code RM(r, M) up to sign, d = 2^M, 3 <= r < M: coherence 1 - 2^(1-r).

    The code holds the all-one word and has minimum distance 2^(M-r), so weights lie between that and its complement
    (D. E. Muller, I. S. Reed 1954). r = 2 is `delsarte_goethals` or `quadratic_forms` with all forms.
    """
    for bits in _bits(d, 4):
        usable = [r for r in range(3, bits) if fits(1.0 - 2.0 ** (1 - r), eps)]
        if usable:
            r = usable[-1]
            k = 1 << sum(math.comb(bits, i) for i in range(1, r + 1))
            name, params = f"Reed-Muller r={r}", {"bits": bits, "order": r}
            yield Block("reed_muller", name, 1 << bits, k, 1.0 - 2.0 ** (1 - r), True, params)


def barnes_wall(d: int, eps: float) -> Iterator[Block]:
    """Shortest vectors of the Barnes-Wall lattice, d = 2^M: prod_{i=1..M} (2^i + 2) / 2 lines at 1/2.

    Shortest vectors of any lattice are at 60 degrees or more (E. S. Barnes and G. E. Wall 1959; J. H. Conway and
    N. J. A. Sloane, Sphere Packings, Lattices and Groups, chapter 1, for the number).
    """
    if fits(0.5, eps):
        for bits in _bits(d, 3):
            k = math.prod((1 << i) + 2 for i in range(1, bits + 1)) // 2
            yield Block("barnes_wall", "Barnes-Wall lattice", 1 << bits, k, 0.5, True, {"bits": bits})


def exponential_sums(d: int, eps: float) -> Iterator[Block]:
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


def conference(d: int, eps: float) -> Iterator[Block]:
    """q + 1 equiangular lines in R^((q+1)/2) at 1/sqrt(q), q = 1 mod 4 a prime power (Paley's conference matrices).

    (J. H. van Lint and J. J. Seidel 1966.)
    """
    for q in range(2 * d - 1 - (2 * d - 2) % 4, 4, -4):
        if not fits(1.0 / math.sqrt(q), eps):
            return
        if prime_power(q):
            name = f"conference matrix q={q}"
            yield Block("conference", name, (q + 1) // 2, q + 1, 1.0 / math.sqrt(q), True, {"q": q})
            return


@lru_cache(maxsize=1)
def _steiner_systems(largest: int = 1_000_000) -> tuple[tuple[int, int, int, int], ...]:
    """(b, v, r, block size) of Steiner systems S(2, s, v) with a Hadamard matrix of order r + 1, b <= largest."""
    found = [(v * (v - 1) // 2, v, v - 1, 2) for v in range(4, math.isqrt(2 * largest) + 2, 4)]  # all pairs
    # Triples exist for v = 1 or 3 mod 6 (T. P. Kirkman 1847).
    triples = [v for v in range(7, math.isqrt(6 * largest) + 2, 8) if v % 6 in (1, 3)]
    found += [(v * (v - 1) // 6, v, (v - 1) // 2, 3) for v in triples]
    for q in (3, 4, 5, 7, 8, 9, 11, 13, 16, 17, 19, 23, 25, 27, 29, 31):  # lines of affine and projective spaces
        for n in range(2, 12):
            r = (q**n - 1) // (q - 1)
            found.append((q ** (n - 1) * r, q**n, r, q))
            v = (q ** (n + 1) - 1) // (q - 1)
            found.append((v * r // (q + 1), v, r, q + 1))
    return tuple(sorted(row for row in found if row[0] <= largest and is_hadamard_order(row[2] + 1)))


def steiner(d: int, eps: float) -> Iterator[Block]:
    """v(r+1) equiangular lines in R^b at 1/r from a Steiner system of v points, b blocks, r blocks to a point.

    (M. Fickus, D. G. Mixon, J. C. Tremain, Linear Algebra and its Applications 436, 2012: a Hadamard matrix of order
    r + 1 spread over the incidence matrix.)
    """
    best = None
    for b, v, r, s in _steiner_systems():
        if b > d:
            break
        if fits(1.0 / r, eps) and (best is None or v * (r + 1) > best.k):
            name = f"Steiner equiangular S(2,{s},{v})"
            best = Block("steiner", name, b, v * (r + 1), 1.0 / r, True, {"v": v, "block": s, "r": r})
    if best is not None:
        yield best


_SPORADIC: tuple[tuple[int, int, float, str], ...] = (
    (4, 3, 1 / 3, "diagonals of the cube"),
    (6, 3, 1 / math.sqrt(5.0), "icosahedron"),
    (7, 3, 1 / math.sqrt(3.0), "axes and diagonals of the cube"),
    (10, 5, 1 / 3, "Petersen lines"),
    (16, 6, 1 / 3, "Clebsch lines"),
    (28, 7, 1 / 3, "28 equiangular lines"),
    (36, 15, 1 / 5, "36 equiangular lines"),
    (276, 23, 1 / 5, "276 equiangular lines"),
    (1408, 22, 1 / 3, "Leech section"),
    (2300, 23, 1 / 3, "Leech section"),
    (12, 4, 1 / 2, "root system D4"),
    (36, 6, 1 / 2, "root system E6"),
    (63, 7, 1 / 2, "root system E7"),
    (120, 8, 1 / 2, "root system E8"),
    (378, 12, 1 / 2, "Coxeter-Todd lattice"),
    (46575, 23, 1 / 2, "laminated lattice"),
    (98280, 24, 1 / 2, "Leech lattice"),
    (26208000, 48, 1 / 2, "extremal lattice P48"),
    (3109087800, 72, 1 / 2, "Nebe's lattice"),
)
"""(k, d, coherence, name). Equiangular: P. W. H. Lemmens and J. J. Seidel 1973. Lattices: half the shortest vectors, as
counted in Conway and Sloane (d <= 48) and G. Nebe 2012 (d = 72)."""


def sporadic(d: int, eps: float) -> Iterator[Block]:
    """Sets known one by one: equiangular lines, root systems, sections of the Leech lattice, extremal lattices."""
    for k, dim, coherence, name in _SPORADIC:
        if dim <= d and fits(coherence, eps):
            yield Block("sporadic", name, dim, k, coherence, True, {"k": k, "d": dim})


FAMILIES: dict[str, Callable[[int, float], Iterator[Block]]] = {
    member.__name__: member
    for member in (
        orthonormal,
        simplex,
        polygon,
        sporadic,
        root_d,
        hadamard,
        conference,
        steiner,
        kerdock,
        delsarte_goethals,
        quadratic_forms,
        dual_bch,
        exponential_sums,
        barnes_wall,
        reed_muller,
    )
}
"""Name -> function."""


def _bits(d: int, least: int) -> range:
    """M with 2^M <= d, from `least`."""
    return range(least, d.bit_length())
