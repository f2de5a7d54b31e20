"""Cosines of listed word pairs by kind, each pair a mark, with the epsilon line."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from repcap.errors import InputError
from repcap.report import style


def draw_word_pairs(record: Mapping[str, Any], path: str | os.PathLike[str], formats: Sequence[str] = ()) -> list[Path]:
    """Draw the `word_pairs` of a record of `repcap neighbours --json`.

    Raises
    ------
    InputError
        if the record holds no word pairs.
    """
    kinds = [kind for kind in record["word_pairs"] if kind["cosines"]]
    if not kinds:
        raise InputError("there are no word pairs to draw: ask for them with --word-pairs")
    with style.figure("page") as (drawn, axes):
        for row, (kind, colour, marker) in enumerate(zip(kinds, style.CYCLE, style.MARKERS, strict=False)):
            # In order of cosine, so that no label covers another.
            order = np.argsort(kind["cosines"], kind="stable")
            cosines = np.asarray(kind["cosines"])[order]
            heights = row + np.linspace(-0.36, 0.36, len(cosines)) if len(cosines) > 1 else np.array([float(row)])
            axes.plot(cosines, heights, marker, color=colour, mec="black", mew=0.4)
            axes.plot([kind["mean"]] * 2, [row - 0.4, row + 0.4], color=colour, lw=2.5)
            for (left, right), x, y in zip((kind["pairs"][i] for i in order), cosines, heights, strict=True):
                axes.annotate(f"{left} · {right}", (x, y), (4, -2.5), textcoords="offset points", fontsize=5.5)
        axes.axvline(record["epsilon"], color=style.VERMILION, lw=1.2)
        axes.annotate(
            f"epsilon {record['epsilon']:.3f}",
            (record["epsilon"], len(kinds) - 0.5),
            (3, -2),
            textcoords="offset points",
            color=style.VERMILION,
            fontsize=8,
        )
        axes.set_yticks(range(len(kinds)), [kind["kind"] for kind in kinds])
        axes.set_ylim(-0.55, len(kinds) - 0.45)
        axes.set_xlabel("cosine of the two tokens (bar: mean)")
        axes.grid(axis="y", visible=False)
        return style.save(drawn, path, formats)
