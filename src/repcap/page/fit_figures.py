"""Figures of fitted laws: the data over (k, d) with the law's surface, and the residuals."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from repcap.console import style
from repcap.laws.fitting.data import PackingTable
from repcap.laws.fitting.fit import Fit

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

GRID = 60


def draw_fit(
    table: PackingTable, fits: Sequence[Fit], path: str | os.PathLike[str], formats: Sequence[str] = ()
) -> list[Path]:
    """One row of panels a law: data and surface on the left, relative residuals over k/d on the right.

    Writes `path` (its suffix chooses the format, or `formats` do) and returns what was written.
    """
    rows = len(fits)
    with style.figure((7.2, 3.1 * rows), rows, 2, squeeze=False) as (drawn, axes):
        panels(drawn, axes, table, fits)
        return style.save(drawn, path, formats)


def panels(drawn: Figure, axes: Any, table: PackingTable, fits: Sequence[Fit]) -> None:
    """Fill axes of shape (fits, 2)."""
    for row, found in enumerate(fits):
        cells = cells_of(found, table)
        surface_panel(drawn, axes[row, 0], cells, found)
        residual_panel(axes[row, 1], cells, found)
    colour_bar(drawn, axes[:, 1], table)


def cells_of(found: Fit, table: PackingTable) -> PackingTable:
    """The cells of a table that a fit used."""
    return table if found.degenerate_included else table.take(~table.degenerate)


def dimension_colours(table: PackingTable) -> tuple[Any, Any]:
    """(colour map, norm) that colour a dimension by its logarithm, dark for small d; yellow is left out."""
    from matplotlib import colormaps
    from matplotlib.colors import ListedColormap, LogNorm

    shades = ListedColormap(colormaps["viridis"](np.linspace(0.0, 0.9, 256)))
    return shades, LogNorm(float(table.d.min()), max(float(table.d.max()), float(table.d.min()) * 1.01))


def colour_bar(drawn: Figure, axes: Any, table: PackingTable) -> None:
    """A bar that says which colour is which dimension."""
    from matplotlib.cm import ScalarMappable

    shades, norm = dimension_colours(table)
    bar = drawn.colorbar(ScalarMappable(norm=norm, cmap=shades), ax=axes, shrink=0.9, pad=0.02)
    ticks = np.unique(table.d)
    even = np.geomspace(ticks[0], ticks[-1], 6)
    ticks = np.unique([ticks[np.argmin(np.abs(np.log(ticks / place)))] for place in even])
    bar.set_ticks(ticks.tolist(), labels=[f"{tick:g}" for tick in ticks])
    bar.minorticks_off()
    bar.set_label("dimension d")


def surface_panel(drawn: Figure, flat: Axes, table: PackingTable, found: Fit) -> None:
    """Replace `flat` by a 3-d panel: cells as points, the law as a surface over log k and log d."""
    place = flat.get_subplotspec()
    flat.remove()
    axes: Any = drawn.add_subplot(place, projection="3d", computed_zorder=False)
    log_k = np.linspace(np.log10(table.k.min()), np.log10(table.k.max()), GRID)
    log_d = np.linspace(np.log10(table.d.min()), np.log10(table.d.max()), GRID)
    grid_k, grid_d = np.meshgrid(log_k, log_d)
    flat_table = PackingTable(10.0 ** grid_k.ravel(), 10.0 ** grid_d.ravel(), np.zeros(grid_k.size))
    height = found.at(flat_table).reshape(grid_k.shape)
    axes.plot_surface(grid_k, grid_d, height, color=style.SKY, alpha=0.45, linewidth=0, rstride=2, cstride=2)
    predicted = found.at(table)
    for k, d, seen, law in zip(np.log10(table.k), np.log10(table.d), table.epsilon, predicted, strict=True):
        axes.plot([k, k], [d, d], [seen, law], color=style.GREY, linewidth=0.5)
    axes.scatter(np.log10(table.k), np.log10(table.d), table.epsilon, s=6, color=style.VERMILION, depthshade=False)
    axes.view_init(elev=22, azim=40)
    for label, values, axis in (("k", table.k, axes.xaxis), ("d", table.d, axes.yaxis)):
        ticks = _nice(float(values.min()), float(values.max()))
        axis.set_ticks([np.log10(tick) for tick in ticks], labels=[f"{tick:g}" for tick in ticks])
        axis.set_label_text(label)
    axes.tick_params(labelsize=6.5, pad=-1)
    axes.set_box_aspect((1.0, 1.1, 0.85), zoom=0.85)
    axes.set_title(f"{found.law}: ε over k and d", fontsize=9)


def _nice(low: float, high: float) -> list[float]:
    """A few powers of two or ten between low and high, for a logarithmic axis."""
    for base, step in ((2.0, 1), (2.0, 2), (2.0, 3), (10.0, 1), (10.0, 2)):
        first, last = np.ceil(np.log(low) / np.log(base) - 1e-9), np.floor(np.log(high) / np.log(base) + 1e-9)
        ticks = [float(base**power) for power in np.arange(first, last + 1, step)]
        if 2 <= len(ticks) <= 5:
            return ticks
    return [low, high]


def residual_panel(axes: Axes, table: PackingTable, found: Fit) -> None:
    """Relative error of the law over k/d, coloured by d; what lies beyond the panel is counted in words."""
    predicted = found.at(table)
    some = table.epsilon > 0.0
    relative = 100.0 * (predicted[some] / table.epsilon[some] - 1.0)
    shades, norm = dimension_colours(table)
    reach = max(5.0, 1.1 * float(np.quantile(np.abs(relative), 0.98)))
    x, d = (table.k / table.d)[some], table.d[some]
    for inside, marker in (
        (np.abs(relative) <= reach, "o"),
        (relative > reach, "^"),
        (relative < -reach, "v"),
    ):
        if inside.any():
            clipped = np.clip(relative[inside], -reach, reach)
            axes.scatter(
                x[inside], clipped, c=d[inside], cmap=shades, norm=norm, s=9 if marker == "o" else 22, marker=marker
            )
    axes.axhline(0.0, color=style.GREY, linewidth=0.8)
    axes.set(xscale="log", xlabel="k/d", ylabel="law - data, % of data", ylim=(-1.08 * reach, 1.08 * reach))
    beyond = int((np.abs(relative) > reach).sum())
    frame = f", {beyond} off scale" if beyond else ""
    axes.set_title(f"R² {found.r2:.4f}, MAPE {found.mape:.1%}{frame}", fontsize=9)
