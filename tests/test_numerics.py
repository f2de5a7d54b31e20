"""Printing powers of ten, classes, devices."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from repcap.devices import resolve_device
from repcap.errors import InputError
from repcap.numerics import epsilon_class, format_power, power


@pytest.mark.parametrize(
    ("log10", "shown"),
    [
        (None, "none"),
        (math.inf, "unbounded"),
        (-math.inf, "0"),
        (math.nan, "undefined"),
        (0.0, "1"),
        (math.log10(8.42), "8.42"),
        (math.log10(276.6), "277"),
        (math.log10(2112), "2112"),
        (math.log10(3.99e7), "3.99e7"),
        (math.log10(9.9999e8), "1.00e9"),
        (23.32, "10^23.32"),
    ],
)
def test_format_power(log10, shown):
    assert format_power(log10) == shown


@given(st.floats(0.0, 15.9))
def test_format_power_is_close(log10):
    assert float(format_power(log10)) == pytest.approx(10**log10, rel=6e-3)


@given(st.floats(-300, 300))
def test_power_is_the_plain_power(log10):
    assert power(log10) == 10.0**log10


@pytest.mark.parametrize("log10", [None, math.nan, math.inf, 309.0])
def test_power_that_is_no_number_is_none(log10):
    assert power(log10) is None


@pytest.mark.parametrize(
    ("epsilon", "name"), [(0.0999, "low"), (0.1, "between"), (0.2, "between"), (0.2001, "high"), (0.0, "low")]
)
def test_class_borders(epsilon, name):
    assert epsilon_class(epsilon) == name


def test_devices():
    assert resolve_device("cpu").type == "cpu"
    assert resolve_device("auto").type in ("cpu", "cuda", "mps")
    with pytest.raises(InputError, match="unknown device 'gpu': use auto"):
        resolve_device("gpu")
    with pytest.raises(InputError, match="'cuda:97' is not available on this machine"):
        resolve_device("cuda:97")
