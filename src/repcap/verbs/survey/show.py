"""What the terminal shows of a survey, and of the trend in one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.table import Table

from repcap.console.bracket_view import bracket_words
from repcap.console.common import cell, new_table, note, stdout
from repcap.verbs.survey.trend import GroupTrend, Trend, WidthTrend


def model_table(results: list[Any]) -> Table:
    """Measurements, one a row."""
    table = new_table(
        None,
        "Model",
        "Matrix",
        ">Rows",
        ">d",
        ">epsilon",
        ">times\nrandom",
        "Class",
        ">log10 k, at\nleast to most",
        "Tied",
    )
    for result in results:
        record = result.record
        estimate = "~" if record.get("estimate") else ""
        table.add_row(
            cell(record["name"]),
            cell(record.get("role") or record["matrix"]),
            str(record.get("count") or ""),
            str(record["dim"]),
            "" if record["epsilon"] is None else f"{estimate}{record['epsilon']:.5f}",
            "" if record["epsilon_ratio"] is None else f"{record['epsilon_ratio']:.3f}",
            record["class"],
            _bracket(record),
            {True: "yes", False: "no"}.get(record.get("tied"), ""),
        )
    return table


def _bracket(record: dict[str, Any]) -> str:
    """The bracket of k; records of schema 1 name its ends otherwise."""
    capacity = record.get("capacity")
    return bracket_words(capacity) if capacity and "explicit" in capacity else "-"


def show_trend(found: Trend) -> None:
    """Print the trend, and what it hangs on."""
    console = stdout()
    console.print(_trend_table(f"Trend with d in {found.source}", found.groups))
    if found.without:
        console.print()
        console.print(_trend_table(f"Without {', '.join(found.without)}", found.groups_without))
    console.print()
    pairs = [found.class_by_width, *(item for item in found.tying if any(item.sizes))]
    table = new_table("Groups compared", "Quantity", "Groups", ">n", ">medians", ">p")
    for item in pairs:
        table.add_row(
            {"ratio": "times random"}.get(item.quantity, item.quantity),
            " / ".join(item.groups),
            " / ".join(str(size) for size in item.sizes),
            " / ".join("-" if value is None else f"{value:.4g}" for value in item.medians),
            _p(item.p),
        )
    console.print(table)
    if any(one.n for one in found.pairs):
        console.print()
        console.print(_pairs_table(found.pairs))
    for group in found.groups:
        if group.hangs_on and group.ratio:
            name, rho = group.hangs_on
            note(f"{group.group}: without {name}, rho of times random is {rho:+.2f} instead of {group.ratio.rho:+.2f}")
        if group.alike:
            note(f"{group.group}: {group.alike} of {group.n} models have the d and epsilon of another one")
    if not any(any(item.sizes) for item in found.tying):
        note("tied against untied: not known for these models")


def _pairs_table(pairs: Sequence[WidthTrend]) -> Table:
    table = new_table("Of all pairs, over d", "Quantity", ">n", ">rho", ">p", ">slope", "95 %", ">random")
    for one in pairs:
        known = ["-"] * 4
        if one.rank is not None and one.slope is not None:
            rank, slope = one.rank, one.slope
            known = [f"{rank.rho:+.3f}", _p(rank.p), f"{slope.slope:+.2f}", f"{slope.low:+.2f}..{slope.high:+.2f}"]
        table.add_row(one.quantity, str(one.n), *known, f"{one.random:+.0f}" if one.random else "0")
    return table


def _p(value: float | None) -> str:
    return "-" if value is None else f"{value:.2g}".replace("e-0", "e-")


def _trend_table(title: str, groups: tuple[GroupTrend, ...]) -> Table:
    heads = (">n", ">rho eps", ">p", ">rho times\nrandom", ">p", ">slope", "95 %", ">p -0.5")
    table = new_table(None, "Class", *heads)
    table.title = cell(title)
    for group in groups:
        if group.epsilon is None or group.ratio is None or group.slope is None:
            table.add_row(group.group, str(group.n), *["-"] * 7)
            continue
        table.add_row(
            group.group,
            str(group.n),
            f"{group.epsilon.rho:+.3f}",
            _p(group.epsilon.p),
            f"{group.ratio.rho:+.3f}",
            _p(group.ratio.p),
            f"{group.slope.slope:+.2f}",
            f"{group.slope.low:+.2f}..{group.slope.high:+.2f}",
            _p(group.slope_p),
        )
    return table
