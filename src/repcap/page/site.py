"""The page: records in, a directory with one self-contained index.html out. It opens from disk and loads nothing.

Everything the page needs is inside index.html: style, scripts, data. A content security policy with the hashes of
its own two scripts and of its style is part of the page, so neither a name in a record nor anything else can run or
load. Beside it lie table.csv and rows.json, and the figures where they were asked for.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import html
import io
import json
import re
import statistics
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module, resources
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from repcap._version import __version__
from repcap.console import style
from repcap.errors import InputError, SourceError
from repcap.files import write_text
from repcap.laws.fitting.ranges import fitted
from repcap.page import model_figures, notes
from repcap.page.families import looks
from repcap.page.page_rows import Limit, Row, to_rows
from repcap.page.records import Record
from repcap.page.tables import tables
from repcap.result import Result
from repcap.sources.spec import parse_spec
from repcap.text import spreadsheet

SCRIPTS = (
    "core.js",
    "laws.js",
    "constructions.js",
    "charts.js",
    "curves.js",
    "table.js",
    "calculator.js",
    "lines.js",
    "sharing.js",
    "cards.js",
    "page.js",
)
"""In the order in which they run."""

MOST_BINS = 400
"""Bins of a histogram in the page: what a screen resolves."""

PUBLISHED_TITLE = "How much room is there for directions?"


@dataclass(frozen=True, repr=False)
class Site(Result):
    """What was written."""

    kind = "report"

    path: Path
    models: int
    skipped: list[str]
    bytes: int
    figures: list[Path]

    @property
    def title(self) -> str:
        return str(self.path)

    @property
    def reading(self) -> str:
        models = "model" if self.models == 1 else "models"
        return f"{self.models} {models} on {self.path} ({self.bytes / 1000:.0f} kB)"

    def values(self) -> dict[str, Any]:
        return {
            "path": str(self.path),
            "models": self.models,
            "skipped": self.skipped,
            "bytes": self.bytes,
            "figures": [str(path) for path in self.figures],
        }


def build(
    records: Iterable[Record],
    out: str | Path,
    *,
    title: str | None = None,
    origin: str = "",
    figures: Sequence[str] = (),
) -> Site:
    """Write the page of `records` into the directory `out`, which is made if it is not there.

    title: heading of the page. origin: where the records come from, for the foot of the page. figures: formats
    (`png`, `svg`, `pdf`) of publication figures to write into `out/figures` too.

    The same records give the same bytes. Memory: the rows and one copy of the page as text.

    Raises
    ------
    InputError
        if no record gives a row, or `out` cannot be written.
    MissingExtraError
        if figures are asked for and matplotlib is missing.
    """
    records = list(records)
    rows, skipped = to_rows(records)
    if not rows:
        raise InputError("nothing to show: no record has a defined epsilon")
    target = Path(out)
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot make the directory {target}: {error.strerror}") from error
    page = render(rows, title=title or PUBLISHED_TITLE, origin=origin, skipped=skipped)
    write_text(target / "index.html", page)
    write_text(target / "table.csv", table_csv(rows))
    write_text(target / "rows.json", json.dumps([row.to_dict() for row in rows], indent=1, ensure_ascii=False) + "\n")
    _preview(records, target)
    drawn = write_figures(records, rows, target / "figures", figures) if figures else []
    return Site(
        path=target / "index.html",
        models=len(rows),
        skipped=skipped,
        bytes=len(page.encode()),
        figures=drawn,
    )


def _preview(records: Sequence[Record], target: Path) -> None:
    """preview.png, the picture of a link to the page; none where matplotlib is missing."""
    if find_spec("matplotlib") is None:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # names too long for a picture are no news to who builds a page
        import_module("repcap.page.model_figures").epsilon_over_d(records, target / "preview", ("png",))


def write_figures(records: Sequence[Record], rows: Sequence[Row], out: Path, formats: Sequence[str]) -> list[Path]:
    """Every publication figure that the records, and the rows made of them, allow, into the directory `out`."""
    out.mkdir(parents=True, exist_ok=True)
    written = model_figures.epsilon_over_d(records, out / "epsilon_over_d", formats)
    if any(row.law and row.klass == "low" for row in rows):
        written += model_figures.capacity_bracket(records, out / "capacity_bracket", formats)
    if any(row.histogram for row in rows):
        written += model_figures.similarity_distributions(
            records, out / "similarity_distributions", formats, first=True
        )
    return written


# The page


def render(rows: Sequence[Row], *, title: str, origin: str = "", skipped: Sequence[str] = ()) -> str:
    """index.html as text."""
    scripts = "\n".join(asset(name) for name in SCRIPTS)
    early, css = asset("early.js"), asset("page.css")
    data = {
        "rows": [page_row(row) for row in rows],
        "looks": {name: look._asdict() for name, look in looks(row.family for row in rows).items()},
        "cycle": list(style.CYCLE),
        "z": rows[0].z,
        "fitted": fitted(),
        "start": _start(rows),
        "tables": tables(),
    }
    parts = {
        "title": html.escape(title),
        "description": html.escape(notes.description(rows), quote=True),
        "version": html.escape(__version__),
        "policy": html.escape(policy(css, [early, scripts])),
        "css": css,
        "early": early,
        "scripts": scripts,
        "data": embedded_json(data),
        "lede": notes.lede(rows),
        "stats": "".join(f"<div><dt>{html.escape(name)}</dt><dd>{value}</dd></div>" for name, value in stats(rows)),
        "notes": notes.notes(rows),
        "foot": notes.foot(rows, origin, skipped),
    }
    # One pass: what is put in is never searched for marks again.
    return re.sub(r"\{\{(\w+)\}\}", lambda mark: parts[mark[1]], asset("page.html"))


@cache
def asset(name: str) -> str:
    """A file of page/assets as text."""
    return resources.files("repcap.page").joinpath("assets", name).read_text(encoding="utf-8")


def policy(css: str, scripts: Sequence[str]) -> str:
    """Content security policy that allows this style and these scripts and no load of any kind."""

    def hashed(text: str) -> str:
        return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"

    rules = {
        "default-src": "'none'",
        "script-src": " ".join(hashed(text) for text in scripts),
        "style-src": hashed(css),
        "img-src": "data:",
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    return "; ".join(f"{name} {value}" for name, value in rules.items())


def embedded_json(value: Any) -> str:
    """JSON that no HTML parser takes for anything but text, whatever strings are in it."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def page_row(row: Row) -> dict[str, Any]:
    """A row as the page's scripts read it: histograms coarse and as densities."""
    found = row.to_dict()
    found["hub"] = hub_address(row.source)
    if row.histogram:
        coarse = row.histogram.coarser(MOST_BINS)
        found["histogram"] = {
            "edges": [float(f"{edge:.6g}") for edge in coarse.edges],
            "density": [float(f"{density:.4g}") for density in coarse.density],
        }
    return found


