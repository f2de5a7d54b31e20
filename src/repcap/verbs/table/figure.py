"""The figure of `repcap table --plot`: the best known set and the proven limit over d."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from repcap.console import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST = 6
"""Values of epsilon or k with a colour of their own."""


def draw(record: Mapping[str, Any], path: str | os.PathLike[str] | None = None, *, ax: Axes | None = None) -> Any:
    """Draw a record of `repcap table --json`: over d the best proven end (line) and the limit (dashed), for up to six
    values that were asked for. Into a file, into `ax`, or into a new figure: see `style.draw_panels`.
    """
    asked = record["asked"]
    values = sorted({row[asked] for row in record["rows"]})
    chosen = [
        values[place * (len(values) - 1) // max(1, min(MOST, len(values)) - 1)]
        for place in range(min(MOST, len(values)))
    ]

    def panel(axes: Axes) -> None:
        for value, colour in zip(chosen, style.CYCLE, strict=False):
            rows = sorted((row for row in record["rows"] if row[asked] == value), key=lambda row: row["d"])
            dims = [row["d"] for row in rows]
            known, limit = zip(*(_ends(row, asked) for row in rows), strict=True)
            axes.fill_between(dims, known, limit, color=colour, alpha=0.12, linewidth=0)
            axes.plot(dims, known, color=colour, label=f"{'ε' if asked == 'epsilon' else 'k'} = {value:.6g}")
            axes.plot(dims, limit, color=colour, linestyle="--", linewidth=1.0)
        axes.plot([], [], color=style.GREY, label="best known")
        axes.plot([], [], color=style.GREY, linestyle="--", linewidth=1.0, label="proven limit")
        axes.set(xscale="log", xlabel="d", ylabel="log₁₀ k" if asked == "epsilon" else "coherence")
        if asked == "epsilon":
            axes.set_yscale("log")
        axes.set_title(
            "the most lines that are known, and that are possible" if asked == "epsilon" else "the least coherence"
        )
        axes.legend()

    return style.draw_panels((panel,), path, ax, size="page")


def _ends(row: Mapping[str, Any], asked: str) -> tuple[float, float]:
    """(the better of explicit set and random coding, the limit)."""
    if asked == "epsilon":
        return max(row["explicit"]["log10_k"], row["exists"]["log10_k"]), row["upper"]["log10_k"]
    return min(row["explicit"]["coherence"], row["exists"]["epsilon"]), row["lower"]["epsilon"]
