"""A family is one object: added to the table it is chosen, answered by, built by name and named in the help."""

from __future__ import annotations

import importlib

import numpy as np
import pytest

from line_sets import coherence
from repcap.bracket.capacity import capacity
from repcap.constructions import CONSTRUCTIONS
from repcap.constructions.build import best_lines, most_lines, named_lines
from repcap.constructions.family import Block, Family, fits
from repcap.constructions.lines import Table
from repcap.errors import InputError
from repcap.verbs.pack import command as pack_command

ROWS = np.random.default_rng(0).normal(size=(700, 9))
COHERENCE = float(coherence(ROWS))


def choose(d, given):
    if d != 9:
        raise InputError(f"drawn lines are of R^9, got d = {d}")
    return {}


DRAWN = Family(
    "drawn_once",
    "Measured over all pairs.",
    lambda d, eps: [Block("drawn_once", "drawn lines", 9, 700, COHERENCE, True)] * (d >= 9 and fits(COHERENCE, eps)),
    lambda d, params: Table("drawn lines", ROWS, COHERENCE),
    command="drawn",
    choose=choose,
)


@pytest.fixture
def drawn(monkeypatch):
    monkeypatch.setitem(CONSTRUCTIONS, DRAWN.key, DRAWN)


def test_capacity_answers_by_it(drawn):
    found = capacity(9, COHERENCE * 1.000001).bracket["explicit"]
    assert (found["k"], found["name"]) == (pytest.approx(700), "drawn lines")
    assert capacity(d=9, k=650).bracket["explicit"]["epsilon"] == pytest.approx(COHERENCE)


def test_it_is_built_by_choice_and_by_name(drawn):
    assert most_lines(9, COHERENCE * 1.000001).name == "drawn lines"
    assert (best_lines(653, 9).name, best_lines(653, 9).count) == ("drawn lines", 653)
    assert named_lines("drawn", 9).count == 700
    with pytest.raises(InputError, match="R\\^9"):
        named_lines("drawn", 8)


def test_the_command_line_builds_it_and_names_it(drawn, repcap):
    done = repcap("pack", "--construct", "drawn", 20, 9, "--no-save", "--json").json
    assert (done["name"], done["k"]) == ("drawn lines", 20)
    importlib.reload(pack_command)  # its help is written when it is loaded
    assert "drawn" in repcap("pack", "--help").out


def test_without_it_nothing_is_left():
    assert "drawn" not in capacity(9, COHERENCE * 1.000001).bracket["explicit"]["name"]
    with pytest.raises(InputError, match="no construction is called"):
        named_lines("drawn", 9)
