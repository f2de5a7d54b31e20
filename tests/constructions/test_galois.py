"""The axioms of finite fields, over whole fields."""

from __future__ import annotations

import numpy as np
import pytest

from repcap.constructions.galois import field
from repcap.constructions.primes import prime_power
from repcap.errors import DomainError

FIELDS = [(2, 1), (2, 3), (2, 6), (3, 1), (3, 3), (5, 2), (7, 1), (11, 1)]


@pytest.mark.parametrize(("p", "m"), FIELDS)
def test_field_axioms(p, m):
    f = field(p, m)
    x = f.elements()
    a, b, c = x[:, None, None], x[None, :, None], x[None, None, : min(f.q, 8)]
    assert np.array_equal(f.mul(a, f.add(b, c)), f.add(f.mul(a, b), f.mul(a, c)))
    assert np.array_equal(f.mul(f.mul(a, b), c), f.mul(a, f.mul(b, c)))
    table = f.mul(x[1:, None], x[None, 1:])
    assert all(sorted(row) == list(range(1, f.q)) for row in table.tolist())  # no divisors of zero, an inverse for all
    sums = f.add(x[:, None], x[None, :])
    assert all(sorted(row) == list(range(f.q)) for row in sums.tolist())
    assert np.array_equal(f.add(x, f.mul(x, f.minus_one())), np.zeros(f.q))
    assert np.array_equal(f.power(x, f.q), x)
    assert np.array_equal(f.power(x, 3), f.mul(x, f.mul(x, x)))


@pytest.mark.parametrize(("p", "m"), FIELDS)
def test_trace_is_linear_and_balanced(p, m):
    f = field(p, m)
    x = f.elements()
    trace = f.trace(x)
    assert np.array_equal(np.bincount(trace, minlength=p), np.full(p, f.q // p))
    assert np.array_equal(f.trace(f.add(x[:, None], x[None, :])), (trace[:, None] + trace[None, :]) % p)
    assert np.array_equal(f.trace(f.power(x, p)), trace)


def test_prime_powers():
    assert [q for q in range(2, 50) if prime_power(q)] == [
        2, 3, 4, 5, 7, 8, 9, 11, 13, 16, 17, 19, 23, 25, 27, 29, 31, 32, 37, 41, 43, 47, 49,
    ]  # fmt: skip


@pytest.mark.parametrize(("p", "m"), [(4, 1), (1, 1), (2, 0), (2, 60)])
def test_no_such_field(p, m):
    with pytest.raises(DomainError):
        field(p, m)
