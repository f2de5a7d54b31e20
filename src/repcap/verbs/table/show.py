"""What the terminal shows of a table of sets."""

from __future__ import annotations

import math
from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from repcap.console.common import new_table
from repcap.console.prose import prose
from repcap.numerics import format_power
from repcap.text import abridged
from repcap.verbs.table.study import LineTable

SHOWN = 40
"""A longer table shows its beginning; the file, and --json, have all of it."""


def parts(result: LineTable) -> Iterator[RenderableType]:
    yield Text(result.title, style="bold")
    by_count = result.asked == "epsilon"
    heads = (">at least", ">coding", ">at most") if by_count else (">some set", ">coding", ">none below")
    table = new_table(None, ">d", ">eps" if by_count else ">k", *heads, "explicit set", "limit by")
    for row in result.lines[:SHOWN]:
        found, end = row["explicit"], row["upper" if by_count else "lower"]
        if by_count:
            numbers = [format_power(one["log10_k"]) for one in (found, row["exists"], end)]
        else:
            numbers = [f"{one:.4f}" for one in (found["coherence"], row["exists"]["epsilon"], end["epsilon"])]
        numbers[-1] += "=" if end["exact"] else " "
        asked = f"{row['epsilon']:.4g}" if by_count else format_power(math.log10(row["k"]))
        names = (Text(abridged(found["name"], 20)), Text(abridged(end["name"].partition(" (")[0], 11)))
        table.add_row(str(row["d"]), asked, *numbers, *names)
    if len(result.lines) > SHOWN:
        table.caption = f"... and {len(result.lines) - SHOWN} more rows: --out FILE, or --json"
        table.caption_justify = "left"
    yield table
    what = "lines of" if by_count else "coherence of"
    yield Text(f"{what} the explicit set, by coding, and the limit; = where they meet.", style="dim")
    yield prose(result.reading)
