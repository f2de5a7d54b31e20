"""The page on any screen and for any reader: themes, contrast, phones, the keyboard alone, paper."""

from __future__ import annotations

import pytest

from pages import ground, heading

pytestmark = pytest.mark.browser


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


def test_it_prints_on_white_without_controls(visit, published):
    page = visit(published, color_scheme="dark").page
    page.emulate_media(media="print")
    assert ground(page) == "rgb(255, 255, 255)"
    assert page.locator(".filters").is_hidden()
    assert page.locator("#models").is_visible()
