"""The page in a headless Chromium: what a reader does with tables, charts and cards, and what no record can do."""

from __future__ import annotations

import itertools

import pytest

from pages import heading, with_histogram
from repcap.page.records import published_records
from repcap.page.site import build

pytestmark = pytest.mark.browser


def column(page, number: int) -> list[str]:
    return page.locator(f"#models tbody tr > :nth-child({number})").all_inner_texts()


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
    page.get_by_role("radio", name="times random").check()
    assert mark.get_attribute("transform") != before
    assert "times random: ε over" in page.locator("#scatter").inner_text()


def test_tails_and_readouts_over_the_widths(visit, published, tmp_path):
    assert visit(published).page.locator('input[name="metric"]').count() == 2
    points = [{"alpha": 1e-4, "epsilon": 0.2, "dim": 128.0, "random": 0.1}]
    told = {"tails": [{"gauge": "stored", "points": points}], "at_once": {"best": {"s_max": 9}}}
    records = [{**with_histogram("Told", 0), **told}, with_histogram("Untold", 1)]
    page = visit(build(records, tmp_path).path.as_uri()).page
    assert page.locator('input[name="metric"]').count() == 4
    page.get_by_role("radio", name="tail").check()
    assert "tail dimension over d_model" in page.locator("#scatter").inner_text()
    assert page.locator("#scatter .mark[role=button]").count() == 1
    assert page.locator("#scatter .mark").get_attribute("aria-label").endswith(", tail dimension 128")
    assert page.locator("#scatter svg").get_attribute("aria-label").startswith("tail dimension over d_model against")
    assert page.locator("#scatter .band").count() == 0
    assert not page.locator("#shading").is_visible()
    assert "rows form clusters" in page.locator("#says").inner_text()
    assert "Not in this chart: Untold. This was not counted" in page.locator("#no-mark").inner_text()
    page.get_by_role("radio", name="s max").check()
    assert "s max" in page.locator("#scatter").inner_text()
    assert page.locator("#scatter .mark").get_attribute("aria-label").endswith(", s max 9")
    assert page.locator("#scatter svg").get_attribute("aria-label").startswith("s max against")
    assert "show=s_max" in page.url
    heading(page, "tail_dim").click()
    assert column(page, 1) == ["Told", "Untold"]  # what is not known stays at the end
    page.locator("#models .model").first.click()
    assert "128 at 0.0001" in page.get_by_role("dialog").inner_text()


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
    records = [{**with_histogram("a", 0), **long}, with_histogram("b", 1), {**long, "dim": 64, "epsilon": -0.1}]
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
