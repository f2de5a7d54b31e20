"""The figure of a measurement."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

import repcap
from repcap.verbs.measure.figure import draw


def shared(n: int = 200, d: int = 16) -> np.ndarray:
    return np.random.default_rng(0).standard_normal((n, d)) + 1.5


def test_a_bar_for_each_epsilon(tmp_path):
    found = repcap.measure(shared())
    (file,) = draw(found.to_dict(), tmp_path / "m.svg")
    text = file.read_text()
    for words in ("as stored", "without the mean", "times random directions"):
        assert words in text


def test_into_axes_of_the_caller():
    axes = Figure().subplots()
    found = repcap.measure(shared())
    assert found.plot(axes) is axes
    widths = [bar.get_width() for bar in axes.patches]
    assert widths[0] == found.epsilon
    assert len(widths) == 1 + len({spread.rows for spread in found.variants})
