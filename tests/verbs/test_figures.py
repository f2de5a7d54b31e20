"""Figures of results: into a file, into axes of the caller, or into a figure of their own."""

from __future__ import annotations

import numpy as np
import pytest

import repcap
from repcap.errors import InputError

ROWS = np.random.default_rng(0).standard_normal((60, 8))


@pytest.fixture(scope="module")
def words(tmp_path_factory):
    path = tmp_path_factory.mktemp("words") / "pairs.csv"
    path.write_text("kind,left,right\nnear,#1,#2\nnear,#3,#4\nfar,#5,#6\n")
    return path


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    for step in (1, 2, 3):
        np.save(folder / f"step_{step}.npy", ROWS + 0.1 * step)
    return folder


RESULTS = {
    "pairs": (3, lambda words, run: repcap.pairs(ROWS)),
    "compare": (1, lambda words, run: repcap.compare(ROWS, ROWS + 0.3)),
    "track": (2, lambda words, run: repcap.track(str(run))),
}


@pytest.fixture(scope="module", params=RESULTS)
def drawn(request, words, run):
    panels, make = RESULTS[request.param]
    return panels, make(words, run)


def test_into_the_callers_axes(drawn):
    """The first panel alone, with its legend, and nothing else of the caller's figure."""
    figure_module = pytest.importorskip("matplotlib.figure")
    _, result = drawn
    left, right = figure_module.Figure().subplots(1, 2)
    assert result.plot(left) is left
    assert left.has_data()
    assert left.get_legend() is not None
    assert left.get_xlabel()
    assert not right.has_data()


def test_into_a_figure_of_its_own(drawn):
    pytest.importorskip("matplotlib")
    panels, result = drawn
    figure = result.plot()
    assert len(figure.axes) == panels
    assert all(axes.has_data() for axes in figure.axes)


def test_into_a_file(drawn, tmp_path):
    pytest.importorskip("matplotlib")
    _, result = drawn
    assert result.plot(path=tmp_path / "figure.svg") == [tmp_path / "figure.svg"]
    assert (tmp_path / "figure.svg").read_text().startswith("<?xml")
    with pytest.raises(InputError, match=r"use a name that ends in \.png, \.svg or \.pdf"):
        result.plot(path=tmp_path / "figure.bmp")


def test_word_pairs_that_were_not_asked_for():
    pytest.importorskip("matplotlib")
    with pytest.raises(InputError, match="ask for them with `word_pairs`"):
        repcap.neighbours(ROWS, tokens=["#1"]).plot()
