"""Figure of `repcap track`, by the words in the SVG."""

from __future__ import annotations

import pytest

from repcap.errors import InputError
from repcap.verbs.track.figure import draw


def run(epsilon, null):
    points = [
        {"step": step, "epsilon": epsilon + 1e-4 * step, "epsilon_se": 1e-4, "epsilon_null": null}
        | {"to_first": None if step == 0 else {"mean": 0.9}, "to_previous": None if step == 0 else {"mean": 0.99}}
        for step in (0, 10)
    ]
    return {"points": points}


@pytest.mark.parametrize(
    ("null", "label"),
    [(0.0833, "random directions, 0.0833: below"), (0.9, "random directions, 0.9000: above"), (0.7, "0.7000<")],
)
def test_a_far_null_does_not_flatten_the_run(tmp_path, null, label):
    (path,) = draw(run(0.7, null), tmp_path / "t.svg")
    drawn = path.read_text()
    assert label in drawn
    assert "to the one before" in drawn


def test_a_run_without_points(tmp_path):
    with pytest.raises(InputError, match="nothing to draw"):
        draw({"points": []}, tmp_path / "t.svg")
