"""Figures of `repcap compare` and `repcap track`: cosines of corresponding rows; epsilon and drift over steps."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from repcap.console import style
from repcap.errors import InputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw_rows(record: Mapping[str, Any], path: str | os.PathLike[str], formats: Sequence[str] = ()) -> list[Path]:
    """Draw a record of `repcap compare --json`: how many corresponding rows have which cosine.

    Raises
    ------
    InputError
        if the record has no corresponding rows (tied, or different widths).
    """
    rows = record.get("rows")
    if not rows:
        raise InputError(f"no corresponding rows to draw: {record.get('reason') or 'nothing was compared'}")
    edges, counts = np.asarray(rows["histogram"]["edges"]), np.asarray(rows["histogram"]["counts"])
    dim = record["a"]["dim"]
    with style.figure("page") as (drawn, axes):
        axes.stairs(counts, edges, fill=True, color=style.SKY, alpha=0.7, label="corresponding rows")
        axes.axvline(rows["mean"], color=style.BLUE, lw=1.2, label=f"mean {rows['mean']:.5f}")
        low = next(item["cosine"] for item in rows["quantiles"] if item["share"] == 0.05)
        axes.axvline(low, color=style.ORANGE, lw=1.2, ls="--", label=f"5 % quantile {low:.5f}")
        if edges[0] < 3.0 / math.sqrt(dim):
            axes.axvspan(-2.0 / math.sqrt(dim), 2.0 / math.sqrt(dim), color=style.GREY, alpha=0.15, lw=0)
            axes.axvline(math.nan, color=style.GREY, alpha=0.4, lw=6, label="random directions, ±2 std")
        axes.set_yscale("log")
        axes.set_ylim(bottom=0.7)
        axes.set_xlim(edges[0] - 0.02 * (1.0 - edges[0]), 1.0)
        axes.ticklabel_format(axis="x", useOffset=False)
        axes.set_xlabel("cosine of a row of a with the same row of b")
        axes.set_ylabel("rows")
        axes.set_title(f"{_short(record['a'])} against {_short(record['b'])}")
        axes.legend(loc="upper left")
        return style.save(drawn, path, formats)


def _short(side: Mapping[str, Any], most: int = 34) -> str:
    name = str(side["source"]).rstrip("/")
    name = name.rsplit("/", 1)[-1] if name.count("/") > 1 else name
    name = f"{name} {side['role'] if side.get('role') not in (None, 'matrix') else side['matrix']}"
    return name if len(name) <= most else "…" + name[len(name) - most + 1 :]


def draw_track(record: Mapping[str, Any], path: str | os.PathLike[str], formats: Sequence[str] = ()) -> list[Path]:
    """Draw a record of `repcap track --json`: epsilon over training steps, and how far the rows have turned."""
    points = record["points"]
    if not points:
        raise InputError("no checkpoint was measured: nothing to draw")
    steps, numbered = _steps(points)
    with style.figure("wide", 1, 2) as (drawn, (left, right)):
        _draw_epsilon(left, steps, points)
        for key, label, colour, marker in (
            ("to_first", "to the first", style.GREEN, "s"),
            ("to_previous", "to the one before", style.ORANGE, "^"),
        ):
            known = [(step, p[key]["mean"]) for step, p in zip(steps, points, strict=True) if p[key] is not None]
            if known:
                right.plot(*zip(*known, strict=True), color=colour, marker=marker, label=label)
        right.set_title("mean cosine of corresponding rows")
        right.legend()
        right.ticklabel_format(axis="y", useOffset=False)
        for axes in (left, right):
            axes.set_xlabel("training step" if numbered else "checkpoint")
            axes.xaxis.get_major_locator().set_params(integer=True)
        return style.save(drawn, path, formats)


def _draw_epsilon(axes: Axes, steps: Sequence[int], points: Sequence[Mapping[str, Any]]) -> None:
    values = np.array([point["epsilon"] for point in points])
    errors = np.array([1.96 * (point["epsilon_se"] or 0.0) for point in points])
    axes.errorbar(steps, values, errors, color=style.BLUE, marker="o", capsize=2, label="epsilon")
    null = points[0]["epsilon_null"]
    label = f"random directions, {null:.4f}"
    low, high = float((values - errors).min()), float((values + errors).max())
    span = max(high - low, 1e-3 * high)
    # An axis down to a far null would flatten what happens in the run.
    if low - 4 * span <= null <= high + 4 * span:
        axes.axhline(null, color=style.GREY, ls="--", lw=1, label=label)
    else:
        axes.plot([], [], color=style.GREY, ls="--", lw=1, label=f"{label}: {'below' if null < low else 'above'}")
        axes.set_ylim(low - 0.5 * span, high + 0.8 * span)
    axes.ticklabel_format(axis="y", useOffset=False)
    axes.set_title("epsilon ± 1.96 standard errors")
    axes.legend(loc="upper left")


def _steps(points: Sequence[Mapping[str, Any]]) -> tuple[list[int], bool]:
    steps = [point["step"] for point in points]
    if any(step is None for step in steps):
        return list(range(1, len(points) + 1)), False
    return steps, True
