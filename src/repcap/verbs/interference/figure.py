"""Readout error and recovery against the number of active features."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from repcap.console import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def draw(record: Mapping[str, Any], path: str | os.PathLike[str] | None = None, *, ax: Axes | None = None) -> Any:
    """Draw a record of `repcap interference --json`: error left, share of draws in which the set is found right.

    Into a file, into `ax` (the error), or into a new figure: see `style.draw_panels`.
    """

    def error(axes: Axes) -> None:
        for one, colour, marker in _looks(record):
            for name, line in (("direct", "-"), ("dual", ":")):
                label = f"{one['method']}, coherence {one['coherence']:.3f}" if name == "direct" else None
                axes.plot(*_curve(one, name, "rms_idle"), line, marker=marker, color=colour, label=label)
        _over_active(axes)
        axes.set_yscale("log")
        for which in (axes.yaxis.set_major_formatter, axes.yaxis.set_minor_formatter):
            which(lambda value, _position: f"{value:.2g}")
        axes.set_ylabel("rms reading of an idle feature")
        axes.set_title(f"{record['k']} directions in R$^{{{record['d']}}}$: {_quietest(record)}")
        axes.plot([], [], ":", color=style.GREY, label="dual readout")
        axes.plot([], [], "-.", color=style.GREY, label="matching pursuit")
        axes.plot([], [], "--", color=style.GREY, lw=1, label="surely found up to here")

    def found(axes: Axes) -> None:
        for one, colour, marker in _looks(record):
            for name, line in (("direct", "-"), ("dual", ":"), ("omp", "-.")):
                axes.plot(*_curve(one, name, "recovery"), line, marker=marker, color=colour)
            if one["guaranteed"]:
                axes.axvline(one["guaranteed"], color=colour, lw=1, ls="--")
        _over_active(axes)
        axes.set_ylabel("share of draws found")
        axes.set_ylim(-0.03, 1.03)
        axes.set_title(_most_found(record))

    def finish(drawn: Figure, panels: Sequence[Axes]) -> None:
        drawn.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)

    return style.draw_panels((error, found), path, ax, size="wide", finish=finish)


def _quietest(record: Mapping[str, Any]) -> str:
    """Which set is read with the least noise at the most active features."""
    best = min(record["sets"], key=lambda one: _curve(one, "direct", "rms_idle")[1][-1])
    return f"{best['method']} reads quietest" if len(record["sets"]) > 1 else str(best["method"])


def _most_found(record: Mapping[str, Any]) -> str:
    """Up to how many active features all of them are found in every draw, in the best set and readout."""
    full = [r["active"] for one in record["sets"] for r in one["readouts"] if r["recovery"] == 1.0]
    return f"all active found up to s = {max(full)}" if full else "not one s is found in every draw"


def _looks(record: Mapping[str, Any]) -> list[tuple[Any, str, str]]:
    return list(zip(record["sets"], style.CYCLE, style.MARKERS, strict=False))


def _curve(one: Mapping[str, Any], readout: str, key: str) -> tuple[list[Any], list[Any]]:
    chosen = [r for r in one["readouts"] if r["readout"] == readout]
    return [r["active"] for r in chosen], [r[key] for r in chosen]


def _over_active(axes: Axes) -> None:
    axes.set_xscale("log", base=2)
    axes.set_xlabel("active features s")
    axes.xaxis.set_major_formatter(lambda value, _position: f"{value:g}")
