"""What the terminal shows of capacities."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from repcap.bracket.capacity import ENTRY_KEYS, Capacity
from repcap.console.common import new_table
from repcap.console.prose import prose
from repcap.laws import curves
from repcap.numerics import CLASS_LOW, format_power


def _power_of(k: float) -> str:
    return format_power(math.log10(k))


def parts(result: Capacity) -> Iterator[RenderableType]:
    yield Text(result.title, style="bold")
    yield _table(result)
    yield prose(result.reading)


_ORDER = {
    "k": ("upper", "explicit", "exists"),
    "epsilon": ("lower", "explicit", "exists", "random"),
    "d": ("lower", "explicit", "exists"),
}
_LABELS = {
    "upper": "at most",
    "lower": "proven lower bound",
    "explicit": "explicit set",
    "exists": "random coding",
    "random": "random lines",
}
_NOTES = {"exists": "proven to exist, not written down", "random": "median of one draw"}


def _table(result: Capacity) -> Table:
    solved, null = result.solved_for, result.epsilon_null
    columns = {"k": (">k", ">log10 k"), "epsilon": (">epsilon", ">times random"), "d": (">d",)}[solved]
    left = result.budget.left if result.budget is not None else {}
    table = new_table(None, "", *columns, *((">for features",) if left else ()), "from")
    laws = {curve.key: curve for _, curve in curves()}
    for name in (*_ORDER[solved], *reversed(laws)):
        law = laws.get(name)
        entry = result.laws.get(name) or result.bracket[name]
        source = law.note if law else _NOTES.get(name) or str(entry.get("name") or "")
        if name == "explicit" and solved == "k":
            source += f", coherence {entry['coherence']:.4g}"
        if law and law.published and solved == "k" and result.epsilon is not None and result.epsilon >= CLASS_LOW:
            source = "indeterminate, says the paper"
        cells = _cells(entry[ENTRY_KEYS[solved]], solved, null)
        if left:
            cells.append(format_power(left[name]))
        table.add_row(law.label if law else _LABELS[name], *cells, Text(source))
    return table


def _cells(value: float | None, solved: str, null: float | None) -> list[str]:
    if solved == "k" and value is not None:
        return [format_power(value), f"{value:.2f}"]
    if solved == "epsilon" and value is not None and null is not None:
        return [f"{value:.5g}", f"{value / null:.3g}"]
    return ["none" if value is None else f"{value:.1f}" if isinstance(value, float) else str(value)]


_SHORT = {
    "exists": ">coding",
    "explicit": ">explicit",
    "lower": ">lower",
    "upper": ">upper",
}
_MEANING = {
    "k": "log10 k. explicit, coding: that many lines exist. upper: no more are possible. {laws}: fitted laws.",
    "epsilon": "epsilon. explicit, coding: some set is as good. lower: none is better. {laws}: fitted laws.",
    "d": "dimensions. explicit, coding: that many are enough. lower: fewer are too few. {laws}: fitted laws.",
}


def parts_of_many(results: Sequence[Capacity]) -> Iterator[RenderableType]:
    """One row a point."""
    solved = results[0].solved_for
    laws = {curve.key: curve for _, curve in curves()}
    short = {**_SHORT, **{key: f">{curve.short}" for key, curve in laws.items()}}
    ends = [*laws, "exists", "explicit", "upper" if solved == "k" else "lower"]
    budget = any(result.budget is not None for result in results)
    first = {"k": ("d", "epsilon"), "epsilon": ("d", "k"), "d": ("k", "epsilon")}[solved]
    extra = (">V",) if budget else ()
    table = new_table(
        None, *(f">{'eps' if name == 'epsilon' else name}" for name in first), *extra, *(short[name] for name in ends)
    )
    form = {"k": "{:.2f}", "epsilon": "{:.4f}", "d": "{:.0f}"}[solved]
    for result in results:
        given = {"d": str(result.d), "epsilon": f"{result.epsilon or 0:.6g}", "k": _power_of(result.k or 1)}
        vocab = [str(result.budget.vocab)] if result.budget is not None else []
        entries = [result.laws.get(name) or result.bracket[name] for name in ends]
        numbers = [entry[ENTRY_KEYS[solved]] for entry in entries]
        cells = ["none" if number is None else form.format(number) for number in numbers]
        table.add_row(*(given[name] for name in first), *vocab, *cells)
    yield table
    names = ", ".join(dict.fromkeys(law.name for law, _ in curves()))
    yield prose(_MEANING[solved].format(laws=names))
