"""The page as a file: whole, self-contained, and deaf to what records contain. What it does is in test_page.py."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import json
import re
from html.parser import HTMLParser
from importlib import resources

import pytest

from repcap.errors import InputError
from repcap.page.page_rows import to_rows
from repcap.page.records import published_records
from repcap.page.site import build, embedded_json, render, table_csv


class Reader(HTMLParser):
    """Tags, and the text of scripts and styles."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.inside: list[tuple[str, dict[str, str | None], str]] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag in ("script", "style"):
            self.inside.append((tag, dict(attrs), ""))
        self.last = tag

    def handle_data(self, data):
        if self.tags and self.last in ("script", "style"):
            tag, attrs, text = self.inside[-1]
            self.inside[-1] = (tag, attrs, text + data)

    def handle_endtag(self, tag):
        self.last = ""


@pytest.fixture(scope="module")
def published():
    return render(to_rows(published_records())[0], title="A title")


def test_the_same_records_give_the_same_bytes(tmp_path):
    one, two = (build(published_records(), tmp_path / name) for name in ("one", "two"))
    assert one.path.read_bytes() == two.path.read_bytes()
    assert one.bytes == one.path.stat().st_size
    assert sorted(path.name for path in (tmp_path / "one").iterdir()) == [
        "index.html",
        "preview.png",
        "rows.json",
        "table.csv",
    ]


def test_nothing_is_loaded_from_anywhere(published):
    reader = Reader(published)
    for tag, attrs in reader.tags:
        assert "src" not in attrs, tag
        if tag == "link":
            assert attrs["href"] == "data:,"
        for name in attrs:
            assert not name.startswith("on"), (tag, name)
        assert "style" not in attrs, tag
    for tag, attrs, text in reader.inside:
        if attrs.get("type") == "application/json":
            continue
        assert not re.search(
            r"@import|url\((?!#)|https?://(?!www\.w3\.org/2000/svg)", text.replace("url(#${id})", "")
        ), tag
        assert not re.search(r"\b(fetch|XMLHttpRequest|WebSocket|EventSource|sendBeacon|importScripts)\b", text)


def test_the_policy_names_exactly_the_scripts_and_the_style_that_are_there(published):
    reader = Reader(published)
    [policy] = [attrs["content"] for tag, attrs in reader.tags if attrs.get("http-equiv") == "Content-Security-Policy"]
    hashes = {
        f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
        for _, attrs, text in reader.inside
        if attrs.get("type") != "application/json"
    }
    assert len(hashes) == 3
    assert set(re.findall(r"'sha256-[^']+'", policy)) == hashes
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy


def test_ids_are_unique_and_labels_point_at_something(published):
    reader = Reader(published)
    ids = [attrs["id"] for _, attrs in reader.tags if "id" in attrs]
    assert len(ids) == len(set(ids))
    for _, attrs in reader.tags:
        for name in ("aria-labelledby", "for"):
            assert attrs.get(name, ids[0]) in ids
        if (attrs.get("href") or "").startswith("#"):
            assert attrs["href"][1:] in ids


def test_hostile_strings_stay_text(hostile):
    text, record = hostile
    rows, _ = to_rows([record, *published_records()])
    page = render(rows, title=text, origin=text, skipped=[text])
    reader = Reader(page)
    assert [tag for tag, _ in reader.tags].count("script") == 3
    assert "img" not in {tag for tag, _ in reader.tags}
    assert page.count("window.hacked = 1</script>") == 0
    [data] = [inner for _, attrs, inner in reader.inside if attrs.get("type") == "application/json"]
    assert json.loads(data)["rows"][0]["name"] == text


@pytest.mark.parametrize("value", ["</script>", "<!--", "]]>", "\u2028", "&amp;", 'quote"', "ε"])
def test_embedded_json_holds_any_string(value):
    text = embedded_json({"value": value})
    assert not set(text) & set("<>&\u2028\u2029")
    assert json.loads(text) == {"value": value}


def test_the_page_of_the_published_table_is_light(published):
    assert len(published.encode()) < 250_000


def test_many_histograms_are_coarsened():
    edges = [-1 + place / 5000 for place in range(10_001)]
    counts = [1] * 10_000
    record = {"source": "a/b", "dim": 64, "count": 9, "epsilon": 0.3, "histogram": {"edges": edges, "counts": counts}}
    page = render(to_rows([record])[0], title="t")
    assert len(page) < 200_000


def test_nothing_to_show(tmp_path):
    with pytest.raises(InputError, match="nothing to show"):
        build([{"source": "a/b", "dim": 4, "epsilon": None}], tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_an_output_that_is_a_file(tmp_path):
    (tmp_path / "out").write_text("mine")
    with pytest.raises(InputError, match="cannot make the directory"):
        build(published_records(), tmp_path / "out")
    assert (tmp_path / "out").read_text() == "mine"


def test_the_csv_is_read_back_and_holds_no_formula():
    rows, _ = to_rows([*published_records(), {"name": "=1+1", "source": "a/b", "dim": 64, "epsilon": 0.5}])
    read = list(csv.DictReader(io.StringIO(table_csv(rows))))
    assert len(read) == 46
    assert read[-1]["name"] == "'=1+1"
    for line, row in zip(read, rows, strict=True):
        assert float(line["epsilon"]) == row.epsilon
        assert float(line["law_log10_k"]) == row.law.log10_k


def test_a_page_of_one_model_and_of_odd_values():
    for epsilon in (-0.01, 0.0, 1e-4, 0.99, 1.0):
        rows, _ = to_rows([{"source": "a/b", "dim": 3, "epsilon": epsilon}])
        assert "b" in render(rows, title="t")


def test_figures_are_written_where_asked(tmp_path):
    site = build(published_records(), tmp_path, figures=("svg",))
    assert [path.name for path in site.figures] == ["epsilon_over_d.svg", "capacity_bracket.svg"]
    assert all(path.is_file() for path in site.figures)


def test_the_assets_are_in_the_package():
    held = {entry.name for entry in resources.files("repcap.page").joinpath("assets").iterdir()}
    assert {"page.html", "page.css", "early.js", "page.js", "laws.js", "constructions.js"} <= held
