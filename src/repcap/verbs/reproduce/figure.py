"""Figures of the reproduction: the published data, the published laws on it, and what is proven."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from repcap.console import style
from repcap.laws.fitting.data import PackingTable, optimized_packing, random_packing
from repcap.laws.fitting.fit import Fit, fit
from repcap.page import fit_figures
from repcap.page import model_figures as figures
from repcap.page.records import published_records
from repcap.verbs.reproduce.fits import TRIALS, random_median
from repcap.verbs.reproduce.packings import explicit, lower_bounds

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

FORMATS = ("png", "svg")


class Drawing(NamedTuple):
    """A figure of the report."""

    name: str
    """File name without suffix."""
    title: str
    caption: str
    draw: Callable[[Path], list[Path]]
    group: str
    """The claims that it stands beside."""


def random_fit(path: Path) -> list[Path]:
    """`jl` on random vectors, and the parameter-free median beside it."""
    table = random_packing()
    found = fit(table, "jl", include_degenerate=True)
    exact = random_median(table, TRIALS)
    with style.figure((7.2, 3.0), 1, 3, width_ratios=(1.25, 1, 1)) as (drawn, (left, middle, right)):
        x = np.log(table.k) / table.d
        _cells(left, table, x, table.epsilon)
        line = np.geomspace(x.min(), x.max(), 50)
        left.plot(line, np.sqrt(found.params["C"] * line), color=style.VERMILION, zorder=0, label="ε = √(C ln k / d)")
        left.set(xscale="log", yscale="log", xlabel="ln k / d", ylabel="ε, least of 1000 draws")
        _ticks(left.yaxis, (0.05, 0.1, 0.2))
        _ticks(left.xaxis, (0.002, 0.005, 0.01, 0.02))
        left.set_title(f"jl, C = {found.params['C']:.3f}")
        left.legend(loc="upper left")
        _residuals(middle, table, found.predict(table.k, table.d), f"jl: MAPE {found.mape:.1%}")
        _residuals(right, table, exact, f"no fit: MAPE {np.mean(np.abs(exact / table.epsilon - 1)):.1%}")
        limit = max(abs(value) for axes in (middle, right) for value in axes.get_ylim())
        for axes in (middle, right):
            axes.set_ylim(-limit, limit)
            _ticks(axes.xaxis, (2000, 8000, 32000))
        right.set_ylabel("")
        fit_figures.colour_bar(drawn, right, table)
        return style.save(drawn, path, FORMATS)


def jl_against_ratio(path: Path) -> list[Path]:
    """The same cells over ln k / d and over ln(k/d) / d; a law that holds puts them on one line."""
    table = optimized_packing()
    inside = table.take(~table.degenerate)
    with style.figure((7.2, 3.1), 1, 3, width_ratios=(1.15, 1.15, 0.75)) as (drawn, (left, middle, right)):
        for axes, law, x in (
            (left, "jl", np.log(inside.k) / inside.d),
            (middle, "ratio", np.log(inside.k / inside.d) / inside.d),
        ):
            found = fit(table, law, include_degenerate=True)
            _cells(axes, inside, x, inside.epsilon)
            line = np.geomspace(x.min(), x.max(), 50)
            axes.plot(line, np.sqrt(found.params["C"] * line), color=style.VERMILION, zorder=0)
            axes.set(xscale="log", yscale="log", ylabel="ε of the packing")
            axes.set_xlabel("ln k / d" if law == "jl" else "ln(k/d) / d")
            axes.set_title(f"{law}, C = {found.params['C']:.3f}")
        left.plot(
            np.log(table.k[table.degenerate]) / table.d[table.degenerate], table.epsilon[table.degenerate],
            "x", color=style.GREY, label="k ≤ d: six cells",
        )  # fmt: skip
        left.legend(loc="lower right")
        fit_figures.colour_bar(drawn, middle, table)
        _error_bars(right, table)
        return style.save(drawn, path, FORMATS)


def _error_bars(axes: Axes, table: PackingTable) -> None:
    """MAPE of both laws with and without the six cells."""
    laws = ("jl", "ratio", "full")
    for shift, colour, degenerate, label in (
        (-0.2, style.GREY, True, "all cells"),
        (0.2, style.BLUE, False, "k > d"),
    ):
        heights = [100.0 * fit(table, law, include_degenerate=degenerate).mape for law in laws]
        bars = axes.bar(np.arange(3) + shift, heights, 0.38, color=colour, label=label)
        axes.bar_label(bars, [f"{height:.3g}" for height in heights], fontsize=6.5, padding=1)
    axes.set(yscale="log", ylim=(1, 4000), ylabel="MAPE, %")
    axes.set_xticks(range(3), laws)
    axes.grid(axis="x", visible=False)
    axes.set_title("error")
    axes.legend(loc="upper right", fontsize=7)


def full_fit(path: Path) -> list[Path]:
    """`full` as published: data with the law, and residuals."""
    table = optimized_packing()
    found: Fit = fit(table, "full")
    return fit_figures.draw_fit(table, [found], path, FORMATS)


def packings_against_bounds(path: Path) -> list[Path]:
    """Published packings and explicit sets, each over the proven lower bound on coherence."""
    table = optimized_packing()
    inside = table.take(~table.degenerate)
    bound = lower_bounds(inside)
    with style.figure((7.2, 3.1), 1, 2, sharey=True) as (drawn, (left, right)):
        x = inside.k / inside.d
        for axes, coherence, title in (
            (left, inside.epsilon, "published packings"),
            (right, explicit(inside), "explicit sets, no optimiser"),
        ):
            factor = coherence / bound
            _cells(axes, inside, x, factor)
            axes.axhline(1.0, color=style.VERMILION)
            axes.set(xscale="log", xlabel="k/d", title=f"{title}: median {np.median(factor):.2f}")
        left.set_ylabel("coherence / proven lower bound")
        left.annotate("nothing can lie below", (1.2, 1.0), xytext=(0, -10), textcoords="offset points", fontsize=7)
        left.set_ylim(0.85, None)
        fit_figures.colour_bar(drawn, right, table)
        return style.save(drawn, path, FORMATS)


def _cells(axes: Axes, table: PackingTable, x: Any, y: Any) -> None:
    shades, norm = fit_figures.dimension_colours(table)
    axes.scatter(x, y, c=table.d, cmap=shades, norm=norm, s=9)


def _residuals(axes: Axes, table: PackingTable, predicted: Any, title: str) -> None:
    _cells(axes, table, table.k, 100.0 * (predicted / table.epsilon - 1.0))
    axes.axhline(0.0, color=style.GREY, linewidth=0.8)
    axes.set(xscale="log", xlabel="k", ylabel="predicted - data, % of data", title=title)


def _ticks(axis: Axis, ticks: tuple[float, ...]) -> None:
    """Plain numbers at these places of a logarithmic axis and no others: it covers too little for powers of ten."""
    axis.set_ticks(ticks, labels=[f"{tick:g}" for tick in ticks])
    axis.set_ticks([], minor=True)


DRAWINGS: tuple[Drawing, ...] = (
    Drawing(
        "random_fit",
        "Random vectors",
        "Left: the published random packings over ln k / d with the fitted law. Middle: its residuals. Right: the "
        "median of the best of 1000 draws, computed from the area of a spherical cap without any fitted constant.",
        random_fit,
        "Random vectors",
    ),
    Drawing(
        "jl_against_ratio",
        "jl against ratio on optimised vectors",
        "Left and middle: the same 160 cells over the variable of each law; the line is the law. Six cells with k ≤ d "
        "(crosses) hold optimiser residue. Right: mean absolute percentage error with and without those six.",
        jl_against_ratio,
        "Optimised vectors",
    ),
    Drawing(
        "full_fit",
        "full on optimised vectors",
        "The four-constant law on the 160 cells with k > d: data and law (left), relative residuals (right). The "
        "residuals are not noise: they bend with k/d, which is what an extrapolation to k = 1e15 rests on.",
        full_fit,
        "Optimised vectors",
    ),
    Drawing(
        "packings_against_bounds",
        "Packings against proven bounds",
        "Coherence over the best proven lower bound (Welch, orthoplex, Levenshtein). The published packings are what a "
        "gradient optimiser reached; explicit sets of at least k lines are often better.",
        packings_against_bounds,
        "Packings and bounds",
    ),
    Drawing(
        "epsilon_over_d",
        "epsilon over d_model",
        "The 45 published models, and the value of random directions, 2/√d. All models lie above it.",
        lambda path: figures.epsilon_over_d(published_records(), path, FORMATS),
        "Models",
    ),
    Drawing(
        "capacity_bracket",
        "Capacity bracket by model",
        "The 31 models with epsilon < 0.1: between the best explicit set and the best proven upper bound anything is "
        "possible; the published capacity is one point, and lies to the left of the proven part.",
        lambda path: figures.capacity_bracket(published_records(), path, FORMATS),
        "Models",
    ),
)
