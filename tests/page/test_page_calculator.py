"""The calculator of the page against the library, number for number and warning for warning."""

from __future__ import annotations

import pytest

from page_parity import WARNED, agree_with_the_library, page_points, warn_as_the_library_does
from repcap.bracket.interval import bracket

pytestmark = pytest.mark.browser


def test_the_calculator_agrees_with_the_library(visit, published):
    points = page_points()
    found = visit(published).page.evaluate("(points) => points.map(([d, eps]) => repcap.laws.capacity(d, eps))", points)
    agree_with_the_library(points, found)


def test_the_calculator_warns_as_the_library_does(visit, published):
    found = visit(published).page.evaluate(
        "(points) => points.map(([d, eps]) => repcap.calculator.warnings(d, eps, repcap.laws.capacity(d, eps)))",
        WARNED,
    )
    warn_as_the_library_does(found)


def line(page, name: str) -> float:
    return float(page.locator(f'#calc-body [data-line="{name}"]').get_attribute("data-log10"))


def test_the_calculator_form(visit, published):
    page = visit(published).page
    page.locator("#calc-d").fill("4096")
    page.locator("#calc-eps").fill("0.0645")
    page.locator("#calc-vocab").fill("32000")
    expected = bracket(4096, 0.0645)
    assert line(page, "full") == pytest.approx(expected.laws["full"], abs=1e-9)
    assert "Delsarte-Goethals" in page.locator('#calc-body [data-line="explicit"]').inner_text()
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
