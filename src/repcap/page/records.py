"""Where a report's records come from: the published table, a JSON file, a result store.

A record is the dict that `repcap measure --json` or `repcap pairs --json` prints (keys in docs/report.md). `rows.py`
turns records into the flat rows that figures and pages read.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from repcap.errors import InputError
from repcap.plain_json import parse_json
from repcap.text import short_name

if TYPE_CHECKING:
    from repcap.laws.fitting.data import PublishedModel

Record = Mapping[str, Any]

KINDS = ("measure", "published")
"""Kinds of records in a store that say something of a model."""
IN_FILES = (*KINDS, "pairs")
"""Kinds in a JSON file: those of `repcap pairs` bring the histogram."""


def published_records() -> list[dict[str, Any]]:
    """The published table of models as records."""
    from repcap.laws.fitting.data import published_models

    return [_published(model) for model in published_models()]


def _published(model: PublishedModel) -> dict[str, Any]:
    return {
        "name": model.model,
        "source": model.hub_id,
        "matrix": "embedding",
        "dim": model.d_model,
        "epsilon": model.epsilon,
        "published": True,
        "published_capacity": model.capacity,
    }


def load_records(source: str | Path) -> list[dict[str, Any]]:
    """Records from a JSON file (one record, a list, or {"records": [...]}) or from a result store.

    Raises
    ------
    InputError
        if the file is missing, is neither, or holds no record of a model.
    StoreError
        if the store cannot be opened.
    """
    path = Path(source)
    if not path.exists():
        raise InputError(f"no such file: {path}; give a result store, a JSON file of records, or --published")
    if path.is_dir():
        raise InputError(f"{path} is a directory; give a result store, a JSON file of records, or --published")
    if not path.is_file():
        raise InputError(f"{path} is no regular file; give a result store, a JSON file of records, or --published")
    with path.open("rb") as handle:
        head = handle.read(16)
    if head.startswith(b"SQLite format 3"):
        return _from_store(path)
    try:
        found = parse_json(path.read_bytes(), finite=True)
    except ValueError as error:
        raise InputError(f"{path} is neither a result store nor JSON: {error}") from error
    if isinstance(found, dict):
        found = found.get("records", [found])
    if not isinstance(found, list) or not all(isinstance(item, dict) for item in found):
        raise InputError(f'{path} holds no records: expected one record, a list of them, or {{"records": [...]}}')
    if not found:
        raise InputError(f"{path} holds no records: its list is empty")
    models = [record for record in map(_unwrapped, found) if record.get("kind", KINDS[0]) in IN_FILES]
    if not models:
        raise InputError(f"{path} holds no record of a model, only of packings or the like")
    return models


def _from_store(path: Path) -> list[dict[str, Any]]:
    from repcap.jobs.store import Store

    with Store(path, mode="read") as store:
        found = [_unwrapped(item.to_dict()) for kind in KINDS for item in store.records(kind)]
    if not found:
        raise InputError(f"{path} holds no measurement: run repcap survey with --store {path} first")
    return found


def _unwrapped(item: Record) -> dict[str, Any]:
    """A store's result, or an exported one, as the record that it carries, with its provenance."""
    record = item.get("record")
    if not isinstance(record, Mapping):
        return dict(item)
    return {"provenance": item.get("provenance"), "kind": item.get("kind", KINDS[0]), **record}


def display_name(record: Record) -> str:
    """A record's own `name`, else the telling part of its source.

    >>> display_name({"source": "hf://Qwen/Qwen3-8B@abc"}), display_name({"source": "tiny/model.safetensors"})
    ('Qwen3-8B', 'tiny')
    """
    if record.get("name"):
        return str(record["name"])
    return short_name(str(record.get("source") or "unnamed"), suffix=False)
