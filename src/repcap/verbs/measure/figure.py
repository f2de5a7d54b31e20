"""epsilon of the rows as they are and without what they share, beside random directions and the class borders."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from repcap.console import style
from repcap.numerics import CLASS_HIGH, CLASS_LOW

NAMES = {
    "all": "as stored",
    "distinct": "without repeats",
    "tokenizer": "the tokenizer's rows",
    "centred": "without the mean",
    "top 1": "without the strongest\ndirection",
}


def draw(record: Mapping[str, Any], path: str | os.PathLike[str] | None = None, *, ax: Any = None) -> Any:
    """Draw a record of `repcap measure --json`: into `path` (the files written are returned), or into `ax`."""
    if ax is not None:
        _into(record, ax)
        return ax
    with style.figure("wide") as (drawn, axes):
        _into(record, axes)
        written: list[Path] | Any = drawn if path is None else style.save(drawn, path)
    return written


def _into(record: Mapping[str, Any], ax: Any) -> None:
    rows = {"as stored": record["epsilon"]}
    for variant in record["variants"]:
        name = NAMES.get(variant["rows"], variant["rows"])
        rows.setdefault(f"{name} (sample)" if variant["sampled"] else name, variant["epsilon"])
    labels, values = list(rows), list(rows.values())
    colours = [style.CLASS_COLOURS[_class(value)] for value in values]
    ax.barh(range(len(values)), values, color=colours, height=0.6)
    ax.set_yticks(range(len(values)), labels)
    ax.invert_yaxis()
    ax.axvline(record["epsilon_null"], color=style.GREY, ls="--", lw=1.2, label="random directions")
    for border in (CLASS_LOW, CLASS_HIGH):
        ax.axvline(border, color=style.GREY, ls=":", lw=0.8, label="class borders" if border == CLASS_LOW else None)
    ax.legend(loc="lower right")
    ax.set_xlabel("epsilon = mean + z std of the cosines")
    ratio = record["epsilon_ratio"]
    times = "" if ratio is None else f", {ratio:.2g} times random directions"
    ax.set_title(
        f"{style.short_name(record['source'])}: epsilon {record['epsilon']:.3f}{times}",
    )


def _class(value: float) -> str:
    return "high" if value > CLASS_HIGH else "low" if value < CLASS_LOW else "between"
