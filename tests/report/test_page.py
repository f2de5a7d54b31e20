"""The page in a headless Chromium: what a reader does with it, with mouse, finger and keyboard."""

from __future__ import annotations

import itertools
import math
import random

import numpy as np
import pytest

from repcap.laws.bracket import bracket
from repcap.report.records import published_records
from repcap.report.site import build

pytestmark = pytest.mark.browser


def with_histogram(name: str, seed: int):
    sample = np.clip(np.random.default_rng(seed).normal(0.02, 0.04, 20_000), -1, 1)
    counts, edges = np.histogram(sample, bins=300, range=(-1, 1))
    return {
        "name": name,
        "source": f"here/{name}",
        "matrix": "embedding",
        "dim": 512,
        "count": 4000,
        "mean": float(sample.mean()),
        "std": float(sample.std()),
        "epsilon": float(sample.mean() + 2 * sample.std()),
        "epsilon_se": 0.0003,
        "tied": True,
        "histogram": {"edges": edges.tolist(), "counts": counts.tolist()},
    }


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    return build(published_records(), tmp_path_factory.mktemp("published")).path.as_uri()


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    records = [with_histogram("first", 0), with_histogram("second", 1), *published_records()]
    return build(records, tmp_path_factory.mktemp("measured")).path.as_uri()


def column(page, number: int) -> list[str]:
    return page.locator(f"#models tbody tr > :nth-child({number})").all_inner_texts()


def heading(page, key: str):
    return page.locator(f'#models [data-sort="{key}"]')


def test_it_loads_alone_and_fast(visit, published, record_property):
    seen = visit(published)
    assert seen.requests == [published]
    timing = seen.page.evaluate(
        "() => ({drawn: performance.getEntriesByName('repcap-drawn')[0].startTime,"
        " load: performance.getEntriesByType('navigation')[0].loadEventEnd})"
    )
    for name, value in timing.items():
        record_property(f"milliseconds to {name}", value)
    # Under a second on an idle machine; the margin is for one that is not.
    assert 0 < timing["drawn"] < 10_000
    assert seen.page.locator("#models tbody tr").count() == 45
    assert seen.page.locator("#scatter .mark").count() == 45
    assert seen.page.locator("#brackets .range").count() == 31


def test_sorting_by_headings(visit, published):
    page = visit(published).page
    heading(page, "epsilon").click()
    values = [float(text) for text in column(page, 4)]
    assert values == sorted(values)
    assert page.locator('#models th[aria-sort="ascending"]').inner_text().startswith("ε")
    heading(page, "epsilon").click()
    assert [float(text) for text in column(page, 4)] == sorted(values, reverse=True)
    heading(page, "d").click()
    widths = [int(text.replace("\u202f", "")) for text in column(page, 3)]
    assert widths == sorted(widths)
    heading(page, "label").click()
    names = column(page, 1)
    assert names.index("Qwen 2.5 7B") < names.index("Qwen 2.5 14B") < names.index("Qwen 2.5 72B")


def test_search_and_filters_act_on_table_and_charts(visit, published):
    page = visit(published).page
    page.get_by_role("searchbox").fill("qwen 4096")
    assert set(column(page, 1)) == {"Qwen 3 8B", "Qwen 3 235B A22B"}
    assert page.locator("#count").inner_text() == "2 of 45 models"
    assert page.locator("#scatter .mark[role=button]").count() == 2
    assert page.locator("#scatter .behind .mark").count() == 43
    assert page.locator("#brackets .range").count() == 2
    page.get_by_role("searchbox").fill("no such model")
    assert page.get_by_text("No model matches.").is_visible()
    page.locator("#none .clear").click()
    assert page.locator("#models tbody tr").count() == 45
    page.get_by_role("button", name="Gemma 8").click()
    page.get_by_role("button", name="Phi 3", exact=True).click()
    assert page.locator("#models tbody tr").count() == 11
    page.get_by_role("button", name="high 14").click()
    assert {"high"} == set(column(page, 6))
    page.locator(".filters .clear").click()
    assert page.locator('.chip[aria-pressed="true"]').count() == 0


