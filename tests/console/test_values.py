from __future__ import annotations

import pytest

from repcap.console.values import number, numbers
from repcap.errors import InputError


@pytest.mark.parametrize(
    ("text", "value"),
    [("4096", 4096), ("1e6", 1e6), ("0.05", 0.05), ("2^45", 2**45), ("10^400", 10**400), ("1_000", 1000), (" 7 ", 7)],
)
def test_number(text, value):
    assert number(text, "--k") == value
    assert type(number(text, "--k")) is type(value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("512,4096", [512, 4096]),
        ("0.05..0.1:0.01", [0.05, 0.06, 0.07, 0.08, 0.09, 0.1]),
        ("0..1/5", [0.0, 0.25, 0.5, 0.75, 1.0]),
        ("1..2", [1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7, 1.8, 1.9, 2.0]),
        ("512..8192x2", [512, 1024, 2048, 4096, 8192]),
        ("1..100x10,7,7", [1, 10, 100, 7]),
        ("1e-3..1e-1x10", pytest.approx([1e-3, 1e-2, 1e-1])),
    ],
)
def test_lists_and_ranges(text, expected):
    assert numbers(text, "--eps") == expected


def test_whole_numbers():
    assert numbers("10..20/4", "--d", whole=True) == [10, 13, 17, 20]
    assert numbers("1..5", "--d", whole=True) == [1, 2, 3, 4, 5]  # 11 values, rounded: each once
    assert numbers("1e3", "--d", whole=True) == [1000]
    assert all(isinstance(value, int) for value in numbers("100..200", "--d", whole=True))


def test_nothing_given():
    assert numbers(None, "--d") == []


@pytest.mark.parametrize(
    "text",
    ["", "a", "1,,2", "1..", "..2", "2..1", "1..1", "1..2:", "1..2:-1", "1..2/1", "1..2/1.5", "1..2x1", "0..2x2",
     "1..inf", "nan..2", "1..2:1e-9", "2^", "2^^3", "2^-1", "2^1000000", "9^9^9", "1..2:nan"],
)  # fmt: skip
def test_what_cannot_be_read_is_named(text):
    with pytest.raises(InputError, match="--d"):
        numbers(text, "--d")


def test_fractions_are_no_whole_numbers():
    with pytest.raises(InputError, match=r"'1\.5' is not a whole number"):
        numbers("1.5", "--d", whole=True)
