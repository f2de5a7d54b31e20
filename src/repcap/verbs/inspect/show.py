"""What the terminal shows of a source."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from repcap.console.common import new_table
from repcap.sources.roles.inspection import Candidate, Inspection
from repcap.text import abridged, printable


def parts(result: Inspection, all_tensors: bool = False) -> Iterator[RenderableType]:
    yield Text(printable(result.source), style="bold")
    yield Text(printable(result.numbers))
    table = new_table(None, "tensor", ">rows", ">dim", "dtype", "role")
    table.columns[0].overflow = "fold"  # a name cut short could not be given to --matrix
    for item in result.tensors if all_tensors else result.candidates:
        table.add_row(*(Text(printable(cell)) for cell in _row(item)))
    yield table
    for line in _facts(result):
        yield Text(printable(line))


def _row(item: Candidate) -> tuple[str, ...]:
    role = "" if item.role == "matrix" else item.role
    if item.tied is not None and role:
        role += " (tied)" if item.tied else " (untied)"
    if item.rows is None or item.dim is None:
        shape = " x ".join(map(str, item.shape)) or "?"
        return item.name, shape if item.dtype != "unknown" else "?", "", item.dtype, role
    return item.name, str(item.rows), str(item.dim), item.dtype, role


def _facts(found: Inspection) -> list[str]:
    lines = [found.reading] if found.reading else []
    lines += [item.evidence for item in found.candidates if item.role == "decoder" and item.evidence]
    if found.token_count is not None:
        rows = f", {found.padding_rows} rows of the embedding beyond them" if found.padding_rows is not None else ""
        lines.append(f"tokenizer: {found.token_count} ids{rows}")
    facts = found.config if found.vocab_size is None else {**found.config, "vocab_size": found.vocab_size}
    if facts:
        lines.append("config: " + ", ".join(f"{key} {_plain(value)}" for key, value in facts.items()))
    return lines


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return abridged(", ".join(map(str, value)) if isinstance(value, list) else str(value), 120)