def test_indeterminate_capacities_are_shown_only_when_asked(visit, published):
    page = visit(published).page
    page.get_by_role("searchbox").fill("google/gemma-7b")
    assert column(page, 8) == ["indeterminate"]
    page.get_by_role("button", name="Show them too").click()
    assert page.get_by_label("also indeterminate").is_checked()
    [text] = column(page, 8)
    assert text.startswith("10")
    assert text.endswith("indeterminate")
    assert page.locator("#brackets .range.unsure").count() == 1


def test_hover_shows_everything_about_the_nearest_mark(visit, published):
    page = visit(published).page
    mark = page.locator('#scatter .mark[aria-label^="Llama 3.1 405B"]')
    mark.scroll_into_view_if_needed()
    mark.hover()
    tip = page.get_by_role("tooltip")
    assert tip.is_visible()
    text = tip.inner_text()
    for expected in ("Llama 3.1 405B", "0.04813", "3.080", "16\u202f384", "1.22 × 10¹¹", "meta-llama"):
        assert expected in text
    page.mouse.move(5, 5)
    assert tip.is_hidden()


def test_models_at_one_place_are_all_named(visit, published):
    page = visit(published).page
    page.locator('#scatter .mark[aria-label^="DeepSeek R1"]').hover(force=True)
    text = page.get_by_role("tooltip").inner_text()
    assert "DeepSeek R1" in text
    assert "DeepSeek V3.2 Exp" in text


def test_the_card_of_a_model_opens_and_feeds_the_calculator(visit, measured):
    page = visit(measured).page
    page.get_by_role("button", name="first", exact=True).click()
    dialog = page.get_by_role("dialog")
    assert "± 0.0003" in dialog.inner_text()
    assert dialog.locator("#detail-chart .curve").count() == 2
    dialog.get_by_role("button", name="Use in the calculator").click()
    assert dialog.is_hidden()
    assert page.locator("#calc-d").input_value() == "512"
    assert page.locator("#calc-vocab").input_value() == "4000"
    assert page.get_by_label("embedding and unembedding tied").is_checked()


def test_distributions_of_measured_models(visit, measured, published):
    assert visit(published).page.locator("#similarity").is_hidden()
    page = visit(measured).page
    assert page.locator("#similarity").is_visible()
    assert page.locator("#distributions path.curve").count() == 2
    page.get_by_label("second", exact=True).uncheck()
    assert page.locator("#distributions path.curve").count() == 1
    before = page.locator("#distributions path.curve").get_attribute("d")
    page.get_by_role("radio", name="full, logarithmic").check()
    assert page.locator("#distributions path.curve").get_attribute("d") != before


def test_the_metric_of_the_chart(visit, published):
    page = visit(published).page
    mark = page.locator('#scatter .mark[aria-label^="Phi 2"]')
    before = mark.get_attribute("transform")
    page.get_by_role("radio", name="ε ÷ random").check()
    assert mark.get_attribute("transform") != before
    assert "times the value of random directions" in page.locator("#scatter").inner_text()


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


def ground(page) -> str:
    return page.evaluate("getComputedStyle(document.body).backgroundColor")


def test_both_themes_and_the_choice_is_remembered(visit, published):
    light, dark = (visit(published, color_scheme=scheme).page for scheme in ("light", "dark"))
    assert ground(light) == "rgb(251, 250, 246)"
    assert ground(dark) == "rgb(19, 21, 26)"
    light.get_by_role("button", name="switch to the dark theme").click()
    assert ground(light) == "rgb(19, 21, 26)"
    light.reload()
    assert ground(light) == "rgb(19, 21, 26)"
    light.get_by_role("button", name="switch to the light theme").click()
    assert ground(light) == "rgb(251, 250, 246)"


