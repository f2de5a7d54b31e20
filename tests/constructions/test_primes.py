from __future__ import annotations

import sympy

from repcap.constructions.primes import is_hadamard_order, is_prime, odd_prime_powers_below, prime_power


def test_primes_and_prime_powers_against_sympy():
    for n in range(3000):
        assert is_prime(n) == sympy.isprime(n)
        factors = sympy.factorint(n) if n > 1 else {}
        expected = next(iter(factors.items())) if len(factors) == 1 else None
        assert prime_power(n) == expected


def test_odd_prime_powers_below():
    assert odd_prime_powers_below(30) == ((29, 1),)
    assert odd_prime_powers_below(28) == ((3, 3), (5, 2), (23, 1))
    assert odd_prime_powers_below(128) == ((127, 1),)
    assert odd_prime_powers_below(2) == ()


def test_hadamard_orders():
    # Up to 100 the orders that Sylvester, Paley and Kronecker products miss are 92 alone (Hall, Combinatorial Theory).
    built = {n for n in range(1, 101) if is_hadamard_order(n)}
    assert built == {1, 2, *range(4, 101, 4)} - {92}
