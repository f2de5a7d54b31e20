"""Check certificates of explicit sets of lines. One file: Python's standard library and mpmath, nothing of repcap.

    python tools/check_certificate.py CERTIFICATE.json ...

For every part the conditions of its theorem, its number of lines (an exact integer) and its coherence are derived again
from the family and its parameters. Of up to 1024 dimensions, sets of BUILD are built whole and every pair is measured;
those of LINEAR, Kerdock's and Delsarte-Goethals sets are built whole up to ENTRIES numbers, else words are drawn; of
exponential sums words are drawn. A conference matrix is multiplied out. Steiner systems, lattices, single sets and
words over lines rest on the theorem. The upper bound is found again in interval arithmetic, that of a linear program in
exact arithmetic. The first thing that does not hold is named, and the exit code is 1.
"""

from __future__ import annotations

import json
import math
import random
import sys
from fractions import Fraction
from functools import lru_cache
from itertools import combinations, pairwise, product
from pathlib import Path

from mpmath import iv, mp, mpf

ENTRIES, DRAWN = 10**6, 12
mp.dps = 40


class Refused(Exception):
    """What does not hold."""


def need(holds: bool, what: str) -> None:
    if not holds:
        raise Refused(what)


# Numbers ----------------------------------------------------------------------------------------------------------


def prime_power(q: int) -> tuple[int, int]:
    """(p, m) with q = p^m."""
    if q & (q - 1) == 0 and q > 1:
        return 2, q.bit_length() - 1
    p = next((i for i in range(2, math.isqrt(q) + 1) if q % i == 0), q)
    m = round(math.log(q, p)) if q > 1 else 0
    need(q > 1 and p**m == q, f"{q} is no prime power")
    return p, m


def value(form: list) -> mpf:
    """A coherence, to 40 digits."""
    if form[0] == "sqrt":
        square = Fraction(form[1])
        return mp.sqrt(mpf(square.numerator) / square.denominator)
    if form[0] == "cos_pi_over":
        return mp.cos(mp.pi / form[1])
    need(form[0] == "mixed", f"unknown form {form[0]}")
    return (form[1] + (form[2] - form[1]) * value(form[3])) / mpf(form[2])


def root(square: Fraction) -> list:
    return ["sqrt", str(Fraction(square))]


def gf2_mul(a: int, b: int, m: int, modulus: int) -> int:
    total = 0
    while b:
        if b & 1:
            total ^= a
        a <<= 1
        if a >> m:
            a ^= modulus
        b >>= 1
    return total


def modulus(m: int) -> int:
    """A polynomial over F_2 of degree m for which x has order 2^m - 1."""
    for low in range(1, 1 << m, 2):
        poly, power, order = (1 << m) | low, 2 if m > 1 else 1, 1
        while power != 1 and order < 1 << m:
            power, order = gf2_mul(power, 2, m, poly), order + 1
        if order == (1 << m) - 1 or m == 1:
            return poly
    raise AssertionError


# Families: (d, params) -> (k, coherence); the conditions of the theorem are checked on the way --------------------


