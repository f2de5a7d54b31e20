"""epsilon of the residual stream layer by layer, against the embedding's."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from repcap.console import style
from repcap.errors import InputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def draw(record: Mapping[str, Any], path: str | os.PathLike[str] | None = None, *, ax: Axes | None = None) -> Any:
    """Draw a record of `repcap latents --json`: epsilon by layer on the left, the length of the states on the right.

    Into a file, into `ax` (epsilon), or into a new figure: see `style.draw_panels`.

    Raises
    ------
    InputError
        if the record has no layers.
    """
    layers = record["layers"]
    if not layers:
        raise InputError("the record has no layers: nothing to draw")

    def lengths(axes: Axes) -> None:
        at = [layer["layer"] for layer in layers]
        axes.plot(at, [layer["median_norm"] for layer in layers], color=style.BLUE, marker="o", label="other positions")
        axes.plot(at, [layer["first_norm"] for layer in layers], color=style.PINK, marker="D", label="first position")
        axes.set_yscale("log")
        axes.set_xlabel("layer")
        axes.set_title("median length")
        axes.legend()

    def finish(drawn: Figure, panels: Sequence[Axes]) -> None:
        panels[0].get_gridspec().set_width_ratios((2, 1))  # type: ignore[union-attr]  # made by subplots
        drawn.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)

    return style.draw_panels((lambda axes: _epsilon(axes, record), lengths), path, ax, size="wide", finish=finish)


def _epsilon(axes: Axes, record: Mapping[str, Any]) -> None:
    """epsilon of the states by layer, and the levels of the embedding."""
    layers = record["layers"]
    raw = [layer["raw"] for layer in layers]
    axes.errorbar(
        [layer["layer"] for layer in layers],
        [part["epsilon"] for part in raw],
        [1.96 * (part["epsilon_se"] or 0.0) for part in raw],
        color=style.BLUE,
        marker="o",
        capsize=2,
        label="residual stream",
    )
    _line(axes, layers, "normed", style.ORANGE, "s", "after the next norm")
    centred = [(layer["layer"], layer["raw"]["centred"]) for layer in layers if layer["raw"]["centred"]]
    axes.plot(
        [layer for layer, _ in centred],
        [part["epsilon"] for _, part in centred],
        color=style.GREEN,
        marker="^",
        label="without the mean state",
    )
    levels = (
        (record["embedding"]["epsilon"], style.VERMILION, "-", "embedding"),
        (record["embedding"].get("epsilon_centred"), style.VERMILION, "-.", "embedding, no mean"),
        (record["epsilon_null"], style.GREY, "--", "random directions"),
    )
    for level, colour, line, label in levels:
        if level:
            axes.axhline(level, color=colour, lw=1.2, ls=line, label=label)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("layer (0: what enters the first block)")
    low, high = min(part["epsilon"] for part in raw), max(part["epsilon"] for part in raw)
    name, table = style.short_name(str(record["source"])), record["embedding"]["epsilon"]
    axes.set_title(f"{name}: epsilon {low:.2f} to {high:.2f} in the layers, {table:.2f} in the embedding")


def _line(axes: Any, layers: Sequence[Mapping[str, Any]], key: str, colour: str, marker: str, label: str) -> None:
    known = [(layer["layer"], layer[key]["epsilon"]) for layer in layers if layer[key]]
    if known:
        axes.plot(*zip(*known, strict=True), color=colour, marker=marker, label=label)