CONTRAST = """() => {
  const parse = (text) => text.match(/[\\d.]+/g).slice(0, 3).map(Number);
  const light = (rgb) => rgb.map((v) => v / 255).map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
    .reduce((sum, v, place) => sum + v * [0.2126, 0.7152, 0.0722][place], 0);
  const behind = (node) => {
    for (let at = node; at; at = at.parentElement) {
      const colour = getComputedStyle(at).backgroundColor;
      if (!colour.startsWith("rgba(0, 0, 0, 0)") && !/\\/ 0\\)/.test(colour)) return parse(colour);
    }
    return [255, 255, 255];
  };
  const bad = [];
  const texts = "main :is(p, td, th, h2, label, button, dt, dd), footer p, nav a, small, .standing, .class";
  for (const node of document.querySelectorAll(texts)) {
    if (!node.checkVisibility() || !node.textContent.trim()) continue;
    const [a, b] = [light(parse(getComputedStyle(node).color)), light(behind(node))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) bad.push(`${node.tagName}.${node.className} ${node.textContent.slice(0, 30)} ${ratio.toFixed(2)}`);
  }
  return bad;
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_the_contrast_that_wcag_asks_for(visit, published, scheme):
    assert visit(published, color_scheme=scheme).page.evaluate(CONTRAST) == []


@pytest.mark.parametrize("width", [320, 390, 768])
def test_no_sideways_scrolling_on_a_phone(visit, measured, width):
    page = visit(measured, viewport={"width": width, "height": 844}, has_touch=True, is_mobile=True).page
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.locator("#models tbody tr").count() == 47
    page.locator("#brackets .range").first.tap()
    assert page.get_by_role("dialog").is_visible()
    box = page.get_by_role("dialog").bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= width


def test_charts_follow_the_width_of_the_window(visit, published):
    page = visit(published).page
    page.set_viewport_size({"width": 600, "height": 900})
    page.wait_for_timeout(300)
    assert page.locator("#scatter svg").bounding_box()["width"] <= 600
    assert page.evaluate("document.documentElement.scrollWidth") <= 600


def test_by_keyboard_alone(visit, published):
    page = visit(published).page
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    assert page.locator(".skip").bounding_box()["y"] >= 0
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    # The chart is one stop; arrows move along it; the card follows; Enter opens; Escape comes back to the mark.
    page.locator('#scatter .mark[tabindex="0"]').focus()
    first = page.get_by_role("tooltip").inner_text()
    page.keyboard.press("ArrowRight")
    assert page.get_by_role("tooltip").inner_text() != first
    assert page.locator('#scatter .mark[tabindex="0"]').count() == 1
    page.keyboard.press("End")
    assert "Llama 3.1 405B" in page.get_by_role("tooltip").inner_text()
    page.keyboard.press("Enter")
    assert page.get_by_role("dialog").is_visible()
    page.keyboard.press("Escape")
    assert page.get_by_role("dialog").is_hidden()
    assert page.evaluate("document.activeElement.getAttribute('aria-label')").startswith("Llama 3.1 405B")
    heading(page, "d").focus()
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.dataset.sort") == "d"
    assert page.locator("#models th[aria-sort]").inner_text().startswith("d_model")


def test_focus_is_visible(visit, published):
    page = visit(published).page
    for _ in range(6):
        page.keyboard.press("Tab")
    style = page.evaluate(
        "(() => { const s = getComputedStyle(document.activeElement); return [s.outlineStyle, s.outlineWidth]; })()"
    )
    assert style[0] == "solid"
    assert float(style[1].removesuffix("px")) >= 2


def test_a_hostile_record_runs_nothing(visit, tmp_path, hostile):
    text, record = hostile
    records = [record, {**record, "dim": 1024}, *published_records()]
    page = visit(build(records, tmp_path, title=text, origin=text).path.as_uri()).page
    page.locator("#scatter .mark[role=button]").first.focus()
    page.locator("#models .model").first.click()
    page.get_by_role("dialog").get_by_role("button", name="close").click()
    page.get_by_role("searchbox").fill(text)
    assert page.locator("#models tbody tr").count() == 2
    assert text in page.locator("#models").inner_text()
    assert page.evaluate("window.hacked") is None
    assert page.locator("img").count() == 0


def test_hundreds_of_models_stay_readable(visit, tmp_path):
    records = [{"source": f"org/model-{n}", "dim": 1024 + n, "epsilon": 0.07 + n * 1e-5} for n in range(300)]
    page = visit(build(records, tmp_path).path.as_uri()).page
    assert page.locator("#models tbody tr").count() == 300
    assert page.locator("#brackets .range").count() == 60
    page.get_by_role("button", name="Show the other 240").click()
    assert page.locator("#brackets .range").count() == 300
    assert page.locator("#more-brackets").is_hidden()


def test_what_a_record_could_smuggle_in_is_stopped_by_the_policy(visit, published):
    seen = visit(published)
    seen.page.evaluate("document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"window.hacked = 1\">')")
    seen.page.wait_for_timeout(200)
    assert seen.page.evaluate("window.hacked") is None
    assert all("Content Security Policy" in line for line in seen.complaints)
    assert seen.complaints
    seen.complaints.clear()


def test_it_prints_on_white_without_controls(visit, published):
    page = visit(published, color_scheme="dark").page
    page.emulate_media(media="print")
    assert ground(page) == "rgb(255, 255, 255)"
    assert page.locator(".filters").is_hidden()
    assert page.locator("#models").is_visible()


def test_a_page_of_one_model_and_of_models_beyond_the_laws(visit, tmp_path):
    for place, records in enumerate(
        (
            [{"source": "a/b", "dim": 64, "epsilon": 0.3}],
            [{"source": "a/b", "dim": 64, "epsilon": -0.2}, {"source": "a/c", "dim": 64, "epsilon": 1.2}],
            [{"source": "a/b", "dim": 1, "epsilon": 0.5}],
        )
    ):
        page = visit(build(records, tmp_path / str(place)).path.as_uri()).page
        assert page.locator("#models tbody tr").count() == len(records)
        page.locator("#models .model").first.click()
        assert page.get_by_role("dialog").is_visible()


def test_models_that_a_chart_cannot_show_are_named_beside_it(visit, tmp_path):
    records = [{"name": f"m{place}", "dim": 64, "epsilon": -0.01 * place} for place in range(9)]
    records += [{"name": "fine", "dim": 64, "epsilon": 0.3}, {"name": "beyond", "dim": 64, "epsilon": 1.2}]
    page = visit(build(records, tmp_path / "page").path.as_uri()).page
    assert page.locator("#scatter .mark").count() == 2
    told = (
        "Not in this chart: m0, m1, m2, m3, m4, m5 and 3 more. An ε of 0 or below has no place on a logarithmic axis."
    )
    assert page.locator("#no-mark").inner_text() == f"{told} The table has them."
    assert page.locator("#no-bracket").inner_text().startswith("Not in this chart: m0, m1, m2, m3, m4, m5 and 4 more.")
    page.get_by_role("searchbox").fill("m3")
    assert page.locator("#no-mark").inner_text().startswith("Not in this chart: m3. An ε")
    page.get_by_role("searchbox").fill("fine")
    assert page.locator("#no-mark").is_hidden()
    assert page.locator("#no-bracket").is_hidden()


def test_long_names_do_not_widen_the_page(visit, tmp_path):
    long = dict.fromkeys(("name", "family", "source", "matrix", "revision"), "x" * 3000)
    records = [{**with_histogram("a", 0), **long}, with_histogram("b", 1)]
    address = build(records, tmp_path).path.as_uri()
    for width in (1280, 360):
        page = visit(address, viewport={"width": width, "height": 800}).page
        assert page.evaluate("document.documentElement.scrollWidth") == width
        assert page.locator("#models th[scope=row]").first.bounding_box()["width"] < 500
        assert page.locator(".lede").bounding_box()["height"] < 600


@pytest.mark.parametrize("widths", [[3000], [1, 10**9], [64, 16384], [700, 900]])
def test_ticks_of_any_range_of_widths_are_there_and_apart(visit, tmp_path, widths):
    records = [{"source": f"a/{d}", "dim": d, "epsilon": 0.3} for d in widths]
    page = visit(build(records, tmp_path).path.as_uri()).page
    boxes = page.evaluate(
        "[...document.querySelectorAll('#scatter .tick[text-anchor=middle]')].map((e) => e.getBoundingClientRect())"
        ".map((b) => [b.left, b.right])"
    )
    assert boxes
    assert all(left[1] < right[0] for left, right in itertools.pairwise(boxes))
