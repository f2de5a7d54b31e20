"""What the terminal shows of `tokens`."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from repcap.console.common import new_table
from repcap.console.prose import prose
from repcap.text import visible
from repcap.verbs.tokens.study import MatrixTokens, UntrainedTokens

SHOWN = 40
"""Candidates of a matrix that the table has at most; JSON has all."""


def parts(result: UntrainedTokens) -> Iterator[RenderableType]:
    for part in result.matrices:
        yield Text(f"{part.role}, {part.matrix}, {part.count} x {part.dim}", style="bold")
        if part.candidates:
            yield _table(part)
        more = len(part.candidates) - SHOWN
        if more > 0:
            yield prose(f"and {more} more: --json names all.")
    yield prose(result.reading)


def _table(part: MatrixTokens) -> RenderableType:
    table = new_table(None, ">row", "token", ">distance", ">z")
    for item in part.candidates[:SHOWN]:
        text = "beyond the tokenizer" if item.padding else "" if item.text is None else visible(item.text)
        table.add_row(str(item.row), Text(text), f"{item.distance:.4g}", f"{item.z:.1f}")
    return table
