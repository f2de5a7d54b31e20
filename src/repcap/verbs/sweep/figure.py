"""Figures of a sweep: coherence over k/d, one panel a dimension, against bounds, constructions, laws and other data."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from repcap.console import style
from repcap.constructions.best import best_coherence
from repcap.errors import InputError
from repcap.laws import LAWS, curves, named
from repcap.laws.fitting.data import PackingTable, optimized_packing
from repcap.laws.fitting.least_squares import predict
from repcap.laws.limits.bounds import coherence_lower_bound

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from repcap.laws.fitting.fit import Fit
    from repcap.laws.law import Law

PANELS = 6
CURVE_POINTS = 60
_COLOURS = (style.GREY, style.ORANGE, style.PINK, style.GREEN, style.SKY)
"""Of the laws, in their order."""


def cells_of(records: Iterable[Mapping[str, Any]]) -> list[tuple[int, int, float]]:
    """(k, d, coherence) of pack records with k > d.

    Raises
    ------
    InputError
        if there is none.
    """
    cells = [(int(r["k"]), int(r["d"]), float(r["coherence"])) for r in records if r.get("coherence") is not None]
    cells = [cell for cell in cells if cell[0] > cell[1]]
    if not cells:
        raise InputError("no packings with k > d to draw: run repcap sweep first")
    return cells


def chosen_dimensions(cells: Sequence[tuple[int, int, float]], most: int = PANELS) -> list[int]:
    """Up to `most` dimensions, evenly spread over those in the cells."""
    all_d = sorted({d for _, d, _ in cells})
    picks = np.unique(np.linspace(0, len(all_d) - 1, min(most, len(all_d))).round().astype(int))
    return [all_d[pick] for pick in picks]


def draw_sweep(
    records: Iterable[Mapping[str, Any]],
    path: str | os.PathLike[str],
    fits: Sequence[Fit] = (),
    formats: Sequence[str] = (),
) -> list[Path]:
    """Draw a sweep's packings, and return the paths written.

    records: of kind `pack`. fits: laws fitted to them, drawn beside the published `ratio` and `full`.
    Cost: a few hundred evaluations of the bounds a panel.
    """
    cells = cells_of(records)
    dimensions = chosen_dimensions(cells)
    columns = min(2, len(dimensions))
    rows = math.ceil(len(dimensions) / columns)
    with style.figure((3.7 * columns + 0.4, 2.5 * rows + 0.7), rows, columns, squeeze=False) as (drawn, axes):
        flat = axes.ravel()
        for axis, d in zip(flat, dimensions, strict=False):
            _panel(axis, cells, d, fits)
        for axis in flat[len(dimensions) :]:
            axis.set_visible(False)
        # One legend for all panels, with every label once.
        found = {
            label: handle
            for axis in flat[: len(dimensions)]
            for handle, label in zip(*axis.get_legend_handles_labels(), strict=True)
        }
        drawn.legend(found.values(), found.keys(), loc="outside lower center", ncols=min(4, len(found)))
        return style.save(drawn, path, formats)


def _panel(axes: Axes, cells: Sequence[tuple[int, int, float]], d: int, fits: Sequence[Fit]) -> None:
    here = sorted((k, value) for k, width, value in cells if width == d)
    ks = np.array([k for k, _ in here], dtype=float)
    published = optimized_packing()
    same = (published.d == d) & (published.k > d) & (published.k <= 2.0 * ks.max())
    top = max(ks.max(), published.k[same].max() if same.any() else 0.0)
    curve = np.unique(np.geomspace(max(ks.min(), d + 1.0), top, CURVE_POINTS).round())
    _bounds(axes, curve, d)
    colours = dict(zip(LAWS, _COLOURS, strict=False))
    for law in (law for law, shown in curves() if shown.fitted):
        eps = _law(law, curve, d, law.reference)
        axes.plot(curve / d, eps, color=colours[law.name], linestyle=":", label=f"{law.name}, published constants")
    for fit in fits:
        eps = _law(named(fit.law), curve, d, fit.params)
        axes.plot(curve / d, eps, color=colours.get(fit.law, style.BLUE), label=f"{fit.law}, fitted here")
    if same.any():
        axes.plot(
            published.k[same] / d, published.epsilon[same], "x", color=style.VERMILION, label="published packings"
        )
    axes.plot(ks / d, [value for _, value in here], "o", color=style.BLUE, ms=3, label="packed here")
    axes.set_xscale("log")
    ticks = _ticks(curve[0] / d, curve[-1] / d)
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.minorticks_off()
    # A construction that does not reach so many lines has coherence 1: it may leave the panel.
    highest = max(eps.max(), *(value for _, value in here), *published.epsilon[same])
    axes.set(title=f"d = {d}", xlabel="k/d", ylabel="coherence", ylim=(0.0, 1.15 * highest))


def _ticks(low: float, high: float) -> list[float]:
    """Powers of two between the ends, every one or every second; the ends themselves where there is no room for two."""
    first, last = math.ceil(math.log2(low) - 1e-9), math.floor(math.log2(high) + 1e-9)
    step = 1 if last - first < 6 else 2
    ticks = [2.0**power for power in range(first, last + 1, step)]
    return ticks if len(ticks) > 1 else [round(low, 3), round(high, 3)]


def _law(law: Law, curve: Any, d: int, params: Mapping[str, float]) -> Any:
    return predict(law, PackingTable(curve, np.full(curve.size, float(d)), np.zeros(curve.size)), params)


def _bounds(axes: Axes, curve: Any, d: int) -> None:
    x = curve / d
    low = [coherence_lower_bound(int(k), d).value for k in curve]
    axes.fill_between(x, 0.0, low, color=style.GREY, alpha=0.18, linewidth=0)
    axes.plot(x, low, color=style.GREY, label="proven lower bound")
    built = [best_coherence(int(k), d).coherence for k in curve]
    axes.step(x, built, color="black", linewidth=1.0, where="pre", linestyle="--", label="explicit constructions")
