"""The page's arithmetic against the library's in a JavaScript engine from the package index, without a browser."""

from __future__ import annotations

import json

import pytest
import quickjs

from page_parity import WARNED, agree_with_the_library, page_points, warn_as_the_library_does
from repcap import laws
from repcap.laws.fitting.ranges import fitted
from repcap.page.site import asset
from repcap.page.tables import tables


@pytest.fixture(scope="module")
def engine():
    """evaluate(expression, value): the page's scripts that touch no page, around a document that holds the data."""
    context = quickjs.Context()
    data = json.dumps(json.dumps({"tables": tables()}))
    context.eval(f"const document = {{ getElementById: () => ({{ textContent: {data} }}) }};")
    for name in ("core.js", "laws.js", "constructions.js", "calculator.js"):
        context.eval(asset(name))

    def evaluate(expression: str, value):
        return json.loads(context.eval(f"JSON.stringify(({expression})({json.dumps(value)}))"))

    return evaluate


def test_the_arithmetic_agrees_with_the_library(engine):
    points = page_points()
    found = engine("(points) => points.map(([d, eps]) => repcap.laws.capacity(d, eps))", points)
    agree_with_the_library(points, found)


def test_the_warnings_are_the_library_s(engine):
    engine("(ranges) => { repcap.calculator.know(ranges); return 0; }", fitted())
    found = engine(
        "(points) => points.map(([d, eps]) => repcap.calculator.warnings(d, eps, repcap.laws.capacity(d, eps)))", WARNED
    )
    warn_as_the_library_does(found)


def test_the_page_has_a_formula_for_every_curve(engine):
    shown = engine("() => repcap.laws.curves.map(({ key }) => key)", None)
    assert shown == [curve.key for _, curve in laws.curves()]
