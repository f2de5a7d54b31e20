"""YAML: the values that a plain file holds, and one line for everything else."""

from __future__ import annotations

import math

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from repcap.errors import InputError
from repcap.plain_yaml import LONGEST_NUMBER, MOST_PARTS, parse_yaml

SCALARS = st.none() | st.booleans() | st.integers(-(10**20), 10**20) | st.floats(allow_nan=False) | st.text(max_size=8)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
)


@given(VALUES)
def test_what_is_written_is_read(value) -> None:
    assert parse_yaml(yaml.safe_dump(value), "here") == value


def test_the_numbers_of_yaml() -> None:
    text = "[0x1f, 017, 0b101, 1_000, -3, 1.5e+3, .5, -.inf, .nan, 1:30, 2001-01-01, 1e3, !!float 3, yes, Off, ~]"
    *numbers, nan, base60, date, plain, tagged, yes, off, null = parse_yaml(text, "here")
    assert numbers == [31, 15, 5, 1000, -3, 1500.0, 0.5, -math.inf]
    assert math.isnan(nan)
    assert (base60, date, plain, tagged, yes, off, null) == ("1:30", "2001-01-01", "1e3", 3.0, True, False, None)


def test_aliases_and_merges() -> None:
    text = "a: &a {x: 1, y: 2}\nb: {<<: *a, y: 3}\nc: [*a, *a]\n"
    a = {"x": 1, "y": 2}
    assert parse_yaml(text, "here") == {"a": a, "b": {"x": 1, "y": 3}, "c": [a, a]}


LAUGHS = "a0: &a0 [x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 8)}]\n" for n in range(1, 12)
)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: 1\na: 2", "line 2: the key a is given twice"),
        ("x: !!float y", "line 1: 'y' is no number that is read"),
        ("!!int x: 1", "line 1: 'x' is no number that is read"),
        ("0o8: !!int 0o8", "line 1: '0o8' is no number that is read"),
        ("\n- !!bool x", "line 2: the tag !!bool is not read"),
        ("!!omap [a: 1]", "line 1: the tag !!omap is not read"),
        ("!!python/object/apply:os.system [echo]", "line 1: the tag !!python/object/apply:os.system is not read"),
        ("!mine x", "line 1: the tag !mine is not read"),
        ("&a [*a]", "line 1: an alias stands inside what it names"),
        ("? [a]\n: b", "line 1: a key must be text"),
        ("<<: 3", "line 1: << takes mappings"),
        ("[" * 5000, "line 1: nested too deeply"),
        ("9" * 5000, f"line 1: {'9' * 40!r} is no number that is read"),
        ("1." + "9" * LONGEST_NUMBER, "is no number that is read"),
        (LAUGHS, f"more than {MOST_PARTS} values"),
        ("x" * (1 << 23), "characters"),
        ("[x, {", "while parsing"),
        ('"\\U99999999"', ""),
        ("\x00", "unacceptable character"),
    ],
)
def test_everything_else_is_one_line(text, said) -> None:
    with pytest.raises(InputError) as caught:
        parse_yaml(text, "here.yaml")
    assert str(caught.value).startswith("here.yaml is no valid YAML: ")
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_texts_are_legible() -> None:
    assert parse_yaml('"\\ud800"', "here") == "\\ud800"
