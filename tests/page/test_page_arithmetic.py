"""The page's arithmetic against the library's in a JavaScript engine from the package index, without a browser."""

from __future__ import annotations

import csv
import io
import json

import pytest
import quickjs

from page_parity import WARNED, agree_with_the_library, page_points, warn_as_the_library_does
from repcap import laws
from repcap.bracket.known import at_epsilon
from repcap.laws.fitting.ranges import fitted
from repcap.page.site import asset
from repcap.page.tables import tables


@pytest.fixture(scope="module")
def engine():
    """evaluate(expression, value): the page's scripts that touch no page, around a document that holds the data."""
    context = quickjs.Context()
    data = json.dumps(json.dumps({"tables": tables()}))
    context.eval(f"const document = {{ getElementById: () => ({{ textContent: {data} }}) }};")
    for name in ("core.js", "laws.js", "constructions.js", "calculator.js", "lines.js"):
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


def test_the_picture_of_the_best_sets_is_the_table_s(engine):
    text = engine("() => repcap.lines.csv(repcap.lines.rows())", None)
    shown = list(csv.DictReader(io.StringIO(text)))
    points = {(int(row["d"]), float(row["epsilon"])) for row in shown}
    assert len(points) == len(shown) == 4 * 49
    assert {d for d, _ in points} >= {2**m for m in range(2, 15)}
    for row in shown[::3]:
        known = at_epsilon(int(row["d"]), float(row["epsilon"]))
        for name in ("explicit.log10_k", "exists.log10_k", "upper.log10_k"):
            end, _, key = name.partition(".")
            assert float(row[name]) == pytest.approx(known[end][key], rel=1e-12, abs=1e-9), (row["d"], name)
        assert row["upper.name"] == known["upper"]["name"]
        assert float(row["explicit.coherence"]) <= known["epsilon"] * (1 + 1e-11)
