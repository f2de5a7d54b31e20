"""A headless Chromium for the tests of the page, started once a module, skipped with the reason where there is none."""

from __future__ import annotations

import shutil
from typing import Any

import pytest

from pages import with_histogram
from repcap.page.records import published_records
from repcap.page.site import build

HOSTILE = "</script><script>window.hacked = 1</script><img src=x onerror='window.hacked = 2'>{{css}}"

CHROMIUMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--disable-quic",
]


@pytest.fixture
def hostile():
    """A text that would run where it is taken for markup, and a record in which every text is that one."""
    texts = dict.fromkeys(
        ("name", "source", "matrix", "dtype", "revision", "repcap_version", "common", "family"), HOSTILE
    )
    return HOSTILE, {**texts, "dim": 512, "count": 10, "epsilon": 0.09}


@pytest.fixture(scope="module")
def chromium():
    """A running browser."""
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    path = next((found for name in CHROMIUMS if (found := shutil.which(name))), None)
    if path is None:
        pytest.skip(f"no Chromium on PATH (looked for {', '.join(CHROMIUMS)})")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield browser
        browser.close()


class Visit:
    """A page in its own context, with what it asked for and complained of."""

    def __init__(self, browser: Any, address: str, **options: Any) -> None:
        self.context = browser.new_context(**options)
        self.page = self.context.new_page()
        self.page.set_default_timeout(20_000)
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda message: self.complaints.append(f"{message.type}: {message.text}"))
        self.page.on("pageerror", lambda error: self.complaints.append(f"error: {error}"))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(address)


@pytest.fixture
def visit(chromium):
    """visit(address, viewport=..., color_scheme=...) -> Visit; at the end no page may have complained."""
    visits: list[Visit] = []

    def open_page(address: str, **options: Any) -> Visit:
        options.setdefault("viewport", {"width": 1280, "height": 900})
        visits.append(Visit(chromium, address, **options))
        return visits[-1]

    yield open_page
    complaints = [line for one in visits for line in one.complaints]
    for one in visits:
        one.context.close()
    assert complaints == []


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    """Address of a page of the published table."""
    return build(published_records(), tmp_path_factory.mktemp("published")).path.as_uri()


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """The same with two measured models that have a histogram."""
    records = [with_histogram("first", 0), with_histogram("second", 1), *published_records()]
    return build(records, tmp_path_factory.mktemp("measured")).path.as_uri()
