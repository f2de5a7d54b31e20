"""The one base of results."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import re

import numpy as np
import pytest

import repcap
from repcap.errors import InputError, MissingExtraError
from repcap.result import SCHEMA_VERSION, Result


@dataclasses.dataclass(frozen=True, repr=False)
class Weighed(Result):
    kind = "weighed"

    grams: float
    parts: tuple[float, ...] = ()

    @property
    def title(self):
        return "a thing"

    @property
    def numbers(self):
        return f"{self.grams:g} g"

    @property
    def reading(self):
        return "It is light."

    def values(self):
        return {"grams": self.grams, "parts": list(self.parts)}


def test_a_record_says_kind_schema_reading_and_call():
    record = Weighed(2.5, (1.0, 1.5)).with_call({"z": 2.0}, 0.25).to_dict()
    assert record == {
        "kind": "weighed",
        "schema_version": SCHEMA_VERSION,
        "grams": 2.5,
        "parts": [1.0, 1.5],
        "reading": "It is light.",
        "options": {"z": 2.0},
        "seconds": 0.25,
        "repcap_version": repcap.__version__,
    }


def test_a_result_prints_in_three_lines():
    assert repr(Weighed(2.5)) == "Weighed: a thing\n  2.5 g\n  It is light."


def test_results_copy_compare_and_pickle():
    one = Weighed(2.5)
    assert copy.deepcopy(one) == one == pickle.loads(pickle.dumps(one))
    assert one != Weighed(2.0)
    with pytest.raises(dataclasses.FrozenInstanceError):
        one.grams = 3.0


def test_a_kind_without_a_figure_says_so():
    with pytest.raises(InputError, match="weighed has no figure"):
        Weighed(1.0).plot()


def test_without_pandas_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
    with pytest.raises(MissingExtraError, match=r"repcap\[notebook\]"):
        Weighed(1.0).to_frame()


def test_a_table_of_one_row_holds_the_plain_values():
    (row,) = Weighed(2.5, (1.0,)).rows()
    assert row["grams"] == 2.5
    assert "parts" not in row


def test_html_is_the_terminals_table_in_the_pages_own_colours():
    html = repcap.measure(np.random.default_rng(0).standard_normal((50, 8)))._repr_html_()
    assert html.startswith("<pre")
    assert "epsilon" in html
    assert "color:inherit" in html
    assert set(re.findall(r"(?<!&)#[0-9a-f]{6}", html)) <= {"#7f7f7f"}  # dim: grey that both themes show
