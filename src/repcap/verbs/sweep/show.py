"""What the terminal shows of a sweep: its cells, and the laws fitted to them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.table import Table

from repcap.console.common import new_table
from repcap.laws.fitting.fit import Fit

SHOWN = 40
"""A table of more cells than this shows the beginning; --json and repcap results have them all."""


def result_table(results: Sequence[Any]) -> Table:
    """Packed cells, by d, k and seed."""
    table = new_table(None, ">k", ">d", ">Seed", ">Coherence", ">Bound", ">/ bound", ">Seconds", "Method")
    ordered = sorted((item.record for item in results), key=lambda r: (r["d"], r["k"], r["seed"]))
    for record in ordered[:SHOWN]:
        table.add_row(
            str(record["k"]),
            str(record["d"]),
            str(record["seed"]),
            f"{record['coherence']:.6f}",
            f"{record['lower_bound']:.6f}",
            f"{record['coherence'] / record['lower_bound']:.3f}" if record["lower_bound"] else "",
            f"{record['seconds']:.1f}",
            record["method"].replace("cyclic of order ", "cyclic "),
        )
    if len(ordered) > SHOWN:
        table.caption = f"... and {len(ordered) - SHOWN} more: repcap results list --kind pack"
        table.caption_justify = "left"
    return table


def fit_table(fits: Sequence[Fit]) -> Table:
    """Laws with their constants and errors."""
    listing = new_table(None, "Law", "Constants", ">MAPE", ">Cells")
    for item in fits:
        constants = ", ".join(f"{name} = {value:.4g}" for name, value in item.params.items())
        listing.add_row(item.law, constants, f"{item.mape:.2%}", str(item.n))
    return listing
