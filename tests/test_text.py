"""Text from strangers' files, made safe for where it goes."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from repcap.text import json_text, jsonable, legible, printable, shorten, spreadsheet, storable, visible

ANY_TEXT = st.text(st.characters(codec=None), max_size=40)


@given(ANY_TEXT)
def test_no_terminal_code_survives(text):
    assert printable(text).isprintable()
    assert len(shorten(text, 10)) <= 10
    assert visible(text, 8).isprintable()
    assert len(visible(text, 8)) <= 10


@given(ANY_TEXT)
def test_what_is_legible_is_utf_8(text):
    legible(text).encode("utf-8")


@given(ANY_TEXT)
def test_json_with_surrogates_reads_back(text):
    written = json_text(json.dumps([text], ensure_ascii=False))
    assert json.loads(written.encode("utf-8")) == [text]


@pytest.mark.parametrize("value", ["=1+1", "+1", "-1", "@x", "\tx", "\rx"])
def test_no_formula_reaches_a_spreadsheet(value):
    assert spreadsheet(value) == f"'{value}"


def test_what_json_cannot_say_becomes_null():
    value = {"a": np.float32(1.5), "b": (math.inf, [np.array([1, 2])]), 3: math.nan}
    assert jsonable(value) == {"a": 1.5, "b": [None, [[1, 2]]], "3": None}
    assert storable({"caf\udce9": "\ud800"}) == {"caf\\udce9": "\\ud800"}
