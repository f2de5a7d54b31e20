"""Small number theory for the constructions: prime powers, and orders of Hadamard matrices that are constructed."""

from __future__ import annotations

import math
from functools import lru_cache


@lru_cache(maxsize=4096)
def is_prime(n: int) -> bool:
    """Trial division: O(sqrt(n)), n up to 10^7 or so."""
    if n < 4:
        return n >= 2
    if n % 2 == 0 or n % 3 == 0:
        return False
    return all(n % i and n % (i + 2) for i in range(5, math.isqrt(n) + 1, 6))


def prime_factors(n: int) -> list[int]:
    """The different primes that divide n >= 1, by trial division."""
    found, rest, p = [], n, 2
    while p * p <= rest:
        if rest % p == 0:
            found.append(p)
            while rest % p == 0:
                rest //= p
        p += 1
    return [*found, rest] if rest > 1 else found


@lru_cache(maxsize=4096)
def prime_power(n: int) -> tuple[int, int] | None:
    """(p, m) with n = p^m, p prime, m >= 1; None if n is no prime power.

    >>> prime_power(27), prime_power(12)
    ((3, 3), None)
    """
    if n < 2:
        return None
    for p in (2, 3, 5, 7):  # most numbers have such a factor
        if n % p == 0:
            m = round(math.log(n, p))
            return (p, m) if p**m == n else None
    if is_prime(n):
        return n, 1
    for m in range(2, n.bit_length() // 3 + 1):  # p >= 11 > 2^3
        p = round(n ** (1.0 / m))
        if p**m == n and is_prime(p):
            return p, m
    return None


@lru_cache(maxsize=4096)
def odd_prime_powers_below(limit: int) -> tuple[tuple[int, int], ...]:
    """(p, m) of the largest odd prime q <= limit and of every higher odd prime power up to limit; none below 3."""
    found = []
    for q in range(limit, 2, -1):
        factors = prime_power(q)
        if factors is not None and factors[0] != 2:
            found.append(factors)
            if factors[1] == 1:
                break
    return tuple(found)


@lru_cache(maxsize=4096)
def is_hadamard_order(n: int) -> bool:
    """Whether Sylvester's, Paley's two constructions and Kronecker products give a real Hadamard matrix of order n."""
    if n in (1, 2):
        return True
    if n % 4:
        return False
    half = n // 2 - 1
    if prime_power(n - 1) or (half % 4 == 1 and prime_power(half)):
        return True
    return any(
        n % a == 0 and is_hadamard_order(a) and is_hadamard_order(n // a) for a in (2, *range(4, math.isqrt(n) + 1, 4))
    )
