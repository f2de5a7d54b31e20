"""Rows as CSV and Parquet, and CSV and Parquet as rows: one column a key, lists as JSON."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from repcap.errors import InputError, MissingExtraError
from repcap.files import atomic_path, write_text
from repcap.text import legible, spreadsheet

Rows = Sequence[Mapping[str, Any]]


def csv_text(names: Sequence[str], rows: Rows) -> str:
    """What is missing is empty. A text that a spreadsheet would take for a formula gets an apostrophe in front."""
    text = io.StringIO()
    writer = csv.DictWriter(text, names, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: _cell(value) for name, value in row.items()} for row in rows)
    return legible(text.getvalue())


def _cell(value: Any) -> Any:
    if isinstance(value, list):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, bool):
        return "true" if value else "false"
    return spreadsheet(value)


def write_parquet(names: Sequence[str], rows: Rows, path: str | os.PathLike[str]) -> None:
    """Write a Parquet file; lists as JSON text.

    Raises
    ------
    MissingExtraError
        without pyarrow.
    """
    pa, parquet = _pyarrow()
    arrays = {}
    for name in names:
        values = [json.dumps(v, ensure_ascii=False) if isinstance(v := row.get(name), list) else v for row in rows]
        values = [legible(value) if isinstance(value, str) else value for value in values]
        held = {type(value) for value in values if value is not None}
        if held == {int, float}:
            values = [None if value is None else float(value) for value in values]
        elif len(held) > 1:
            values = [None if value is None else str(value) for value in values]
        arrays[name] = pa.array(values)
    with atomic_path(path) as temporary:
        parquet.write_table(pa.table(arrays), temporary, write_page_checksum=True)


def _pyarrow() -> tuple[Any, Any]:
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError as error:
        raise MissingExtraError("Parquet", "parquet") from error
    return pa, parquet


def check_rows_path(path: str | os.PathLike[str]) -> None:
    """Refuse a name that `write_rows` would refuse, before the work.

    Raises
    ------
    InputError
        if the name ends neither in .csv nor in .parquet.
    MissingExtraError
        for Parquet without pyarrow.
    """
    suffix = Path(path).suffix.lower()
    if suffix not in (".csv", ".parquet"):
        raise InputError(f"cannot tell the format of {path}: end it in .csv or .parquet")
    if suffix == ".parquet":
        _pyarrow()


def write_rows(names: Sequence[str], rows: Rows, path: str | os.PathLike[str]) -> None:
    """Write rows by the file's suffix, .csv or .parquet; the old file or the whole new one is there, never a part."""
    check_rows_path(path)
    if Path(path).suffix.lower() == ".csv":
        write_text(path, csv_text(names, rows))
    else:
        write_parquet(names, rows, path)


def read_rows(path: str | os.PathLike[str]) -> tuple[list[str], list[dict[str, Any]]]:
    """(column names, rows) of what `write_rows` wrote. Of a CSV numbers and true and false are read as such.

    Raises
    ------
    InputError
        if it cannot be read.
    """
    check_rows_path(path)
    try:
        if Path(path).suffix.lower() == ".parquet":
            table = _pyarrow()[1].read_table(path, page_checksum_verification=True)
            return list(table.column_names), table.to_pylist()
        with Path(path).open(encoding="utf-8", newline="") as file:
            reader = csv.DictReader(file)
            rows = [{name: _value(text) for name, text in row.items() if name is not None} for row in reader]
            return list(reader.fieldnames or ()), rows
    except (OSError, ValueError, csv.Error) as error:  # pyarrow's errors are ValueErrors
        raise InputError(f"cannot read {path}: {str(error).splitlines()[0]}") from error


def _value(text: Any) -> Any:
    if not isinstance(text, str) or text == "":
        return None
    if text in ("true", "false"):
        return text == "true"
    for kind in (int, float):
        with suppress(ValueError):
            return kind(text)
    return text
