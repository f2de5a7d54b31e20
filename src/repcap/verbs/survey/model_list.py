"""Lists of models: a text file with one source a line, or YAML with names, families and options."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from repcap.errors import InputError
from repcap.options import check_options
from repcap.plain_yaml import parse_yaml
from repcap.studies.measured import measure

BOTH = "both"


@dataclasses.dataclass(frozen=True)
class Entry:
    """One model to measure.

    matrix: `both` (embedding, and unembedding where it is another matrix), a role, or a tensor's name.
    rows: estimate from so many random rows; None measures all.
    """

    source: str
    matrix: str = BOTH
    rows: int | None = None
    name: str | None = None
    family: str | None = None
    options: dict[str, Any] = dataclasses.field(default_factory=dict)

    @property
    def label(self) -> str:
        """For people."""
        return self.name or self.source


_FIELDS = {field.name for field in dataclasses.fields(Entry)}


def read_list(path: str | Path) -> list[Entry]:
    """Entries of a list of models.

    Text: one source a line; blank lines and what follows ` #` or a leading `#` are left out. YAML (`.yaml`, `.yml`): a
    list of sources or of mappings with `source` and any of matrix, rows, name, family, options; or a mapping with
    `models` (that list) and `defaults` (any of those keys but source and name).

    Relative paths are relative to the working directory, as on the command line.

    Raises
    ------
    InputError
        if the file is missing, empty or malformed; the message names the entry.
    """
    file = Path(path)
    try:
        text = file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{file} is no text: give a list of models, one source a line, or YAML") from error
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise InputError(f"cannot read the list of models {file}: {reason}") from error
    entries = _from_yaml(text, file) if file.suffix.lower() in (".yaml", ".yml") else _from_lines(text)
    if not entries:
        raise InputError(f"{file} lists no models: write one source a line, for example org/name or a path")
    return entries


def _from_lines(text: str) -> list[Entry]:
    lines = (line.partition(" #")[0].partition("\t#")[0].strip() for line in text.splitlines())
    return [Entry(line) for line in lines if line and not line.startswith("#")]


def _from_yaml(text: str, file: Path) -> list[Entry]:
    held = parse_yaml(text, str(file))
    defaults: Any = {}
    if isinstance(held, Mapping):
        unknown = set(held) - {"models", "defaults"}
        if unknown or "models" not in held:
            raise InputError(
                f"{file}: expected the keys models and defaults, found {', '.join(map(str, held)) or 'none'}"
            )
        defaults, held = held.get("defaults") or {}, held["models"]
    if not isinstance(held, list):
        raise InputError(f"{file}: the models must be a list")
    if not isinstance(defaults, Mapping) or set(defaults) - (_FIELDS - {"source", "name"}):
        raise InputError(f"{file}: defaults may hold {', '.join(sorted(_FIELDS - {'source', 'name'}))}")
    return [_entry(item, defaults, f"{file}, model {place}") for place, item in enumerate(held, start=1)]


def _options(held: Any, where: str) -> dict[str, Any]:
    if held is not None and not isinstance(held, Mapping):
        raise InputError(f"{where}: options must be a mapping, for example {{z: 2}}, not {held!r}")
    return dict(held or {})


def _entry(item: Any, defaults: Mapping[str, Any], where: str) -> Entry:
    if isinstance(item, str):
        item = {"source": item}
    if not isinstance(item, Mapping) or not isinstance(item.get("source"), str) or not item["source"].strip():
        raise InputError(f"{where}: expected a source, or a mapping with the key source")
    unknown = set(map(str, item)) - _FIELDS
    if unknown:
        raise InputError(f"{where}: unknown key {min(unknown)}; known are {', '.join(sorted(_FIELDS))}")
    options = {**_options(defaults.get("options"), where), **_options(item.get("options"), where)}
    merged = {**defaults, **item, "options": check_options(measure, options, where)}
    for key in ("matrix", "name", "family"):
        if merged.get(key) is not None and not isinstance(merged[key], str):
            raise InputError(f"{where}: {key} must be text, not {merged[key]!r}")
    check_rows(merged.get("rows"), where)
    return Entry(**{key: value for key, value in merged.items() if value is not None})


def check_rows(rows: Any, where: str) -> None:
    """Raise InputError unless `rows` is None or a whole number of at least 2."""
    if rows is not None and (isinstance(rows, bool) or not isinstance(rows, int) or rows < 2):
        raise InputError(f"{where}: rows must be a whole number of at least 2, not {rows!r}")


def published_list() -> list[Entry]:
    """The 45 checkpoints of the published table, by hub id."""
    from repcap.laws.fitting.data import published_models

    return [Entry(model.hub_id, name=model.model) for model in published_models()]
