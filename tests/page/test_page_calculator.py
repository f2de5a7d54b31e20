"""The calculator of the page against the library, number for number and warning for warning."""

from __future__ import annotations

import math
import random

import pytest

from repcap.bracket.interval import bracket

pytestmark = pytest.mark.browser


def grid():
    chosen = random.Random(0)
    points = [
        (d, eps) for d in (2, 3, 8, 24, 64, 100, 576, 1024, 4096, 16384) for eps in (0.02, 0.0645, 1 / 3, 0.5, 0.9)
    ]
    # Many lines in the plane, and degrees of the upper bound that are too high to compute.
    points += [(2, 0.9), (2, 0.99999), (2, 1 - 1e-9), (3, 1 - 1e-12), (1_000_000, 0.0645), (1_000_000, 0.9)]
    for _ in range(250):
        d = int(math.exp(chosen.uniform(math.log(2), math.log(20_000))))
        points.append((d, min(0.98, math.exp(chosen.uniform(math.log(0.01), 0)))))
    return points


def test_the_calculator_agrees_with_the_library(visit, published):
    points = grid()
    found = visit(published).page.evaluate("(points) => points.map(([d, eps]) => repcap.laws.capacity(d, eps))", points)
    assert len(points) >= 200
    for (d, eps), values in zip(points, found, strict=True):
        expected = bracket(d, eps)
        numbers = {
            **expected.laws,
            "construction": expected.construction.log10_k,
            "gilbert_varshamov": expected.gilbert_varshamov,
            "upper": expected.upper.log10_k,
        }
        for name, value in numbers.items():
            assert values[name]["log10_k"] == pytest.approx(value, rel=0, abs=1e-9), (d, eps, name)
        assert values["upper"]["name"] == expected.upper.name


PHRASES = ("proven to exist", "possible at most", "extrapolation", "indeterminate")


def test_the_calculator_warns_as_the_library_does(visit, published):
    # Between them these give every warning, and none.
    points = [(4096, 0.0645), (64, 0.3), (8192, 0.05), (2048, 0.4), (128, 0.147), (512, 0.05), (16, 0.9), (2, 0.7)]
    found = visit(published).page.evaluate(
        "(points) => points.map(([d, eps]) => repcap.calculator.warnings(d, eps, repcap.laws.capacity(d, eps)))", points
    )
    seen = set()
    for (d, eps), lines in zip(points, found, strict=True):
        expected = bracket(d, eps).warnings
        assert len(lines) == len(expected) + 1, (d, eps)  # and the value of random directions
        for ours, theirs in zip(lines, expected, strict=False):
            told = [phrase for phrase in PHRASES if phrase in theirs]
            assert told == [phrase for phrase in PHRASES if phrase in ours], (d, eps)
            assert ("ratio" in ours, "full" in ours) == ("ratio" in theirs, "full" in theirs)
            seen.update(told)
    assert seen == set(PHRASES)


def line(page, name: str) -> float:
    return float(page.locator(f'#calc-body [data-line="{name}"]').get_attribute("data-log10"))


def test_the_calculator_form(visit, published):
    page = visit(published).page
    page.locator("#calc-d").fill("4096")
    page.locator("#calc-eps").fill("0.0645")
    page.locator("#calc-vocab").fill("32000")
    expected = bracket(4096, 0.0645)
    assert line(page, "full") == pytest.approx(expected.laws["full"], abs=1e-9)
    assert "Delsarte-Goethals" in page.locator('#calc-body [data-line="construction"]').inner_text()
    assert "64" in page.locator("#calc-budget").inner_text()
    left = page.evaluate("(log10) => repcap.calculator.left(log10, 64000)", expected.laws["full"])
    assert 10**left == pytest.approx(10 ** expected.laws["full"] - 64000, rel=1e-9)
    page.get_by_label("embedding and unembedding tied").check()
    assert "k = V + features" in page.locator("#calc-budget").inner_text()
    page.locator("#calc-eps").fill("1.5")
    assert "between 0 and 1" in page.get_by_role("alert").inner_text()
    assert page.locator("#calc-result").is_hidden()
    page.get_by_label("Take from a model").select_option(label="Phi 2 (d = 2560, ε = 0.05497)")
    assert page.locator("#calc-d").input_value() == "2560"
    assert line(page, "upper") == pytest.approx(bracket(2560, 0.05497).upper.log10_k, abs=1e-9)


def test_a_point_of_the_curves_is_taken(visit, published):
    page = visit(published).page
    before = page.locator("#calc-eps").input_value()
    chart = page.locator("#calc-chart svg")
    chart.click(position={"x": 200, "y": 150})
    assert page.locator("#calc-eps").input_value() != before
