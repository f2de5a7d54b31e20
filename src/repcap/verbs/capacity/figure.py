"""The figure of `repcap capacity --plot`: log10 k over epsilon, a panel a dimension."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import TYPE_CHECKING, Any

import numpy as np

from repcap.console import style
from repcap.constructions.best import best_construction
from repcap.domain import Array, check_eps, scalar_d
from repcap.errors import DomainError, InputError
from repcap.laws import curves as laws
from repcap.laws import law_log_k
from repcap.laws.fitting.data import published_models
from repcap.laws.limits.bounds import upper_bound
from repcap.laws.limits.existence import gilbert_varshamov
from repcap.numerics import LN10

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_PANELS = 9
POINTS = 240
"""Values of epsilon along a curve."""
_LINES = ((style.VERMILION, "-"), (style.ORANGE, "--"), (style.BLUE, "-."), (style.SKY, (0, (1, 1))))
"""Colour and dashes of the laws, the last law first."""


def default_range(d: int) -> tuple[float, float]:
    """From a half to six times epsilon of random directions, 2/sqrt(d), and not above 0.9."""
    null = 2.0 / math.sqrt(d)
    return min(0.5 * null, 0.1), min(6.0 * null, 0.9)


def curves(d: int, eps: Array) -> dict[str, Array]:
    """log10 k at every eps (ascending), each shape (len(eps),): every curve of the laws, explicit,
    exists, lower (the better of the last two) and upper."""
    found = {
        **{key: np.asarray(value) / LN10 for key, value in law_log_k(d, eps).items()},
        "explicit": np.array([best_construction(d, float(e)).log10_k for e in eps]),
        "exists": np.asarray(gilbert_varshamov(d, eps)),
        "upper": np.array([upper_bound(d, float(e)).log10_k for e in eps]),
    }
    found["lower"] = np.maximum(found["explicit"], found["exists"])
    return found


def draw(
    record: Mapping[str, Any] | Sequence[Mapping[str, Any]],
    path: str | os.PathLike[str] | None = None,
    *,
    ax: Axes | None = None,
    eps: tuple[float, float] | None = None,
) -> Any:
    """Draw log10 k over epsilon for the d of a record, or of each of several: a panel a dimension.

    Laws are lines, the explicit sets steps, what lies between the proven limits a band. `eps` is the range of
    epsilon, else each panel's own (`default_range`). About a tenth of a second a panel, and matplotlib's start.

    Returns
    -------
    list of Path or Axes
        the paths written, or what was drawn into.

    Raises
    ------
    InputError
        if there is no dimension, or there are more than 9, or more than one for `ax`.
    DomainError
        if a dimension is not a whole number >= 1 or `eps` is no rising pair in (0, 1).
    MissingExtraError
        if matplotlib is not installed.
    """
    records = [record] if isinstance(record, Mapping) else record
    dims = [scalar_d(one["d"]) for one in records if one.get("d") is not None]
    if not 1 <= len(dims) <= (MOST_PANELS if ax is None else 1):
        raise InputError(f"{len(dims)} dimensions to draw: give 1 to {MOST_PANELS if ax is None else 1}")
    if eps is not None and not float(check_eps(eps[0])) < float(check_eps(eps[1])):
        raise DomainError(f"epsilon from {eps[0]} to {eps[1]}: the range must rise")
    if ax is not None:
        _panel(ax, dims[0], eps or default_range(dims[0]))
        ax.legend()
        return ax
    columns = min(len(dims), 3)
    rows = -(-len(dims) // columns)
    size = "page" if rows == 1 else "tall"
    with style.figure(size, rows, columns, squeeze=False) as (drawn, axes):
        panels = list(np.ravel(axes))
        for panel, d in zip(panels, dims, strict=False):
            _panel(panel, d, eps or default_range(d), small=len(dims) > 1)
        for panel in panels[len(dims) :]:
            panel.set_visible(False)
        handles, labels = panels[0].get_legend_handles_labels()
        drawn.legend(handles, labels, loc="outside lower center", ncols=4)
        return panels[0] if path is None else style.save(drawn, path)


def _panel(panel: Any, d: int, eps: tuple[float, float], small: bool = False) -> None:
    grid = np.linspace(*eps, POINTS)
    found = curves(d, grid)
    band = panel.fill_between(grid, found["lower"], found["upper"], color=style.GREY, alpha=0.18, linewidth=0)
    band.set_label("between proven limits")
    panel.plot(grid, found["upper"], color=style.GREY, linewidth=1.0, label="proven upper bound")
    panel.step(grid, found["explicit"], where="post", color=style.GREEN, label="explicit sets")
    panel.plot(grid, found["exists"], color=style.GREEN, linestyle=":", label="random coding exists")
    for (_, curve), (colour, dash) in zip(reversed(list(laws())), cycle(_LINES), strict=False):
        panel.plot(grid, found[curve.key], color=colour, linestyle=dash, label=curve.label)
    null = 2.0 / math.sqrt(d)
    if eps[0] <= null <= eps[1]:
        panel.axvline(null, color="black", linewidth=0.6, alpha=0.5)
        panel.annotate(
            "random: 2/√d", (null, 1.0), xycoords=("data", "axes fraction"), xytext=(3, -9), textcoords="offset points"
        )
    ahead = float(np.max(found["explicit"] - found["full"]))
    finding = ""
    if not small:
        _mark_model(panel, d, eps)
        finding = f": explicit sets hold up to $10^{{{ahead:.0f}}}$ times what the law full allows" if ahead > 1 else ""
    panel.set(title=f"d = {d}{finding}", xlabel="ε, accepted |cosine|", ylabel="log₁₀ k", xlim=eps)
    panel.set_ylim(bottom=0.0)


def _mark_model(panel: Any, d: int, eps: tuple[float, float]) -> None:
    """Of the published models of this width the first in range: what is proven at its epsilon, as an upright bar.

    Its words stand to the left of the bar: a model too far to the left has no room for them.
    """
    left = eps[0] + 0.2 * (eps[1] - eps[0])
    known = [one for one in published_models() if one.d_model == d and left < one.epsilon < eps[1]]
    if not known:
        return
    at, found = known[0].epsilon, curves(d, np.array([known[0].epsilon]))
    least, most = max(found["explicit"][0], found["exists"][0]), found["upper"][0]
    panel.plot([at, at], [least, most], color=style.VERMILION, linewidth=2.0, marker="_", markersize=7)
    text = f"{known[0].model}\nε {at:.3g}:\n$10^{{{least:.1f}}}$ to $10^{{{most:.1f}}}$"
    panel.annotate(text, (at, most), xytext=(-6, 6), textcoords="offset points", ha="right", va="bottom", fontsize=8)
