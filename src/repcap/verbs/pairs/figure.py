"""The distribution of all pairwise cosines, full and on a log scale that shows the tail, against two models of it; and
what dimension random directions would need for such a tail.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from repcap.console import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def draw(record: Mapping[str, Any], path: str | os.PathLike[str] | None = None, *, ax: Axes | None = None) -> Any:
    """Draw a record of `repcap pairs --json`: density over cosine, with +-epsilon, the normal curve and the null.

    A third panel shows the tail dimension over alpha, a line for each gauge, where two shares or more have one.

    Into a file, into `ax` (the left panel), or into a new figure: see `style.draw_panels`.
    """
    edges, counts = np.asarray(record["histogram"]["edges"]), np.asarray(record["histogram"]["counts"], dtype=float)
    width = np.diff(edges)
    density = counts / counts.sum() / width
    middle = (edges[:-1] + edges[1:]) / 2.0

    def linear(axes: Axes) -> None:
        _curves(axes, record, edges, density)
        axes.set_ylabel("density")
        axes.set_xlim(*_span(middle, density, record["epsilon"]))
        axes.set_ylim(0, 1.15 * density.max())
        which = "sampled" if record.get("sampled") else "all"
        axes.set_title(f"{which} pairs: mean cosine {record['mean']:.3f}")

    def log(axes: Axes) -> None:
        _curves(axes, record, edges, density)
        axes.set_yscale("log")
        axes.set_ylim(0.5 / counts.sum() / width[0], 3 * density.max())
        axes.set_xlim(-1, 1)
        axes.set_title("the same on a log scale: the tails")

    def finish(drawn: Figure, panels: Sequence[Axes]) -> None:
        beyond = record["epsilon"] / record["epsilon_null"]
        name = f"{style.short_name(record['source'])}, {record['count']} rows"
        drawn.suptitle(
            f"{name}: epsilon {record['epsilon']:.3f}, {beyond:.2g} times random", x=0.01, ha="left", fontsize=10
        )
        drawn.legend(*panels[1].get_legend_handles_labels(), loc="outside lower center", ncols=4)

    def tail(axes: Axes) -> None:
        _tail_dimensions(axes, record["dim"], curves)

    curves = _tail_curves(record)
    panels = (linear, log, tail) if curves else (linear, log)
    return style.draw_panels(panels, path, ax, size=(10.4, 3.2) if curves else "wide", finish=finish)


def _tail_curves(record: Mapping[str, Any]) -> dict[str, list[tuple[float, float]]]:
    """Gauge -> (alpha, d_alpha), alpha falling; gauges with fewer than two are left out."""
    found = {
        part["gauge"]: sorted(
            ((point["alpha"], point["dim"]) for point in part["points"] if point["dim"] is not None), reverse=True
        )
        for part in record.get("tails", ())
    }
    return {gauge: points for gauge, points in found.items() if len(points) > 1}


def _tail_dimensions(axes: Axes, dim: int, curves: Mapping[str, Sequence[tuple[float, float]]]) -> None:
    for (gauge, points), colour, marker in zip(curves.items(), style.CYCLE, style.MARKERS, strict=False):
        axes.plot(*zip(*points, strict=True), color=colour, marker=marker, ms=4, label=gauge)
    axes.axhline(dim, color=style.GREY, lw=1, ls="--", label=f"random: d = {dim}")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(lambda value, _position: f"{value:g}")
    axes.yaxis.set_minor_formatter(lambda _value, _position: "")
    axes.invert_xaxis()
    axes.set_xlabel("share of pairs alpha")
    axes.set_ylabel("tail dimension")
    gauge, points = next(iter(curves.items()))
    axes.set_title(f"{gauge}: as in {points[0][1]:.3g} to {points[-1][1]:.3g} dimensions")
    axes.legend(fontsize=7, frameon=True, framealpha=0.85, edgecolor="none")


def _curves(axes: Axes, record: Mapping[str, Any], edges: np.ndarray, density: np.ndarray) -> None:
    """What both panels show."""
    middle = (edges[:-1] + edges[1:]) / 2.0
    std = max(record["std"], 1e-9)
    normal = np.exp(-0.5 * ((middle - record["mean"]) / std) ** 2) / (std * math.sqrt(2.0 * math.pi))
    null = _random_density(middle, record["dim"])
    axes.stairs(density, edges, fill=True, color=style.SKY, alpha=0.6, label="measured")
    axes.plot(middle, normal, color=style.BLUE, lw=1.2, label="normal, same mean and std")
    if null is not None:
        axes.plot(middle, null, color=style.GREY, lw=1.2, ls="--", label="random directions")
    for sign in (-1, 1):
        label = "±epsilon" if sign > 0 else None
        axes.axvline(sign * record["epsilon"], color=style.VERMILION, lw=1, label=label)
    axes.set_xlabel("cosine")


def _span(middle: np.ndarray, density: np.ndarray, epsilon: float) -> tuple[float, float]:
    seen = middle[density > 0.002 * density.max()]
    low, high = min(seen.min(), -abs(epsilon)), max(seen.max(), abs(epsilon))
    pad = 0.05 * (high - low)
    return max(-1.0, low - pad), min(1.0, high + pad)


def _random_density(cosine: np.ndarray, dim: int) -> np.ndarray | None:
    """Density of the cosine of random directions in R^d: proportional to (1 - c^2)^((d - 3)/2). None for d = 1."""
    if dim == 1:
        return None
    constant = math.lgamma(dim / 2.0) - math.lgamma((dim - 1) / 2.0) - 0.5 * math.log(math.pi)
    return np.asarray(np.exp(constant + (dim - 3) / 2.0 * np.log1p(-(np.clip(cosine, -0.999999, 0.999999) ** 2))))
