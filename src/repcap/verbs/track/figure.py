"""Figure of `repcap track`: epsilon and the drift of the rows over training steps."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from repcap.console import style
from repcap.errors import InputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw(record: Mapping[str, Any], path: str | os.PathLike[str] | None = None, *, ax: Axes | None = None) -> Any:
    """Draw a record of `repcap track --json`: epsilon over training steps, and how far the rows have turned.

    Into a file, into `ax` (epsilon alone), or into a new figure: see `style.draw_panels`.

    Raises
    ------
    InputError
        if no checkpoint was measured.
    """
    points = record["points"]
    if not points:
        raise InputError("no checkpoint was measured: nothing to draw")
    steps, numbered = _steps(points)

    def epsilon(axes: Axes) -> None:
        _draw_epsilon(axes, steps, points)
        _name_steps(axes, numbered)

    def drift(axes: Axes) -> None:
        _draw_drift(axes, steps, points)
        _name_steps(axes, numbered)

    return style.draw_panels((epsilon, drift), path, ax, size="wide")


def _name_steps(axes: Axes, numbered: bool) -> None:
    axes.set_xlabel("training step" if numbered else "checkpoint")
    axes.locator_params("x", steps=[1, 2, 2.5, 5, 10], integer=True)


def _draw_drift(axes: Axes, steps: Sequence[int], points: Sequence[Mapping[str, Any]]) -> None:
    for key, label, colour, marker in (
        ("to_first", "to the first", style.GREEN, "s"),
        ("to_previous", "to the one before", style.ORANGE, "^"),
        ("alignment", "embedding with unembedding", style.GREY, "v"),
    ):
        known = [(step, p[key]["mean"]) for step, p in zip(steps, points, strict=True) if p.get(key) is not None]
        if known:
            axes.plot(*zip(*known, strict=True), color=colour, marker=marker, label=label)
    axes.set_title("rows turned: mean cosine")
    axes.legend()
    axes.ticklabel_format(axis="y", useOffset=False)


def _draw_epsilon(axes: Axes, steps: Sequence[int], points: Sequence[Mapping[str, Any]]) -> None:
    values = np.array([point["epsilon"] for point in points])
    errors = np.array([1.96 * (point["epsilon_se"] or 0.0) for point in points])
    axes.errorbar(steps, values, errors, color=style.BLUE, marker="o", capsize=2, label="epsilon")
    heads = [(step, p["unembedding"]["epsilon"]) for step, p in zip(steps, points, strict=True) if p.get("unembedding")]
    if heads:
        axes.plot(*zip(*heads, strict=True), color=style.ORANGE, marker="x", label="of the unembedding")
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
    axes.set_title(f"epsilon from {values[0]:.4f} to {values[-1]:.4f}")
    axes.legend(loc="upper left")


def _steps(points: Sequence[Mapping[str, Any]]) -> tuple[list[int], bool]:
    steps = [point["step"] for point in points]
    if any(step is None for step in steps):
        return list(range(1, len(points) + 1)), False
    return steps, True
