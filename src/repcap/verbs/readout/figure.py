"""False alarms over the number of active rows, of both readouts."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from repcap.console import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw(record: Mapping[str, Any], path: str | os.PathLike[str] | None = None, *, ax: Axes | None = None) -> Any:
    """Draw a record of `repcap readout --json`: predicted as lines, simulated as points, delta dashed."""

    def panel(axes: Axes) -> None:
        for key, label, colour in (("direct", "direct", style.GREY), ("best", "best linear", style.BLUE)):
            alarms = [point for point in record[key]["alarms"] if point["rate"] > 0]
            axes.plot([p["active"] for p in alarms], [p["rate"] for p in alarms], color=colour, label=label)
            drawn = [point for point in record[key]["simulated"] if point["rate"] > 0]
            if drawn:
                axes.plot([p["active"] for p in drawn], [p["rate"] for p in drawn], "o", color=colour, ms=4)
        axes.axhline(record["delta"], color=style.SKY, ls="--", lw=1, label=f"delta = {record['delta']:g}")
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel("active rows, s")
        axes.set_ylabel(f"share of idle rows that read above {record['theta']:g}")
        axes.set_title(f"{style.short_name(record['source'])}: s_max = {record['s_max']}")
        axes.legend()

    return style.draw_panels((panel,), path, ax)