def bch(d: int, p: dict) -> tuple[int, list]:
    bits, delta = p["bits"], p["delta"]
    n = (1 << bits) - 1
    need(d == n + 1 and 1 <= delta < d // 2, "a code of length 2^M needs 1 <= delta < d/2")
    zeros = {i * (1 << j) % n for i in range(1, delta) for j in range(bits)}
    return 1 << (n - len(zeros) - 1), root(Fraction(d - 2 * (delta + 1), d) ** 2)


def signs(d: int, p: dict) -> tuple[int, list]:
    m, n, k = p["m"], p["N"], p["K"]
    need(m >= 1 and d == n << m and 1 <= k <= n <= 2 << m, "RS over RM(1,m) needs d = N 2^m, K <= N <= 2^(m+1)")
    return 1 << ((m + 1) * k - 1), root(Fraction(k - 1, n) ** 2)


def words(d: int, p: dict) -> tuple[int, list]:
    inner, n, k = p["inner"], p["N"], p["K"]
    q = p["p"] ** p["m"]
    lines, mu = FAMILIES[inner["family"]](inner["d"], inner["params"])
    need(prime_power(q) == (p["p"], p["m"]), f"{q} is no power of the prime {p['p']}")
    need(int(inner["k"], 16) == lines, f"the inner set has {lines} lines")
    need(q <= lines and d == n * inner["d"] and 1 <= k <= n <= q, "RS over lines needs q <= lines, d = N m, K <= N")
    return q**k, ["mixed", k - 1, n, mu]


def dual_bch(d: int, p: dict) -> tuple[int, list]:
    bits, t = p["bits"], p["t"]
    need(d == 1 << bits and t >= 2 and 2 * t - 2 < 2 ** (-(-bits // 2)), "Weil's bound needs 2t - 2 < 2^ceil(M/2)")
    return (1 << (t * bits)) + d, root(Fraction(4 * (t - 1) ** 2, d))


def sums(d: int, p: dict) -> tuple[int, list]:
    q, n = p["p"] ** p["m"], p["n"]
    need(prime_power(q) == (p["p"], p["m"]) and p["p"] > 2 and d == 2 * q, "exponential sums need d = 2q, q odd")
    need(n % p["p"] != 0 and (n - 1) ** 2 < q, "Weil's bound needs a degree prime to p, (n - 1)^2 < q")
    return 2 * q ** (n - n // p["p"]), root(Fraction((n - 1) ** 2, q))


def goethals(d: int, p: dict) -> tuple[int, list]:
    bits, r = p["bits"], p.get("r", 0)
    need(d == 1 << bits and bits % 2 == 0 and 0 <= r < bits // 2, "Delsarte-Goethals sets need M even, r < M/2")
    return (1 << (bits + (bits - 1) * (r + 1))) + d, root(Fraction(4**r, d))


def forms(d: int, p: dict) -> tuple[int, list]:
    bits, h = p["bits"], p["h"]
    need(d == 1 << bits and bits % 2 == 1 and 1 <= h <= (bits - 1) // 2, "quadratic forms need M odd, h <= (M-1)/2")
    return (1 << (bits + bits * ((bits - 1) // 2 - h + 1))) + d, root(Fraction(1, 4**h))


def muller(d: int, p: dict) -> tuple[int, list]:
    bits, r = p["bits"], p["order"]
    need(d == 1 << bits and 1 <= r < bits, "RM(r, M) needs r < M")
    return 1 << sum(math.comb(bits, i) for i in range(1, r + 1)), root((1 - Fraction(2, 2**r)) ** 2)


def hadamard_order(n: int) -> bool:
    """By Sylvester, Paley and products."""

    def power(q: int) -> bool:
        try:
            prime_power(q)
        except Refused:
            return False
        return True

    if n in (1, 2):
        return True
    if n % 4:
        return False
    half = n // 2 - 1
    if power(n - 1) or (half % 4 == 1 and power(half)):
        return True
    return any(n % a == 0 and hadamard_order(a) and hadamard_order(n // a) for a in range(2, math.isqrt(n) + 1))


def steiner(d: int, p: dict) -> tuple[int, list]:
    v, s, r = p["v"], p["block"], p["r"]
    need(v - 1 == r * (s - 1) and v * r == d * s, "S(2, s, v) needs v - 1 = r (s - 1) and b s = v r")
    known = s == 2 or (s == 3 and v % 6 in (1, 3))
    for q, spaces in ((s, lambda q, n: q**n), (s - 1, lambda q, n: (q ** (n + 1) - 1) // (q - 1))):
        known = known or (q > 2 and any(spaces(q, n) == v for n in range(2, 12)) and prime_power(q) is not None)
    need(known and hadamard_order(r + 1), "no such Steiner system, or no Hadamard matrix of order r + 1, is known here")
    return v * (r + 1), root(Fraction(1, r * r))


def wall(d: int, p: dict) -> tuple[int, list]:
    need(d == 1 << p["bits"] and p["bits"] >= 3, "Barnes-Wall lattices need d = 2^M, M >= 3")
    return math.prod(2**i + 2 for i in range(1, p["bits"] + 1)) // 2, root(Fraction(1, 4))


SPORADIC = {
    (4, 3): "1/9", (6, 3): "1/5", (7, 3): "1/3", (10, 5): "1/9", (16, 6): "1/9", (28, 7): "1/9", (36, 15): "1/25",
    (276, 23): "1/25", (1408, 22): "1/9", (2300, 23): "1/9", (12, 4): "1/4", (36, 6): "1/4", (63, 7): "1/4",
    (120, 8): "1/4", (378, 12): "1/4", (46575, 23): "1/4", (98280, 24): "1/4", (26208000, 48): "1/4",
    (3109087800, 72): "1/4",
}  # fmt: skip


def sporadic(d: int, p: dict) -> tuple[int, list]:
    need(p["d"] == d and (p["k"], d) in SPORADIC, f"no set of {p['k']} lines in R^{d} is known here")
    return p["k"], ["sqrt", SPORADIC[p["k"], d]]


def conference(d: int, p: dict) -> tuple[int, list]:
    need(p["q"] % 4 == 1 and 2 * d == p["q"] + 1, "a conference matrix needs q = 1 mod 4, d = (q + 1)/2")
    prime_power(p["q"])
    return 2 * d, root(Fraction(1, p["q"]))


FAMILIES = {
    "orthonormal": lambda d, p: (d, root(Fraction(0))),
    "simplex": lambda d, p: (d + 1, root(Fraction(1, d * d))),
    "polygon": lambda d, p: (p["k"], ["cos_pi_over", p["k"]]) if d == 2 else (0, []),
    "sporadic": sporadic,
    "root_d": lambda d, p: (d * (d - 1), root(Fraction(1, 4))),
    "hadamard": lambda d, p: (2 * d if d == 1 << p["bits"] else 0, root(Fraction(1, d))),
    "conference": conference,
    "steiner": steiner,
    "kerdock": goethals,
    "delsarte_goethals": goethals,
    "quadratic_forms": forms,
    "dual_bch": dual_bch,
    "exponential_sums": sums,
    "barnes_wall": wall,
    "reed_muller": muller,
    "extended_bch": bch,
    "reed_solomon_signs": signs,
    "reed_solomon_lines": words,
}


# Vectors: whole up to ENTRIES numbers, else drawn. A vector of signs is an integer: bit 1 for -1 ----------------------


@lru_cache
def traces(bits: int) -> list[int]:
    """Tr(g^i) for i = 0 .. 2^bits - 2, g a primitive element."""
    n, poly = (1 << bits) - 1, modulus(bits)
    found, x = [], 1
    for _ in range(n):
        y, trace = x, 0
        for _ in range(bits):
            trace, y = trace ^ y, gf2_mul(y, y, bits, poly)
        found.append(trace)
        x = gf2_mul(x, 2, bits, poly)
    return found


def trace_words(bits: int, powers: list[int]) -> list[int]:
    """Tr(g^j x^power) for j < bits and each power, as words over x = 0, g^0, g^1 ...; they span all Tr(a x^power)."""
    n, trace = (1 << bits) - 1, traces(bits)
    return [sum(trace[(j + power * i) % n] << (i + 1) for i in range(n)) for power in powers for j in range(bits)]


def bch_basis(d: int, p: dict) -> list[int]:
    n = d - 1
    cosets = {min(i * (1 << j) % n for j in range(p["bits"])) for i in range(p["delta"], n)}
    return trace_words(p["bits"], [-leader for leader in cosets if leader >= p["delta"]])


def dual_basis(d: int, p: dict) -> list[int]:
    return trace_words(p["bits"], [2 * i + 1 for i in range(p["t"])])


def forms_basis(d: int, p: dict) -> list[int]:
    return trace_words(p["bits"], [1, *(1 + (1 << j) for j in range(p["h"], (p["bits"] + 1) // 2))])


def muller_basis(d: int, p: dict) -> list[int]:
    chosen = [m for m in range(1, d) if m.bit_count() <= p["order"]]
    return [sum(1 << v for v in range(d) if v & m == m) for m in chosen]


def signs_basis(d: int, p: dict) -> list[int]:
    m, poly = p["m"], modulus(p["m"] + 1)
    found = []
    for power, bit in [(j, b) for j in range(p["K"]) for b in range(m + (j > 0))]:
        word = 0
        for x in range(p["N"]):
            symbol = 1 << bit
            for _ in range(power):
                symbol = gf2_mul(symbol, x, m + 1, poly)
            low, high = symbol & ((1 << m) - 1), symbol >> m
            word |= sum(((low & v).bit_count() & 1 ^ high) << (x << m | v) for v in range(1 << m))
        found.append(word)
    return found


LINEAR = {
    "extended_bch": bch_basis, "dual_bch": dual_basis, "quadratic_forms": forms_basis, "reed_muller": muller_basis,
    "reed_solomon_signs": signs_basis,
}  # fmt: skip
"""Families closed under products: the cosine of two vectors is that of a third one and of the all-one vector."""


def measure_linear(d: int, k: int, basis: list[int], most: mpf) -> None:
    """k (less d axes) is the number of words, each of a weight that the coherence allows."""
    pivots: dict[int, int] = {}
    for word in basis:
        while word and word.bit_length() in pivots:
            word ^= pivots[word.bit_length()]
        if word:
            pivots[word.bit_length()] = word
    free = list(pivots.values())
    need(k in (1 << len(free), (1 << len(free)) + d), f"the words span 2^{len(free)}")
    need(k == 1 << len(free) or most * most * d >= 1 - mpf(10) ** -30, "the axes are nearer than the coherence")
    whole, chance, word = k * d <= ENTRIES, random.Random(0), 0
    for i in range(1, 1 << len(free)) if whole else range(4 * DRAWN):
        if whole:
            word ^= free[(i & -i).bit_length() - 1]  # in the order of Gray's code
        else:
            word = 0
            for row in free:
                word ^= row * chance.randrange(2)
        cosine = mpf(abs(d - 2 * word.bit_count())) / d
        need(cosine <= most * (1 + mpf(10) ** -30) or word == 0, f"a word has cosine {cosine}")


def goethals_words(d: int, p: dict, chance: random.Random | None) -> list[int]:
    """(-1)^(Q + linear), Q the quadratic form whose bilinear form is, on F x F_2, F of 2^(M-1) elements,

    Tr(a^2 xy) + Tr(ax) Tr(ay) + alpha Tr(ay) + beta Tr(ax) + sum_j Tr(b_j (x^(2^j) y + x y^(2^j))), j = 1 .. r.
    """
    bits, r, n = p["bits"], p.get("r", 0), p["bits"] - 1
    poly, trace = modulus(n), [0] * (1 << n)
    x = 1
    for value_ in traces(n):
        trace[x], x = value_, gf2_mul(x, 2, n, poly)

    def times(*factors: int) -> int:
        total = 1
        for factor in factors:
            total = gf2_mul(total, factor, n, poly)
        return total

    def form(coefficients: list[int]) -> int:
        a, *rest = coefficients
        rows = []
        for i in range(bits):
            row = 0
            for j in range(bits):
                x, alpha, y, beta = *((1 << i, 0) if i < n else (0, 1)), *((1 << j, 0) if j < n else (0, 1))
                ax, ay = trace[times(a, x)], trace[times(a, y)]
                value_ = trace[times(a, a, x, y)] ^ ax & ay ^ alpha & ay ^ beta & ax
                u, v = x, y
                for b in rest:
                    u, v = times(u, u), times(v, v)
                    value_ ^= trace[times(b, u, y)] ^ trace[times(b, x, v)]
                row |= value_ << j
            rows.append(row)
        word = 0
        for v in range(d):  # Q of the unit vectors is 0
            word |= (sum((rows[i] & v & ((1 << i) - 1)).bit_count() for i in range(bits) if v >> i & 1) & 1) << v
        return word

    linear = [sum(((u & v).bit_count() & 1) << v for v in range(d)) for u in range(d)]
    if chance is None:
        return [form([*held]) ^ line for held in product(range(1 << n), repeat=r + 1) for line in linear]
    return [form([chance.randrange(1 << n) for _ in range(r + 1)]) ^ chance.choice(linear) for _ in range(DRAWN)]


def measure_goethals(d: int, k: int, p: dict, most: mpf) -> None:
    whole = k * d <= ENTRIES
    words = goethals_words(d, p, None if whole else random.Random(0))
    need(not whole or len(words) + d == k, f"{len(words)} words and {d} axes are built")
    need(most * most * d >= 1 - mpf(10) ** -30, "the axes are nearer than the coherence")
    least, largest = d, 0
    for i, word in enumerate(words):
        weights = [(word ^ other).bit_count() for other in words[:i] if other != word or whole]
        least, largest = min([least, *weights]), max([largest, *weights])
    worst = mpf(max(d - 2 * least, 2 * largest - d)) / d
    need(worst <= most * (1 + mpf(10) ** -30), f"two vectors have cosine {worst}")


def measure_conference(d: int, p: dict) -> None:
    """C C^T = q, C symmetric: I + C/sqrt(q) is twice a projection, of half the rank. Prime q up to 200."""
    q = p["q"]
    if q > 200 or prime_power(q)[1] > 1:
        return
    squares = {x * x % q for x in range(1, q)}
    core = [[0 if i == j else 1 if (i - j) % q in squares else -1 for j in range(q)] for i in range(q)]
    rows = [[0] + [1] * q, *([1, *row] for row in core)]
    need(all(rows[i][j] == rows[j][i] for i, j in combinations(range(q + 1), 2)), "C is not symmetric")
    for i, j in combinations(range(q + 1), 2):
        need(sum(map(int.__mul__, rows[i], rows[j])) == 0, "C C^T is not q")


def draw_sums(d: int, p: dict, chance: random.Random) -> list[list[float]]:
    if p["m"] != 1:
        return []
    q, rows = p["p"], []
    for _ in range(DRAWN):
        f = [chance.randrange(q) for _ in range(p["n"])]
        phase = [2 * math.pi * (sum(c * pow(x, j + 1, q) for j, c in enumerate(f)) % q) / q for x in range(q)]
        rows.append([*(math.cos(a) for a in phase), *(math.sin(a) for a in phase)])
    return rows


def whole_simplex(d: int, p: dict) -> list[list[float]]:
    return [[(1.0 if i == j else 0.0) - 1.0 / (d + 1) for j in range(d + 1)] for i in range(d + 1)]


def whole_root_d(d: int, p: dict) -> list[list[float]]:
    pairs = [(i, j, sign) for i, j in combinations(range(d), 2) for sign in (1.0, -1.0)]
    return [[1.0 if x == i else sign if x == j else 0.0 for x in range(d)] for i, j, sign in pairs]


def whole_hadamard(d: int, p: dict) -> list[list[float]]:
    axes = [[math.sqrt(d) if x == i else 0.0 for x in range(d)] for i in range(d)]
    return axes + [[(-1.0) ** bin(x & i).count("1") for x in range(d)] for i in range(d)]


def whole_polygon(d: int, p: dict) -> list[list[float]]:
    return [[math.cos(math.pi * i / p["k"]), math.sin(math.pi * i / p["k"])] for i in range(p["k"])]


BUILD = {"simplex": whole_simplex, "root_d": whole_root_d, "hadamard": whole_hadamard, "polygon": whole_polygon}


def measure(family: str, d: int, k: int, params: dict, most: mpf) -> None:
    """Build or draw vectors, and see that no pair passes the coherence (equal and opposite draws are one line)."""
    if family in LINEAR and d <= 1024:
        return measure_linear(d, k, LINEAR[family](d, params), most)
    if family in ("kerdock", "delsarte_goethals") and d <= 1024:
        return measure_goethals(d, k, params, most)
    if family == "conference":
        return measure_conference(d, params)
    rows: list[list[float]] = []
    if family in BUILD and k * d <= ENTRIES and k <= 300:
        rows = BUILD[family](d, params)
        need(len(rows) == k, f"{len(rows)} vectors are built, {k} are claimed")
    elif family == "exponential_sums" and d <= 1024:
        rows = draw_sums(d, params, random.Random(0))
    norms = [math.sqrt(math.fsum(x * x for x in row)) for row in rows]
    for i, j in combinations(range(len(rows)), 2):
        cosine = abs(math.fsum(map(float.__mul__, rows[i], rows[j]))) / (norms[i] * norms[j])
        drawn_twice = family not in BUILD and cosine > 1 - 1e-9
        need(cosine <= float(most) + 1e-9 or drawn_twice, f"two vectors have cosine {cosine}")
    return None


# Upper bounds, in interval arithmetic -----------------------------------------------------------------------------


def log10_levenshtein(d: int, eps: float, digits: int = 60):
    iv.dps = digits
    x, n = iv.mpf(eps), 1
    p_old, p, before, g_old, g = iv.mpf(1), x, iv.mpf(1), iv.mpf(1), x
    while n < 2 or g.b > 0:  # until it is negative for certain, or the digits do not tell
        if g.a <= 0:
            break
        p_old, p = p, ((2 * n + d - 2) * x * p - n * p_old) / (n + d - 2)
        before, (g_old, g) = g_old, (g, ((2 * n + d) * x * g - n * g_old) / (n + d))
        n += 1
    if g.b <= 0 and p.b < 0 and before.a > 0:
        found = iv.log(math.comb(d + n - 3, n - 2) * (1 - before / p)) / iv.log(10)
        if found.delta < mpf(10) ** -9:
            return found
    need(digits < 2000, "the sign of a polynomial is not sure")
    return log10_levenshtein(d, eps, 3 * digits)


def log_points(n: int, s: Fraction, digits: int = 60):
    """ln of Levenshtein's bound on points of the sphere in R^n with cosines <= s, 0 <= s < 1 (1979)."""
    iv.dps = digits
    x, j = iv.mpf(s.numerator) / s.denominator, 1
    p_old, p, g_old, g = iv.mpf(1), x, iv.mpf(1), x
    while g.a > 0:
        p_old, p = p, ((2 * j + n - 2) * x * p - j * p_old) / (j + n - 2)
        g_old, g = g, ((2 * j + n) * x * g - j * g_old) / (j + n)
        j += 1
    after = ((2 * j + n - 2) * x * p - j * p_old) / (j + n - 2)
    odd = p.b < after.a
    if g.b <= 0 and (odd or p.a >= after.b):
        if odd:
            factor = iv.mpf(2 * j + n - 3) / (n - 1) - (p_old - p) / ((1 - x) * p)
            found = iv.log(math.comb(j + n - 3, j - 1) * factor)
        else:
            factor = iv.mpf(2 * j + n - 1) / (n - 1) - (1 + x) * (p - after) / ((1 - x) * (p + after))
            found = iv.log(math.comb(j + n - 2, j) * factor)
        if found.delta < mpf(10) ** -9:
            return found
    need(digits < 2000, "the sign of a polynomial is not sure")
    return log_points(n, s, 3 * digits)


def log10_caps(d: int, eps: Fraction, s: Fraction):
    """A cap of radius rho holds k P points of k lines on average, seen at angles >= phi from its centre, cos(phi) = s.

    sin(phi/2) sin(rho) = sin(theta/2), cos(theta) = eps, or a larger eps where rho would pass theta. P is the chance of
    |cos| >= cos(rho), the incomplete beta function I_x((d-1)/2, 1/2) at x = sin(rho)^2: a series of positive terms.
    """
    need(d >= 4 and 0 <= s <= Fraction(1, 2), "no such caps")
    points = log_points(d - 1, s)
    rest = min(1 - eps, 2 - 1 / (1 - s))  # 1 - cos(theta)
    need(rest > 0, "rho would pass theta")
    square = rest / (1 - s)
    x, a = iv.mpf(square.numerator) / square.denominator, iv.mpf(d - 1) / 2
    front = iv.mpf(1) if d % 2 else 2 / iv.pi  # Gamma(d/2) / (Gamma((d+1)/2) sqrt(pi))
    for i in range(1 if d % 2 else 2, d, 2):
        front = front * i / (i + 1)
    total, term, n = iv.mpf(0), iv.mpf(1), 0
    while term.b > mpf(10) ** -30 * total.b:
        total, term, n = total + term, term * x * (2 * a + 1 + 2 * n) / (2 * a + 2 + 2 * n), n + 1
    tail = iv.mpf([0, (term / (1 - x)).b])  # the ratio of two terms is below x
    share = iv.log(front * iv.sqrt(1 - x) * (total + tail)) + a * iv.log(x)
    return (points - share) / iv.log(10)


MARGIN = Fraction(1, 1 << 20)


def programmed(d: int, eps: Fraction, coefficients: dict):
    """Delsarte's bound by f = 1 + sum c_n P_n, c_n >= 0, n even, P_n(1) = 1, once f <= MARGIN is proven on [0, eps].

    f is a polynomial in t^2 with exact coefficients. It is written in Bernstein's basis on an interval; where all
    numbers there are <= 0, so is f; else the interval is halved. Integers, up to a positive factor.
    """
    terms = {int(n): Fraction(c) for n, c in coefficients.items()}
    most = max(terms, default=0)
    need(all(n > 0 and n % 2 == 0 and c >= 0 for n, c in terms.items()) and 0 < most <= 80, "no such polynomials")
    before, now = [Fraction(1)], [Fraction(0), Fraction(1)]  # Gegenbauer's, by powers of t
    total = [1 - MARGIN, *[Fraction(0)] * (most // 2)]
    for n in range(1, most):
        rest = [*before, Fraction(0), Fraction(0)]
        shifted = [Fraction(0), *now]
        before, now = now, [((2 * n + d - 2) * a - n * b) / (n + d - 2) for a, b in zip(shifted, rest, strict=True)]
        for i, b in enumerate(now[::2] if n % 2 else ()):
            total[i] += terms.get(n + 1, 0) * b
    size = most // 2
    scaled = [c * eps ** (2 * i) / math.comb(size, i) for i, c in enumerate(total)]
    basis = [sum(math.comb(i, j) * scaled[j] for j in range(i + 1)) for i in range(size + 1)]
    common = math.lcm(*(b.denominator for b in basis))
    open_intervals = [([int(b * common) for b in basis], 0)]
    while open_intervals:
        row, depth = open_intervals.pop()
        need(row[0] <= 0 and row[-1] <= 0 and depth < 60, "the polynomial is positive between 0 and epsilon")
        if max(row) > 0:
            left, right = [], []
            for level in range(size, -1, -1):  # de Casteljau, times 2^size
                left.append(row[0] << level)
                right.append(row[-1] << level)
                row = [a + b for a, b in pairwise(row)]
            open_intervals += [(left, depth + 1), (right[::-1], depth + 1)]
    k = (1 - MARGIN + sum(terms.values())) / (1 - MARGIN)
    return iv.mpf(k.numerator) / k.denominator


def log10_upper(d: int, upper: dict):
    bound = upper["bound"]
    if bound in ("one", "basis"):
        return iv.log(iv.mpf(1 if bound == "one" else d)) / iv.log(10)
    eps = upper["at"]
    if bound == "levenshtein":
        return log10_levenshtein(d, eps)
    if bound == "orthoplex":
        need(Fraction(eps) ** 2 * d < 1, "the orthoplex bound needs epsilon < 1/sqrt(d)")
        return iv.log(iv.mpf(d * (d + 1)) / 2) / iv.log(10)
    if bound == "linear-programming":
        return iv.log(programmed(d, Fraction(eps), upper["coefficients"])) / iv.log(10)
    if bound == "caps":
        return log10_caps(d, Fraction(eps), Fraction(upper["hundredths"], 100))
    need(bound == "bukh-cox", f"unknown bound {bound}")
    e = 1
    while (iv.mpf(e * (e + 1)) / ((d + e) * (2 + (e - 1) * iv.sqrt(iv.mpf(e + 2))) - e * (e + 1))).a <= eps:
        e += 1
        need(e <= 2 * d, "Bukh and Cox say nothing here")
    return iv.log(iv.mpf(d + e - 1)) / iv.log(10)


# One certificate --------------------------------------------------------------------------------------------------


MEASURED: set[str] = set()
"""Sets seen already: k and the coherence follow from the parameters."""


def check(held: dict) -> None:
    """Raises Refused, with what does not hold."""
    need(held["schema"] == 1, f"schema {held['schema']} is unknown")
    total, dims, worst = 0, 0, mpf(0)
    for part in held["parts"]:
        family, d, claimed = part["family"], part["d"], int(part["k"], 16)
        need(family in FAMILIES and part["copies"] >= 1, f"unknown family {family}")
        k, coherence = FAMILIES[family](d, part["params"])
        need(k == claimed, f"{family} in R^{d} has {k if k < 10**30 else 'another number of'} lines")
        need(coherence == part["coherence"], f"{family} in R^{d} has coherence {coherence}")
        key = json.dumps([family, d, k.bit_length(), part["params"]])
        if key not in MEASURED:
            measure(family, d, k, part["params"], value(coherence))
            MEASURED.add(key)
        total, dims = total + k * part["copies"], dims + d * part["copies"]
        worst = max(worst, value(coherence))
    need(total == int(held["k"], 16), "the parts do not add up to k")
    need(dims == held["d"], f"the parts have {dims} dimensions")
    need(abs(worst - value(held["coherence"])) < mpf(10) ** -35, "the coherence is not that of the worst part")
    confirm(held["d"], held["upper"], worst)
    need(mp.log10(total) <= held["upper"]["log10_k"] + 1e-9, "more lines than the bound allows")
    if "asked" in held:
        check_asked(held, total, worst)


def check_asked(held: dict, total: int, worst: mpf) -> None:
    """What a row of a table was asked for: the set fits it, and the limit is one on it."""
    asked, limit = held["asked"], held["limit"]
    if "k" not in asked:
        need(worst <= mpf(asked["epsilon"]) + mpf(10) ** -11, "the set is not within the epsilon that was asked for")
        need(limit is not None, "no limit is given")
        confirm(held["d"], limit, mpf(asked["epsilon"]))
        need(mp.log10(total) <= limit["log10_k"] + 1e-9, "more lines than the limit allows")
        return
    need(total >= asked["k"] > 1, "the set has fewer lines than were asked for")
    if limit is None:
        need(asked["epsilon"] == 0 or held["d"] == 1, "no limit is given")
        return
    confirm(held["d"], limit, mpf(limit.get("at", 0)))
    need(limit["log10_k"] < mp.log10(asked["k"]), "so many lines are not excluded")
    need(mpf(asked["epsilon"]) * 0.9 <= limit["at"] <= asked["epsilon"] * (1 + 1e-12), "the limit is another one")
    need(asked["epsilon"] <= worst + mpf(10) ** -11, "the set is better than is claimed to be possible")


def confirm(d: int, upper: dict, coherence: mpf) -> None:
    """The bound is taken at this coherence, is one that is proven, and no larger than that."""
    if upper["bound"] not in ("one", "basis"):
        need(coherence <= upper["at"] <= coherence + mpf(10) ** -11, "the bound is not taken at the coherence")
    need(upper["bound"] != "basis" or coherence == 0, "a basis is the most only where all are orthogonal")
    found = log10_upper(d, upper)
    need(found.b <= upper["log10_k"], f"the bound is {found.b}")
    need(found.a >= upper["log10_k"] - 1e-6, f"the bound is {found.a}, not as large as is claimed")


def main(paths: list[str]) -> int:
    path = ""
    try:
        for path in paths:
            check(json.loads(Path(path).read_text()))
    except (Refused, KeyError, TypeError, ValueError, OSError) as error:
        sys.stderr.write(f"{path}: refused: {error}\n")
        return 1
    sys.stdout.write(f"{len(paths)} certificates hold\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
