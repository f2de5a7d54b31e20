"""Results of a store as CSV, Parquet, JSON or Markdown."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from repcap.errors import InputError
from repcap.files import write_text
from repcap.jobs.record import MEASURE, PACK, PUBLISHED, columns
from repcap.jobs.store import Stored
from repcap.studies.row_files import csv_text, write_parquet
from repcap.text import legible, markdown

FORMATS = ("csv", "parquet", "json", "markdown")
_SUFFIXES = {".csv": "csv", ".parquet": "parquet", ".json": "json", ".md": "markdown"}

_MARKDOWN: dict[str, tuple[str, ...]] = {
    MEASURE: ("name", "matrix", "count", "dim", "epsilon", "epsilon_ratio", "class", "tied"),
    PUBLISHED: ("name", "matrix", "dim", "epsilon", "epsilon_ratio", "class"),
    PACK: ("k", "d", "seed", "coherence", "lower_bound", "method"),
}
"""What a Markdown table shows: it is for reading, the other formats hold everything."""


def format_of(path: str | os.PathLike[str] | None, asked: str | None) -> str:
    """The format to write: the one asked for, else the one that the file's suffix says, else CSV.

    Raises
    ------
    InputError
        for a format that is not known.
    """
    if asked is not None:
        name = {"md": "markdown"}.get(asked, asked)
        if name not in FORMATS:
            raise InputError(f"cannot export {asked!r}: use {', '.join(FORMATS)}")
        return name
    if path is None:
        return "csv"
    suffix = Path(path).suffix.lower()
    if suffix not in _SUFFIXES:
        raise InputError(f"cannot tell the format of {path}: end it in {', '.join(_SUFFIXES)}, or give --format")
    return _SUFFIXES[suffix]


def to_text(results: Sequence[Stored], form: str) -> str:
    """The results as `csv`, `json` or `markdown`. In CSV, lists are JSON and what is missing is empty.

    What has no code in UTF-8 is written as an escape. In CSV a text that a spreadsheet would take for a formula gets an
    apostrophe in front, as in the table of a page; in Markdown control characters are escapes, and `<` is no tag.
    """
    if form == "json":
        held = {"records": [result.to_dict() for result in results]}
        return legible(json.dumps(held, indent=2, ensure_ascii=False, allow_nan=False)) + "\n"
    if form == "markdown":
        return legible(_markdown(results))
    return csv_text(*columns(results))


def _markdown(results: Sequence[Stored]) -> str:
    parts = []
    for kind in dict.fromkeys(result.kind for result in results):
        records = [result.record for result in results if result.kind == kind]
        names = _MARKDOWN.get(kind) or tuple(records[0])
        lines = [f"| {' | '.join(names)} |", f"|{'---|' * len(names)}"]
        lines += [f"| {' | '.join(_shown(record.get(name)) for name in names)} |" for record in records]
        parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)


def _shown(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.5g}"
    return markdown(str(value))


def export(results: Sequence[Stored], path: str | os.PathLike[str], form: str) -> None:
    """Write results to a file in one of `FORMATS`, atomically."""
    if form == "parquet":
        write_parquet(*columns(results), path)
    else:
        write_text(path, to_text(results, form))
