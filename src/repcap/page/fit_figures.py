"""Figures of fitted laws: the data over k with the law of each d, and the residuals."""

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
    """One row of panels a law: data and law on the left, relative residuals over k/d on the right.

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
        law_panel(axes[row, 0], cells, found)
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


def law_panel(axes: Axes, table: PackingTable, found: Fit) -> None:
    """Cells as marks over k, coloured by d, and of up to six d the law as a line."""
    shades, norm = dimension_colours(table)
    some = table.epsilon > 0.0
    axes.scatter(table.k[some], table.epsilon[some], c=table.d[some], cmap=shades, norm=norm, s=9)
    every = np.unique(table.d)
    for d in every[np.unique(np.linspace(0, len(every) - 1, 6).round().astype(int))]:
        at = table.k[table.d == d]
        grid = np.geomspace(at.min(), at.max(), GRID)
        law = found.at(PackingTable(grid, np.full(GRID, d), np.zeros(GRID)))
        axes.plot(grid[law > 0.0], law[law > 0.0], color=shades(norm(d)), linewidth=1.0)
    axes.set(xscale="log", yscale="log", xlabel="k", ylabel="coherence ε: cells, law")
    axes.xaxis.set_minor_formatter(lambda value, position: "")
    ticks = np.geomspace(table.k.min(), table.k.max(), 4)
    axes.set_xticks(ticks, [f"{tick:.2g}" if tick < 100 else f"{float(f'{tick:.1e}'):,.0f}" for tick in ticks])
    axes.set_title(f"{found.law}: off by {found.mape:.1%} on average", fontsize=9)


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
