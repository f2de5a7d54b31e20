"""Heat maps of the weights that read from and write to the residual stream: block by block, part by part."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from repcap.console import style
from repcap.errors import InputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

CROWDED = 1.1
"""Times random directions: a part above it is counted in the title."""


def draw(record: Mapping[str, Any], path: str | os.PathLike[str] | None = None, *, ax: Axes | None = None) -> Any:
    """Draw a record of `repcap probes --json`: ratio to random directions, and largest |cosine| with the embedding.

    Into a file, into `ax` (the ratio), or into a new figure: see `style.draw_panels`.

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

    def of_ratio(axes: Axes) -> None:
        # Diverging around 1, equally far to both sides: white is what random directions have.
        far = max(2.0, float(np.nanmax(np.maximum(ratio, 1.0 / ratio), initial=2.0)))
        _map(axes, ratio, names, layers, "RdBu_r", 1.0 / far, norm="log", vmax=far)
        crowded = int((ratio > CROWDED).sum())
        axes.set_title(f"epsilon, times random: {crowded} of {np.isfinite(ratio).sum()} above {CROWDED:g}")

    def of_cosine(axes: Axes) -> None:
        _map(axes, cosine, names, layers, "magma", 0.0)
        axes.set_title(f"largest |cosine| with a token: up to {np.nanmax(cosine):.2f}")

    def finish(drawn: Figure, _panels: Sequence[Axes]) -> None:
        drawn.suptitle(style.short_name(str(record["source"])), fontsize=10, x=0.01, ha="left")

    panels = [of_ratio] if np.isnan(cosine).all() else [of_ratio, of_cosine]
    size = (3.6 * len(panels), max(2.7, 0.14 * len(layers) + 1.2))
    return style.draw_panels(panels, path, ax, size=size, finish=finish)


def _map(
    axes: Axes,
    values: np.ndarray,
    names: Sequence[str],
    layers: Sequence[int],
    colours: str,
    least: float,
    **scale: Any,
) -> None:
    image = axes.imshow(values, aspect="auto", cmap=colours, vmin=least, interpolation="nearest", **scale)
    axes.set_xticks(range(len(names)), names, rotation=45 if max(map(len, names)) > 5 else 0)
    step = max(1, len(layers) // 10)
    axes.set_yticks(range(0, len(layers), step), [str(layer) for layer in layers[::step]])
    axes.set_ylabel("block")
    axes.grid(False)
    bar = axes.figure.colorbar(image, ax=axes, aspect=40)
    for which in (bar.ax.yaxis.set_major_formatter, bar.ax.yaxis.set_minor_formatter):
        which(lambda value, _position: f"{value:.2g}")
