"""Results of a store as a folder that a Hub takes as a dataset: one file a kind, and a card that says what is in it."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from repcap._version import __version__
from repcap.errors import InputError
from repcap.files import write_text
from repcap.jobs.record import KINDS, columns
from repcap.jobs.store import Stored
from repcap.text import legible, markdown
from repcap.verbs.results.export import export, to_text

FORMS = ("jsonl", "csv", "parquet")


def write_dataset(
    results: Sequence[Stored], folder: str | os.PathLike[str], form: str, title: str, licence: str | None = None
) -> list[str]:
    """Write `folder` with the records and README.md, whole or not at all; returns the names of its files.

    form: one of FORMS. licence: as the Hub names it, such as `cc-by-4.0`; None leaves the line out.

    Raises
    ------
    InputError
        for another form, or where the folder is there and not empty, or cannot be made.
    MissingExtraError
        for Parquet without pyarrow.
    """
    target = Path(folder)
    if form not in FORMS:
        raise InputError(f"cannot write a dataset as {form!r}: use {', '.join(FORMS)}")
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise InputError(f"{target} is there and not empty: give a new folder")
    files = {kind: f"{kind}.{form}" for kind in sorted({item.kind for item in results})}
    try:
        with tempfile.TemporaryDirectory(prefix=f".{target.name}.", dir=target.parent) as made:
            temporary = Path(made) / "dataset"
            temporary.mkdir()
            for kind, name in files.items():
                _write([item for item in results if item.kind == kind], temporary / name, form)
            write_text(temporary / "README.md", legible(card(results, files, title, licence)))
            temporary.replace(target)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise InputError(f"cannot write {target}: {reason}; give a folder where you may write") from error
    return ["README.md", *files.values()]


def _write(results: Sequence[Stored], path: Path, form: str) -> None:
    if form != "jsonl":
        export(results, path, form)
        return
    names, rows = columns(results)  # every line has every column: readers take the columns from the first ones
    lines = [
        json.dumps({name: _flat(row.get(name)) for name in names}, ensure_ascii=False, allow_nan=False) for row in rows
    ]
    write_text(path, legible("\n".join(lines) + "\n"))


def _flat(value: Any) -> Any:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list) else value


def card(results: Sequence[Stored], files: dict[str, str], title: str, licence: str | None) -> str:
    """README.md: what the Hub reads between the lines of dashes, then what people read."""
    head: dict[str, Any] = {"pretty_name": title}
    if licence is not None:
        head["license"] = licence
    head["tags"] = ["repcap", "embeddings", "interpretability"]
    head["size_categories"] = [_size(len(results))]
    head["configs"] = [{"config_name": kind, "data_files": name} for kind, name in files.items()]
    head["configs"][0]["default"] = True
    parts = [
        f"---\n{yaml.safe_dump(head, sort_keys=False, allow_unicode=True)}---",
        f"# {markdown(title)}",
        f"{len(results)} results of [repcap](https://arxiv.org/abs/2606.02765) {__version__}, which measures the "
        "geometry of a language model's vectors from its weights. One row a result; lists are JSON text; what is "
        "missing is null.",
    ]
    for kind, name in files.items():
        chosen = [item for item in results if item.kind == kind]
        parts += [
            f"## {kind}",
            f"`{name}`, {len(chosen)} rows.",
            to_text(chosen, "markdown").rstrip(),
            _meanings(kind, chosen),
        ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _meanings(kind: str, results: Sequence[Stored]) -> str:
    held = {key for item in results for key in item.record}
    lines = ["| column | unit | meaning |", "|---|---|---|"]
    lines += [
        f"| `{name}` | {key.unit} | {markdown(key.meaning)} |"
        for name, key in KINDS.get(kind, {}).items()
        if name in held
    ]
    return "\n".join(lines) if len(lines) > 2 else ""


def _size(count: int) -> str:
    """The Hub's word for so many rows."""
    least, most = 0, 1000
    while count >= most:
        least, most = most, most * 10
    names = {0: "n<1K", 1000: "1K<n<10K", 10_000: "10K<n<100K", 100_000: "100K<n<1M"}
    return names.get(least, "1M<n<10M")
