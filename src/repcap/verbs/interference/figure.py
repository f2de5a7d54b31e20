"""Readout error and recovery against the number of active features."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from repcap.console import style


def draw_interference(
    record: Mapping[str, Any], path: str | os.PathLike[str], formats: Sequence[str] = ()
) -> list[Path]:
    """Draw a record of `repcap interference --json`: error left, share of draws in which the set is found right."""
    with style.figure("wide", 1, 2) as (drawn, (error, found)):
        for one, colour, marker in zip(record["sets"], style.CYCLE, style.MARKERS, strict=False):
            for name, line in (("direct", "-"), ("dual", ":")):
                chosen = [r for r in one["readouts"] if r["readout"] == name]
                s = [r["active"] for r in chosen]
                label = f"{one['method']}, coherence {one['coherence']:.3f}" if name == "direct" else None
                error.plot(s, [r["rms_idle"] for r in chosen], line, marker=marker, color=colour, label=label)
                found.plot(s, [r["recovery"] for r in chosen], line, marker=marker, color=colour)
            if one["guaranteed"]:
                found.axvline(one["guaranteed"], color=colour, lw=1, ls="--")
        for axes in (error, found):
            axes.set_xscale("log", base=2)
            axes.set_xlabel("active features s")
            axes.xaxis.set_major_formatter(lambda value, _position: f"{value:g}")
        error.set_yscale("log")
        for which in (error.yaxis.set_major_formatter, error.yaxis.set_minor_formatter):
            which(lambda value, _position: f"{value:.2g}")
        error.set_ylabel("rms reading of an idle feature")
        error.set_title(f"{record['k']} directions in R$^{{{record['d']}}}$")
        found.set_ylabel("share of draws found")
        found.set_ylim(-0.03, 1.03)
        found.set_title("are the s largest readings the active ones?")
        error.plot([], [], ":", color=style.GREY, label="dual readout")
        error.plot([], [], "--", color=style.GREY, lw=1, label="surely found up to here")
        drawn.legend(*error.get_legend_handles_labels(), loc="outside lower center", ncols=3)
        return style.save(drawn, path, formats)
