"""Publication figures of many models: records in, PNG, SVG and PDF files out. How they look is in style.py.

Each function takes records (the dicts of `repcap measure --json`), a path and formats, and returns the paths written;
without formats the suffix of the path chooses one. Needs the extra `plots` (matplotlib).
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from repcap.console import style
from repcap.errors import InputError
from repcap.numerics import CLASS_HIGH, CLASS_LOW
from repcap.page.families import looks
from repcap.page.page_rows import Limit, Row, to_rows
from repcap.page.records import Record

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_DISTRIBUTIONS = 8
"""Curves that one figure can tell apart."""

MOST_BINS = 320
"""Bins of a drawn distribution: more than a printed column resolves only draws the noise of the tails."""


def epsilon_over_d(
    records: Iterable[Record], path: str | os.PathLike[str], formats: Sequence[str] = ("png", "svg", "pdf")
) -> list[Path]:
    """epsilon against d_model, all models beside class low alone, with 2/sqrt(d), the value of random directions.

    Both axes are logarithmic on the left; on the right epsilon is linear, so that single models can be told apart.

    Raises
    ------
    InputError
        if no record has a defined epsilon.
    """
    rows = _rows_or_error(records)
    look = looks(row.family for row in rows)
    low = [row for row in rows if row.klass == "low"]
    panels = [("all models", rows), ("class low", low)] if 0 < len(low) < len(rows) else [("all models", rows)]
    with style.figure("wide" if len(panels) == 2 else "page", 1, len(panels), squeeze=False) as (drawn, grid):
        for axes, (title, shown) in zip(grid[0], panels, strict=True):
            _scatter(axes, shown, look)
            axes.set_title(f"{title} (n = {len(shown)})")
            axes.set_ylabel(f"ε = mean + {rows[0].z:g} std of the cosines")
        _class_borders(grid[0][0])
        hidden = sum(row.epsilon <= 0 for row in rows)
        if hidden < len(rows):
            grid[0][0].set_yscale("log")
            _plain_decades(grid[0][0])
            if hidden:
                grid[0][0].set_title(f"all models (n = {len(rows)}, {hidden} with ε ≤ 0 not drawn)")
        handles, labels = grid[0][0].get_legend_handles_labels()
        drawn.legend(handles, labels, loc="outside right center", handletextpad=0.4, labelspacing=0.35)
        return style.save(drawn, path, formats)


def _scatter(axes: Axes, rows: Sequence[Row], look: dict[str, Any]) -> None:
    ds = [row.d for row in rows]
    ends = (min(ds) / 1.25, max(ds) * 1.25)
    grid = [ends[0] * (ends[1] / ends[0]) ** (step / 100) for step in range(101)]
    z = rows[0].z
    axes.plot(grid, [z / math.sqrt(d) for d in grid], color="black", lw=1, ls="--", label=f"random: {z:g}/√d")
    for family, (colour, marker) in look.items():
        mine = [row for row in rows if row.family == family]
        ds_mine, epsilons = [row.d for row in mine], [row.epsilon for row in mine]
        axes.plot(ds_mine, epsilons, marker, color=colour, label=family, alpha=0.9, mec="black", mew=0.4)
    axes.set_xscale("log", base=2)
    axes.set_xlim(*ends)
    ticks = [2**power for power in range(5, 18) if ends[0] <= 2**power <= ends[1]]
    axes.set_xticks(ticks, [str(tick) for tick in ticks])
    axes.minorticks_off()
    axes.set_xlabel("d_model")


def _class_borders(axes: Axes) -> None:
    for border, text in ((CLASS_HIGH, "high"), (CLASS_LOW, "low")):
        axes.axhline(border, color=style.GREY, lw=0.7)
        above = text == "high"
        axes.annotate(
            f"class {text}",
            (1, border),
            xycoords=("axes fraction", "data"),
            xytext=(-2, 2 if above else -2),
            textcoords="offset points",
            ha="right",
            va="bottom" if above else "top",
            fontsize=7,
            color=style.GREY,
        )


def _plain_decades(axes: Axes) -> None:
    """1, 2 and 5 in each decade as plain numbers: an axis of a factor of twenty has too few powers of ten."""
    low, high = axes.get_ylim()
    ticks = [lead * 10.0**power for power in range(-4, 2) for lead in (1, 2, 5)]
    ticks = [tick for tick in ticks if low <= tick <= high]
    if len(ticks) < 3:  # a narrow range: evenly spaced round numbers
        from matplotlib.ticker import MaxNLocator

        ticks = [tick for tick in MaxNLocator(5).tick_values(low, high) if low <= tick <= high]
    axes.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.set_yticks([], minor=True)


def capacity_bracket(
    records: Iterable[Record],
    path: str | os.PathLike[str],
    formats: Sequence[str] = ("png", "svg", "pdf"),
    *,
    indeterminate: bool = False,
) -> list[Path]:
    """The capacity bracket of each model: what is proven to exist, the fitted law, the proven upper bound (log10 k).

    Models with epsilon >= 0.1 are left out, because the published law is called indeterminate there;
    `indeterminate=True` draws them too, in grey.

    Raises
    ------
    InputError
        if no model is left to draw.
    """
    rows = [row for row in _rows_or_error(records) if row.law and (indeterminate or row.epsilon < CLASS_LOW)]
    if not rows:
        raise InputError("no model has epsilon below 0.1, where a capacity is determinate; ask for indeterminate ones")
    rows.sort(key=lambda row: (_log10(row.law), row.label), reverse=True)
    with style.figure((7.2, 1.1 + 0.165 * len(rows))) as (drawn, axes):
        for place, row in enumerate(rows):
            _range_bar(axes, place, row)
        axes.set_yticks(range(len(rows)), [row.label for row in rows], fontsize=7.5)
        axes.set_ylim(len(rows) - 0.4, -0.6)
        axes.grid(axis="y", visible=False)
        if indeterminate:
            axes.set_xscale("log")
        axes.set_xlabel("log₁₀ of the number of directions k at coherence ε")
        handles, labels = axes.get_legend_handles_labels()
        first = dict(zip(labels, handles, strict=True))
        drawn.legend(first.values(), first.keys(), loc="outside upper center", ncols=4, columnspacing=1.0, fontsize=7)
        return style.save(drawn, path, formats)


def _log10(limit: Limit | None) -> float:
    return limit.log10_k if limit is not None and limit.log10_k is not None else math.nan


def _range_bar(axes: Axes, place: int, row: Row) -> None:
    sure = row.epsilon < CLASS_LOW
    low, high = _log10(row.at_least), _log10(row.upper)
    axes.plot([low, high], [place, place], color=style.SKY if sure else "0.8", lw=3, alpha=0.55, solid_capstyle="butt")
    for limit, marker, colour, label in (
        (row.explicit, "|", style.BLUE, "explicit set (proven)"),
        (row.exists, ".", style.GREEN, "random coding (proven to exist)"),
        (row.law, "D", style.VERMILION, "law fitted to packings"),
        (row.upper, "|", "black", "upper bound (proven)"),
    ):
        axes.plot(
            [_log10(limit)], [place], marker, color=colour if sure else style.GREY, label=label if sure else None,
            ms=3.6 if marker == "D" else 7, mew=1.6 if marker == "|" else 0.8,
        )  # fmt: skip


def similarity_distributions(
    records: Iterable[Record],
    path: str | os.PathLike[str],
    formats: Sequence[str] = ("png", "svg", "pdf"),
    *,
    first: bool = False,
) -> list[Path]:
    """Distributions of pairwise cosines of several models: the full range, and zoomed on the bulk around zero.

    The full panel has a logarithmic density, which shows the tails; the zoomed one a linear density. Short vertical
    strokes mark each model's epsilon. `first`: of too many models draw the first, instead of refusing.

    Raises
    ------
    InputError
        if no record holds a histogram, or more do than one figure can tell apart.
    """
    rows = [row for row in _rows_or_error(records) if row.histogram][: MOST_DISTRIBUTIONS if first else None]
    if not rows:
        raise InputError("no record holds a histogram of cosines; repcap pairs SOURCE --json writes one")
    if len(rows) > MOST_DISTRIBUTIONS:
        raise InputError(f"{len(rows)} distributions are too many for one figure; choose at most {MOST_DISTRIBUTIONS}")
    with style.figure("wide", 1, 2) as (drawn, (full, zoomed)):
        for row, colour in zip(rows, style.CYCLE, strict=False):
            for axes in (full, zoomed):
                _distribution(axes, row, colour)
        full.set_yscale("log")
        full.set_title("full range")
        zoomed.set_title("zoomed on the bulk")
        zoomed.set_xlim(*_bulk(rows))
        zoomed.set_ylim(bottom=0)
        full.locator_params(axis="x", nbins=5)
        for axes in (full, zoomed):
            axes.set_xlabel("cosine of a pair of rows")
        full.set_ylabel("probability density")
        handles, labels = full.get_legend_handles_labels()
        drawn.legend(handles, labels, loc="outside lower center", ncols=min(4, len(labels)))
        return style.save(drawn, path, formats)


def _distribution(axes: Axes, row: Row, colour: str) -> None:
    assert row.histogram is not None
    drawn = row.histogram.coarser(MOST_BINS)
    axes.stairs(drawn.density, drawn.edges, color=colour, lw=1.2, label=row.label)
    axes.axvline(row.epsilon, ymin=0, ymax=0.06, color=colour, lw=1.6)


def _bulk(rows: Sequence[Row]) -> tuple[float, float]:
    """The interval that holds all but 0.2 % of each model's pairs, and every epsilon."""
    ends = []
    for row in rows:
        assert row.histogram is not None
        total, seen = sum(row.histogram.counts), 0.0
        inside = []
        for count, left, right in zip(
            row.histogram.counts, row.histogram.edges[:-1], row.histogram.edges[1:], strict=True
        ):
            if seen + count > 0.001 * total and seen < 0.999 * total:
                inside += [left, right]
            seen += count
        ends += [min(inside), max(inside), row.epsilon]
    margin = 0.03 * (max(ends) - min(ends))
    return min(ends) - margin, max(ends) + margin


def _rows_or_error(records: Iterable[Record]) -> list[Row]:
    rows, skipped = to_rows(records)
    if not rows:
        raise InputError(f"nothing to draw: no record has a defined epsilon ({len(skipped)} left out)")
    return rows
