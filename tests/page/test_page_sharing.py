"""What a reader takes away from the page: its state in the address, charts as files, two models side by side."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

pytestmark = pytest.mark.browser


def names(page) -> list[str]:
    return page.locator("#models tbody .model").all_inner_texts()


def test_numbers_are_searched_as_whole_words(visit, published):
    page = visit(published).page
    page.fill("#search", "llama 3")
    assert names(page) == ["Llama 3 8B"]
    page.fill("#search", "lla 3.1")
    assert set(names(page)) == {"Llama 3.1 8B", "Llama 3.1 70B", "Llama 3.1 405B"}
    page.fill("#search", "")
    assert len(names(page)) == 45


def test_a_link_shows_what_was_seen(visit, published):
    page = visit(published).page
    page.fill("#search", "gemma")
    page.locator('.chip[data-name="high"]').click()
    page.locator('input[name="metric"][value="ratio"]').check(force=True)
    page.locator('[data-sort="d"]').click()
    page.fill("#calc-d", "777")
    seen, address = names(page), page.url
    assert "#?" in address

    other = visit(published).page
    other.goto(address)
    other.reload()
    assert names(other) == seen
    assert other.input_value("#search") == "gemma"
    assert other.locator('.chip[data-name="high"]').get_attribute("aria-pressed") == "true"
    assert other.locator('input[name="metric"][value="ratio"]').is_checked()
    assert other.input_value("#calc-d") == "777"


def test_a_link_opens_a_model(visit, published):
    page = visit(published).page
    page.locator("#models tbody .model", has_text="Llama 3 8B").first.click()
    address = page.url
    other = visit(published).page
    other.goto(address)
    other.reload()
    assert other.locator("#detail-title").inner_text() == "Llama 3 8B"
    assert other.locator("#detail a").get_attribute("href").endswith("/meta-llama/Meta-Llama-3-8B-Instruct")
    other.locator("#detail-close").click()
    assert "model=" not in other.url


@pytest.mark.parametrize("address", ["#?q=%00&family=Nobody,,&sort=none%20x&order=__proto__&calc=x%20y&model=%3Cb%3E"])
def test_an_address_that_means_nothing_shows_the_page(visit, published, address):
    seen = visit(published)
    seen.page.goto(seen.page.url.split("#")[0] + address)
    seen.page.reload()
    assert seen.page.locator("#scatter svg").count() == 1
    assert not [line for line in seen.complaints if line.startswith("error")]


@pytest.mark.parametrize("chart", ["scatter", "brackets", "calc-chart", "lines-chart"])
def test_a_chart_is_saved_as_a_file_of_its_own(visit, published, chart):
    page = visit(published).page
    with page.expect_download() as saved:
        page.locator(f"#{chart} + .save").click()
    assert saved.value.suggested_filename == f"{chart}.svg"
    text = Path(saved.value.path()).read_text(encoding="utf-8")
    root = ElementTree.fromstring(text)
    assert root.tag.endswith("svg")
    assert len(list(root.iter("{http://www.w3.org/2000/svg}path"))) > 0
    assert "var(--" not in text
    assert "class=" not in text


def test_the_best_known_sets_as_a_picture(visit, published):
    page = visit(published, viewport={"width": 390, "height": 844}).page
    columns = page.locator("#lines-chart .column")
    assert columns.count() == 49
    for stroke, many in (("limit", 4), ("sets", 4), ("coding", 4), ("room", 4)):
        assert page.locator(f"#lines-chart path.{stroke}").count() == many
    columns.first.focus()
    page.keyboard.press("End")
    assert "d = 16\u202f384" in page.get_by_role("tooltip").inner_text()
    with page.expect_download() as saved:
        page.locator("#lines").get_by_role("button", name="Save as CSV").click()
    assert saved.value.suggested_filename == "lines-chart.csv"
    assert len(Path(saved.value.path()).read_text(encoding="utf-8").splitlines()) == 1 + 4 * 49
    columns.last.focus()
    page.keyboard.press("Enter")
    assert page.locator("#calc-d").input_value() == "16384"


def test_two_models_stand_side_by_side(visit, published):
    page = visit(published).page
    page.locator("#models tbody .model", has_text="Llama 3 8B").first.click()
    page.select_option("#detail-against", label="Gemma 7B")
    heads = page.locator(".versus thead th").all_inner_texts()
    assert heads == ["", "Llama 3 8B", "Gemma 7B"]
    rows = {
        cells[0]: cells[1:] for cells in (row.split("\t") for row in page.locator(".versus").inner_text().splitlines())
    }
    assert rows["class"] == ["low", "high"]
    assert page.locator("#detail-facts").is_hidden()


def test_models_at_one_place_are_counted(visit, published):
    page = visit(published).page
    counts = page.locator("#scatter .many").all_text_contents()
    assert counts
    assert all(text.startswith("×") and int(text[1:]) > 1 for text in counts)


@pytest.mark.parametrize("width", [390, 768, 1280])
def test_headings_stay_in_sight_and_nothing_is_wider_than_the_screen(visit, published, width):
    page = visit(published, viewport={"width": width, "height": 800}).page
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    tops = page.evaluate(
        """() => {
          const box = document.querySelector("#table .table-scroll");
          box.scrollTop = 400;
          const [frame, head] = [box, box.querySelector("thead th")].map((one) => one.getBoundingClientRect().top);
          return [frame, head];
        }"""
    )
    assert abs(tops[0] - tops[1]) <= 2
    assert page.evaluate(
        "[...document.querySelectorAll('.chip')].every((one) => one.scrollWidth <= one.clientWidth + 1)"
    )


def test_a_preview_of_the_link_is_described(visit, published):
    page = visit(published).page
    for name in ("og:title", "og:description", "og:image"):
        assert page.locator(f'meta[property="{name}"]').get_attribute("content")
