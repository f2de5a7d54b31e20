"""Heat maps of the weights that read from and write to the residual stream: block by block, part by part."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from repcap.console import style
from repcap.errors import InputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def draw_probes(record: Mapping[str, Any], path: str | os.PathLike[str], formats: Sequence[str] = ()) -> list[Path]:
    """Draw a record of `repcap probes --json`: ratio to random directions, and largest |cosine| with the embedding.

    Raises
    ------
    InputError
        if the record has no parts.
    """
    parts = record["parts"]
    if not parts:
        raise InputError("the record has no parts: nothing to draw")
    names = list(dict.fromkeys(part["part"] for part in parts))
    layers = sorted({part["layer"] for part in parts})
    ratio, cosine = (np.full((len(layers), len(names)), np.nan) for _ in range(2))
    for part in parts:
        at = layers.index(part["layer"]), names.index(part["part"])
        if part.get("epsilon_ratio") is not None:
            ratio[at] = part["epsilon_ratio"]
        if part["aligned"]:
            cosine[at] = part["aligned"]["largest"]
    maps = [(ratio, "epsilon / that of random directions", "viridis", np.nanmin(ratio, initial=1.0))]
    if not np.isnan(cosine).all():
        maps.append((cosine, "largest |cosine| with a token", "magma", 0.0))
    size = (3.6 * len(maps), max(2.7, 0.14 * len(layers) + 1.2))
    with style.figure(size, 1, len(maps), squeeze=False) as (drawn, grid):
        for axes, (values, title, colours, least) in zip(grid[0], maps, strict=True):
            _map(drawn, axes, values, names, layers, colours, least)
            axes.set_title(title)
        drawn.suptitle(style.short_name(str(record["source"])), fontsize=10, x=0.01, ha="left")
        return style.save(drawn, path, formats)


def _map(
    drawn: Figure,
    axes: Axes,
    values: np.ndarray,
    names: Sequence[str],
    layers: Sequence[int],
    colours: str,
    least: float,
) -> None:
    image = axes.imshow(values, aspect="auto", cmap=colours, vmin=least, interpolation="nearest")
    axes.set_xticks(range(len(names)), names, rotation=45 if max(map(len, names)) > 5 else 0)
    step = max(1, len(layers) // 10)
    axes.set_yticks(range(0, len(layers), step), [str(layer) for layer in layers[::step]])
    axes.set_ylabel("block")
    axes.grid(False)
    drawn.colorbar(image, ax=axes, aspect=40)
