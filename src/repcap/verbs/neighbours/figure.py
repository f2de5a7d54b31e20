"""Cosines of listed word pairs by kind, each pair a mark in its own row, with the epsilon line."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from repcap.console import style
from repcap.errors import InputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NAMED = 100
"""Rows up to which each pair is named: more names than that cannot be read."""


def draw(record: Mapping[str, Any], path: str | os.PathLike[str] | None = None, *, ax: Axes | None = None) -> Any:
    """Draw the `word_pairs` of a record of `repcap neighbours --json`: see `style.draw_panels`.

    Raises
    ------
    InputError
        if the record holds no word pairs.
    """
    kinds = [kind for kind in record["word_pairs"] if kind["cosines"]]
    if not kinds:
        what = "no word of the pairs is a token" if record["word_pairs"] else "ask for them with `word_pairs`"
        raise InputError(f"there are no word pairs to draw: {what}")
    rows = sum(len(kind["cosines"]) for kind in kinds) + len(kinds) - 1

    def panel(axes: Axes) -> None:
        _draw_kinds(axes, kinds, name_them=rows <= NAMED)
        axes.axvline(record["epsilon"], color="black", lw=1, ls="--", label=f"epsilon {record['epsilon']:.3f}")
        axes.set_xlabel("cosine of the two tokens (bar: mean of the kind)")
        near = [cosine for kind in kinds for cosine in kind["cosines"]]
        beyond = sum(cosine > record["epsilon"] for cosine in near)
        axes.set_title(
            f"{style.short_name(record['source'])}: {beyond} of {len(near)} word pairs are nearer than epsilon"
        )
        axes.tick_params(axis="y", length=0)

    def finish(drawn: Figure, panels: Sequence[Axes]) -> None:
        drawn.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)

    return style.draw_panels((panel,), path, ax, size=(7.2, 1.1 + 0.125 * min(max(rows, 12), NAMED)), finish=finish)


def _draw_kinds(axes: Axes, kinds: Sequence[Mapping[str, Any]], *, name_them: bool) -> None:
    """Each pair a mark in its own row, kind below kind, the nearest pair first."""
    names: list[tuple[int, str]] = []
    top = 0
    for kind, colour, marker in zip(kinds, style.CYCLE, style.MARKERS, strict=False):
        order = np.argsort(kind["cosines"], kind="stable")[::-1]
        heights = top - np.arange(len(order))
        label = f"{kind['kind']}, mean {kind['mean']:.2f}"
        cosines = np.asarray(kind["cosines"])[order]
        axes.plot([kind["mean"]] * 2, [heights[0] + 0.5, heights[-1] - 0.5], color=colour, lw=2)
        axes.plot(cosines, heights, marker, color=colour, mec="black", mew=0.4, label=label)
        names += [(int(at), " · ".join(kind["pairs"][i])) for at, i in zip(heights, order, strict=True)]
        top = int(heights[-1]) - 2
    if name_them:
        axes.set_yticks([at for at, _ in names], [name for _, name in names], fontsize=6.5)
    else:
        axes.set_yticks([])
    axes.set_ylim(top + 1, 1)
