"""What the whole Hub would cost: the arithmetic by hand, what it is bound by, and the page that shows it."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from tool_modules import load_tool

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def tool():
    return load_tool("hub_cost")


def test_two_models_by_hand(tool, monkeypatch):
    """One tied, one not, each 1000 x 100: three matrices of 200 kB; whole 2 MB and 4 MB."""
    monkeypatch.setattr(
        tool, "CLASSES", (tool.Size(0.5, "a", 1000, 100, 1e6, True), tool.Size(0.5, "b", 1000, 100, 2e6, False))
    )
    assumed = tool.Assumed(
        models=2, readable=1.0, workers=2, worker_rate=0.2, link=0.3, measure_seconds=128256 * 4096**2 / 1e7
    )
    every, sample, whole = tool.costs(assumed)
    assert every.bytes == pytest.approx(600_000)
    assert every.receiving * 3600 == pytest.approx(2.0)  # the link of 0.3 MB/s bounds two workers of 0.2
    assert every.arithmetic * 3600 == pytest.approx((3 * 1.0 + 2 * 1.0) / 2)  # a second a matrix and a model
    assert every.asking * 3600 == pytest.approx(max(2 * 300 / 1000, 14 * 300 / 5000))
    assert every.hours == pytest.approx(every.receiving + every.arithmetic)
    assert every.bottleneck == "arithmetic"
    assert sample.bytes == every.bytes  # no model has 20000 rows
    assert whole.bytes == pytest.approx(6e6)
    assert whole.bottleneck == "the network"
    assert tool.store_bytes(assumed) == 3 * (4000 + 20 * 100)


def test_limits_on_requests_are_no_matter_of_workers(tool):
    assumed = tool.Assumed(resolve_limit=50.0)
    for workers in (32, 3200):
        found = tool.cost("", dataclasses.replace(assumed, workers=workers))
        assert found.bottleneck == "requests"
        assert found.hours == pytest.approx(300_000 * 0.6 * 7 / 50 * 300 / 3600)


def test_the_classes(tool):
    assert sum(each.share for each in tool.CLASSES) == pytest.approx(1.0)
    below = sum(each.share for each in tool.CLASSES if each.dim < 4096)
    assert (
        below < 0.5 <= below + sum(each.share for each in tool.CLASSES if each.dim == 4096)
    )  # the median, as docs say
    for each in tool.CLASSES:
        assert each.rows * each.dim * (1 if each.tied else 2) < each.parameters


def test_the_page_shows_what_the_tool_says(tool):
    assert tool.tables(tool.Assumed()) in (ROOT / "docs" / "scale.md").read_text(), "python tools/hub_cost.py --write"
