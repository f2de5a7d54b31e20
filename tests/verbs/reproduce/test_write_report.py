"""The written report: whole, self-contained, and with the numbers that were computed."""

from __future__ import annotations

import importlib.util
import json
import re
from html.parser import HTMLParser

import pytest

from repcap.errors import InputError
from repcap.verbs.reproduce.figure import DRAWINGS
from repcap.verbs.reproduce.study import reproduce
from repcap.verbs.reproduce.write_report import REFERENCES, markdown, write_report


@pytest.fixture(scope="module")
def done():
    return reproduce(bootstrap=20)


@pytest.fixture(scope="module")
def written(done, tmp_path_factory):
    directory = tmp_path_factory.mktemp("report") / "new" / "report"
    seen = []
    paths = write_report(done, directory, on_progress=lambda part, whole: seen.append((part, whole)))
    assert seen[-1] == (len(DRAWINGS), len(DRAWINGS))
    return directory, paths


def test_every_file_is_there(written):
    directory, paths = written
    names = {str(path.relative_to(directory)) for path in paths}
    figures = {f"figures/{drawing.name}.{suffix}" for drawing in DRAWINGS for suffix in ("png", "svg")}
    assert names == {"report.html", "report.md", "records.json"} | figures
    assert {str(path.relative_to(directory)) for path in directory.rglob("*") if path.is_file()} == names
    for path in paths:
        start = path.read_bytes()[:200]
        assert start.startswith({".png": b"\x89PNG", ".svg": b"<?xml", ".html": b"<!doctype"}.get(path.suffix, b""))


class Page(HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.images, self.links, self.rows, self.text = [], [], [], 0, []

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        if tag not in ("meta", "img", "br"):
            self.open.append(tag)
        if tag == "img":
            self.images.append(values["src"])
            assert values["alt"]
        self.links += [values[name] for name in ("href", "src") if name in values]
        self.rows += tag == "tr"

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def test_html_is_well_formed_and_stands_alone(written, done):
    directory, _ = written
    source = (directory / "report.html").read_text(encoding="utf-8")
    page = Page()
    page.feed(source)
    assert page.open == []
    assert len(page.images) == len(DRAWINGS)
    references = {address for _, address in REFERENCES if address}
    assert {link for link in page.links if not link.startswith("data:image/png;base64,")} == references
    assert "$" not in re.sub(r"base64,[^\"]+", "", source)
    text = "".join(page.text)
    for claim in done.claims:
        assert claim.title in text
        assert claim.recomputed in text
    for row in done.models:
        assert row.model in text
    assert text.index("How to read this") < text.index(done.claims[0].title)
    assert "21 of 21 numbers agree; 45 of 45 rows of Table 1 agree (31 with a capacity, 14 called" in text
    assert "claims are not counted: " in text
    assert "sqrt(C ln(k^a/d)^b / d^c), C = 0.458091" in text


def test_without_matplotlib_everything_but_the_figures_is_written(done, tmp_path, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    paths = write_report(done, tmp_path)
    assert sorted(path.name for path in paths) == ["records.json", "report.html", "report.md"]
    assert "![" not in (tmp_path / "report.md").read_text(encoding="utf-8")
    assert "<figure>" not in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_markdown_tables_are_even_and_figures_exist(written, done):
    directory, _ = written
    text = (directory / "report.md").read_text(encoding="utf-8")
    assert text == markdown(done)
    for name in re.findall(r"!\[[^]]*\]\(([^)]+)\)", text):
        assert (directory / name).is_file()
    table = [line for line in text.splitlines() if line.startswith("|")]
    widths = {line.count("|") for line in table}
    assert widths == {6, 10}  # claims have 5 columns, models 9
    assert sum(line.count("|") == 10 for line in table) == 45 + 2


def test_records_are_strict_json(written, done):
    directory, _ = written
    record = json.loads(
        (directory / "records.json").read_text(encoding="utf-8"),
        parse_constant=lambda name: pytest.fail(f"{name} is no JSON"),
    )
    assert record["departures"] == []
    assert len(record["claims"]) == len(done.claims)


def test_a_note_is_shown_once(written):
    directory, _ = written
    assert (directory / "report.md").read_text(encoding="utf-8").count("Eight digits are released") == 1


def test_needs_every_group_and_a_place_to_write(done, tmp_path):
    with pytest.raises(InputError, match="every group"):
        write_report(reproduce(("capacities",)), tmp_path)
    taken = tmp_path / "taken"
    taken.write_text("a file")
    with pytest.raises(InputError, match="cannot make the directory"):
        write_report(done, taken / "report")


def test_every_figure_stands_after_its_claims_and_before_the_next_group(done):
    text = markdown(done)
    groups = list(dict.fromkeys(claim.group for claim in done.claims))
    for drawing in DRAWINGS:
        assert drawing.group in groups
        section = text.split(f"\n## {drawing.group}\n")[1].split("\n## ")[0]
        assert f"figures/{drawing.name}.png" in section
