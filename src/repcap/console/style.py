"""How figures look, in one place: colours that stay apart for colour-blind readers, sizes, fonts, file formats."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from repcap.errors import InputError, MissingExtraError
from repcap.files import atomic_path
from repcap.text import legible

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's palette (2008): tells its colours apart under every common colour blindness.
BLUE, ORANGE, GREEN, PINK = "#0072B2", "#E69F00", "#009E73", "#CC79A7"
SKY, VERMILION, YELLOW, GREY = "#56B4E9", "#D55E00", "#F0E442", "#6E6E6E"
CYCLE = (BLUE, ORANGE, GREEN, PINK, VERMILION, SKY, GREY, YELLOW)
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")

CLASS_COLOURS = {"low": BLUE, "between": ORANGE, "high": VERMILION}

_RC: dict[str, Any] = {
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "axes.labelsize": 9,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "legend.fontsize": 8,
    "legend.frameon": False,
    "lines.linewidth": 1.5,
    "lines.markersize": 4.5,
    "font.size": 9,
    "figure.dpi": 120,
    "savefig.dpi": 200,
    "svg.fonttype": "none",
    "svg.hashsalt": "repcap",  # the same figure gives the same file
    "pdf.fonttype": 42,
}

SIZES = {"column": (3.5, 2.7), "page": (7.2, 4.2), "wide": (7.2, 2.9), "tall": (7.2, 6.4)}
"""Inches."""


@contextmanager
def figure(
    size: str | tuple[float, float] = "page", rows: int = 1, columns: int = 1, **options: Any
) -> Iterator[tuple[Figure, Any]]:
    """Yield (figure, axes) of matplotlib in the house style, without a window or global state.

    `size` is a name in SIZES or (width, height) in inches.

    Raises
    ------
    MissingExtraError
        if matplotlib is not installed.
    """
    try:
        import matplotlib as mpl
        from cycler import cycler
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtraError("drawing a figure", "plots") from error
    settings: Any = {**_RC, "axes.prop_cycle": cycler(color=list(CYCLE))}
    with mpl.rc_context(settings):
        drawn = Figure(figsize=SIZES[size] if isinstance(size, str) else size, layout="constrained")
        yield drawn, drawn.subplots(rows, columns, **options)


def draw_panels(
    panels: Sequence[Callable[[Axes], None]],
    path: str | os.PathLike[str] | None = None,
    ax: Axes | None = None,
    *,
    size: str | tuple[float, float] = "page",
    finish: Callable[[Figure, Sequence[Axes]], None] | None = None,
) -> Any:
    """Draw panels side by side: what `draw` of a verb's figure does, wherever it is to go.

    path: into this file; returns the paths written. ax: the first panel into these axes, which are returned. Neither:
    into a new figure, which is returned. finish: what the figure as a whole gets (title, common legend), not `ax`.
    """
    if ax is not None:
        panels[0](ax)
        if ax.get_legend() is None and ax.get_legend_handles_labels()[0]:
            ax.legend()
        return ax
    with figure(size, 1, len(panels), squeeze=False) as (drawn, ((*all_axes,),)):
        for panel, axes in zip(panels, all_axes, strict=True):
            panel(axes)
        if finish is not None:
            finish(drawn, all_axes)
        return drawn if path is None else save(drawn, path)


def save(drawn: Figure, path: str | os.PathLike[str], formats: Sequence[str] = ()) -> list[Path]:
    """Write a figure atomically and return the paths.

    With `formats` (`png`, `svg`, `pdf`) the suffix of `path` is replaced by each; without, it chooses the format.
    Call it inside the `with figure(...)` block, where the style is in force.
    """
    from matplotlib.text import Text

    for text in drawn.findobj(Text):
        text.set_text(legible(text.get_text()))  # the name of a file need not be UTF-8
    target = Path(path)
    suffixes = [f".{name}" for name in formats] or [target.suffix or ".png"]
    written = []
    for suffix in suffixes:
        if suffix not in (".png", ".svg", ".pdf"):
            raise InputError(f"cannot draw {target.with_suffix(suffix)}: use a name that ends in .png, .svg or .pdf")
        # No date in the file, so that the same figure gives the same bytes.
        metadata: dict[str, Any] = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(suffix, {})
        with atomic_path(target.with_suffix(suffix)) as temporary:
            drawn.savefig(temporary, format=suffix[1:], metadata=metadata)
        written.append(target.with_suffix(suffix))
    return written


def short_name(source: str, most: int = 40) -> str:
    """The telling part of a source for a title: the last part of a path or an address, cut in the middle if long."""
    name = source.rstrip("/").rsplit("/", 1)[-1] if source.count("/") > 1 else source
    return name if len(name) <= most else f"{name[: most // 2]}…{name[1 - most + most // 2 :]}"