def hub_address(source: str | None) -> str | None:
    """The page on the Hub of the repository that a source names; None where it names none."""
    try:
        spec = parse_spec(source) if source else None
    except SourceError:
        return None
    return f"https://huggingface.co/{spec.location}" if spec is not None and spec.scheme == "hub" else None


def _start(rows: Sequence[Row]) -> dict[str, Any]:
    """What the calculator shows first: the model of class low that is nearest to the middle of them all."""
    able = [row for row in rows if 0 < row.epsilon < 1] or None
    if able is None:
        return {"d": 4096, "epsilon": 0.06, "vocab": 32000, "tied": False}
    low = [row for row in able if row.klass == "low"] or able
    middle = sorted(low, key=lambda row: (row.epsilon_ratio, row.label))[len(low) // 2]
    return {"d": middle.d, "epsilon": middle.epsilon, "vocab": middle.n or 32000, "tied": middle.tied or False}


def stats(rows: Sequence[Row]) -> list[tuple[str, str]]:
    """(what, HTML) of the numbers at the head of the page."""
    classes = Counter(row.klass for row in rows)
    split = " · ".join(str(classes[name]) for name in ("low", "between", "high"))
    ratios = [row.epsilon_ratio for row in rows]
    found = [
        (_counted(rows), str(len(rows))),
        ("class low · between · high", split),
        (f"times random: the median of ε over {rows[0].z:g}/√d", f"{statistics.median(ratios):.2f}"),
    ]
    sure = [row for row in rows if row.klass == "low" and row.law]
    if sure:
        below = sum(_proven(row) > (_log10(row.law) or 0.0) for row in sure)
        what = "of class low: the fitted law allows fewer than are proven to exist"
        found.append((what, f"{below}<small> of {len(sure)}</small>"))
    return found


def _counted(rows: Sequence[Row]) -> str:
    if any(row.matrix != "embedding" for row in rows):
        return "matrices measured" if len(rows) > 1 else "matrix measured"
    return "models" if len(rows) > 1 else "model"


def _proven(row: Row) -> float:
    """log10 k of the better proven lower end."""
    return _log10(row.at_least) or 0.0


def _log10(limit: Limit | None) -> float | None:
    return limit.log10_k if limit else None


CSV_COLUMNS: Mapping[str, str] = {
    "name": "name",
    "family": "family",
    "source": "source",
    "matrix": "matrix",
    "dim": "d",
    "count": "n",
    "mean": "mean",
    "std": "std",
    "epsilon": "epsilon",
    "epsilon_se": "epsilon_se",
    "epsilon_null": "epsilon_null",
    "epsilon_ratio": "epsilon_ratio",
    "class": "klass",
    "tied": "tied",
    "effective_dim": "effective_dim",
    "readout.s_limit": "s_limit",
    "at_once.best.s_max": "s_max",
    "d_alpha.0.0001": "tail_dim",
    "dropped_count": "dropped_count",
    "repcap_version": "version",
}
LIMITS = ("at_least", "explicit", "exists", "ratio", "law", "upper")


def table_csv(rows: Sequence[Row]) -> str:
    """The table as CSV (RFC 4180, UTF-8): the keys of a record, and log10 k of each end of the bracket.

    A text that a spreadsheet would take for a formula gets an apostrophe in front.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*CSV_COLUMNS, *(f"{name}_log10_k" for name in LIMITS)])
    for row in rows:
        values = [getattr(row, attribute) for attribute in CSV_COLUMNS.values()]
        values += [_log10(getattr(row, name)) for name in LIMITS]
        writer.writerow(["" if value is None else spreadsheet(value) for value in values])
    return text.getvalue()
