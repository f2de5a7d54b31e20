"""epsilon of the residual stream layer by layer, against the embedding's."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from repcap.console import style
from repcap.errors import InputError


def draw_latents(record: Mapping[str, Any], path: str | os.PathLike[str], formats: Sequence[str] = ()) -> list[Path]:
    """Draw a record of `repcap latents --json`: epsilon by layer on the left, the length of the states on the right.

    Raises
    ------
    InputError
        if the record has no layers.
    """
    layers = record["layers"]
    if not layers:
        raise InputError("the record has no layers: nothing to draw")
    at = [layer["layer"] for layer in layers]
    with style.figure("wide", 1, 2, width_ratios=(2, 1)) as (drawn, (left, right)):
        raw = [layer["raw"] for layer in layers]
        left.errorbar(
            at,
            [part["epsilon"] for part in raw],
            [1.96 * (part["epsilon_se"] or 0.0) for part in raw],
            color=style.BLUE,
            marker="o",
            capsize=2,
            label="residual stream",
        )
        _line(left, layers, "normed", style.ORANGE, "s", "after the next norm")
        centred = [(layer["layer"], layer["raw"]["centred"]) for layer in layers if layer["raw"]["centred"]]
        left.plot(
            [layer for layer, _ in centred],
            [part["epsilon"] for _, part in centred],
            color=style.GREEN,
            marker="^",
            label="without the mean state",
        )
        left.axhline(record["embedding"]["epsilon"], color=style.VERMILION, lw=1.2, label="embedding")
        if record["embedding"].get("epsilon_centred"):
            left.axhline(
                record["embedding"]["epsilon_centred"],
                color=style.VERMILION,
                lw=1.2,
                ls="-.",
                label="embedding, no mean",
            )
        left.axhline(record["epsilon_null"], color=style.GREY, lw=1, ls="--", label="random directions")
        left.set_ylim(bottom=0)
        left.set_xlabel("layer (0: what enters the first block)")
        left.set_title("epsilon, ± 1.96 standard errors")
        right.plot(
            at, [layer["median_norm"] for layer in layers], color=style.BLUE, marker="o", label="other positions"
        )
        right.plot(at, [layer["first_norm"] for layer in layers], color=style.PINK, marker="D", label="first position")
        right.set_yscale("log")
        right.set_xlabel("layer")
        right.set_title("median length of a state")
        right.legend()
        handles, labels = left.get_legend_handles_labels()
        drawn.legend(handles, labels, loc="outside lower center", ncols=3)
        return style.save(drawn, path, formats)


def _line(axes: Any, layers: Sequence[Mapping[str, Any]], key: str, colour: str, marker: str, label: str) -> None:
    known = [(layer["layer"], layer[key]["epsilon"]) for layer in layers if layer[key]]
    if known:
        axes.plot(*zip(*known, strict=True), color=colour, marker=marker, label=label)
