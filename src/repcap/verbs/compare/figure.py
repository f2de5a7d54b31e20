"""Figure of `repcap compare`: the cosines of corresponding rows."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from repcap.console import style
from repcap.errors import InputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw(record: Mapping[str, Any], path: str | os.PathLike[str] | None = None, *, ax: Axes | None = None) -> Any:
    """Draw a record of `repcap compare --json`: how many corresponding rows have which cosine.

    Into a file, into `ax`, or into a new figure: see `style.draw_panels`.

    Raises
    ------
    InputError
        if the record has no corresponding rows (tied, or different widths).
    """
    rows = record.get("rows")
    if not rows:
        raise InputError(f"no corresponding rows to draw: {record.get('reason') or 'nothing was compared'}")
    edges, counts = np.asarray(rows["histogram"]["edges"]), np.asarray(rows["histogram"]["counts"])
    spread = 2.0 / math.sqrt(record["a"]["dim"])

    def panel(axes: Axes) -> None:
        axes.stairs(counts, edges, fill=True, color=style.SKY, alpha=0.7, label="corresponding rows")
        axes.axvline(rows["mean"], color=style.BLUE, lw=1.2, label=f"mean {rows['mean']:.5f}")
        low = next(item["cosine"] for item in rows["quantiles"] if item["share"] == 0.05)
        axes.axvline(low, color=style.ORANGE, lw=1.2, ls="--", label=f"5 % quantile {low:.5f}")
        if edges[0] < 1.5 * spread:
            axes.axvspan(-spread, spread, color=style.GREY, alpha=0.15, lw=0)
            axes.axvline(math.nan, color=style.GREY, alpha=0.4, lw=6, label="random directions, ±2 std")
        axes.set_yscale("log")
        axes.set_ylim(bottom=0.7)
        axes.set_xlim(edges[0] - 0.02 * (1.0 - edges[0]), 1.0)
        axes.ticklabel_format(axis="x", useOffset=False)
        axes.set_xlabel("cosine of a row of a with the same row of b")
        axes.set_ylabel("rows")
        axes.set_title(f"{_short(record['a'])} against {_short(record['b'])}:\nmean cosine of a row {rows['mean']:.4f}")
        axes.legend(loc="upper left")

    return style.draw_panels((panel,), path, ax)


def _short(side: Mapping[str, Any], most: int = 34) -> str:
    name = str(side["source"]).rstrip("/")
    name = name.rsplit("/", 1)[-1] if name.count("/") > 1 else name
    name = f"{name} {side['role'] if side.get('role') not in (None, 'matrix') else side['matrix']}"
    return name if len(name) <= most else "…" + name[len(name) - most + 1 :]
