"""The curves of the capacity figure, and the file."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import numpy as np
import pytest

from repcap.errors import DomainError, InputError
from repcap.verbs.capacity.figure import curves, default_range, draw


def test_explicit_sets_are_steps_below_the_bound():
    found = curves(64, np.array([0.1249, 0.125, 0.2, 0.2499, 0.25]))
    k = 10 ** found["explicit"]
    assert k[1] == pytest.approx(2112)
    assert k[0] < k[1] == k[2] == k[3] < k[4]
    assert 10 ** found["upper"][1] == pytest.approx(2112)
    grid = np.linspace(*default_range(64), 50)
    found = curves(64, grid)
    assert (found["lower"] <= found["upper"] + 1e-9).all()
    for name in ("ratio", "full", "jl_random", "jl_proven"):
        assert (np.diff(found[name]) > 0).all()


def test_the_default_range_has_the_null_in_it():
    for d in (2, 64, 4096, 10**6):
        low, high = default_range(d)
        assert 0 < low < min(2 / d**0.5, 0.9) <= high < 1


def test_the_figure_names_its_laws_and_is_the_same_each_time(tmp_path):
    files = [draw([{"d": 64}, {"d": 256}], tmp_path / f"{name}.svg")[0] for name in "ab"]
    assert files[0].read_bytes() == files[1].read_bytes()
    words = " ".join(ET.parse(files[0]).getroot().itertext())
    for label in ("law full", "law ratio", "C = 3.029", "explicit sets", "proven upper bound", "d = 64", "d = 256"):
        assert label in words


def test_a_wide_panel_marks_a_known_model_and_says_what_was_found(tmp_path):
    """Llama 2 7B, 0.0645 in 4096 dimensions: from its explicit set to the proven bound, in the figure's own units."""
    found = curves(4096, np.array([0.0645]))
    words = " ".join(ET.parse(draw({"d": 4096}, tmp_path / "a.svg")[0]).getroot().itertext())
    assert "Llama 2 7B" in words
    axes = draw({"d": 4096})
    assert axes.get_title(loc="left").startswith("d = 4096: explicit sets hold up to $10^{13}$ times")
    (bar,) = (line for line in axes.lines if len(set(line.get_xdata())) == 1 and len(line.get_xdata()) == 2
              and line.get_xdata()[0] == pytest.approx(0.0645))  # fmt: skip
    assert list(bar.get_ydata()) == pytest.approx([found["explicit"][0], found["upper"][0]], abs=0.1)
    assert "Llama" not in " ".join(ET.parse(draw([{"d": 4096}, {"d": 8}], tmp_path / "b.svg")[0]).getroot().itertext())


def test_what_cannot_be_drawn(tmp_path):
    with pytest.raises(InputError, match="1 to 9"):
        draw([], tmp_path / "x.png")
    with pytest.raises(DomainError, match="must rise"):
        draw({"d": 64}, tmp_path / "x.png", eps=(0.3, 0.2))
    with pytest.raises(DomainError, match="epsilon = 1 "):
        draw({"d": 64}, tmp_path / "x.png", eps=(0.3, 1.0))
    assert list(tmp_path.iterdir()) == []
