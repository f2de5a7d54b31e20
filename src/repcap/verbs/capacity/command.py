"""`repcap capacity`: the laws and the proven limits at points (d, epsilon), (d, k) or (k, epsilon)."""

from __future__ import annotations

import csv
import math
import sys
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from repcap.console import values
from repcap.console.common import JsonOption, new_table, note, print_json, stdout, warn
from repcap.errors import InputError
from repcap.laws import curves
from repcap.numerics import CLASS_LOW, format_power

if TYPE_CHECKING:
    from rich.table import Table

    from repcap.bracket.capacity import Capacity

MOST_POINTS = 10_000


def command(
    d: Annotated[str | None, typer.Option("--d", help="Dimensions.")] = None,
    eps: Annotated[str | None, typer.Option("--eps", help="Accepted |cosine|, between 0 and 1.")] = None,
    k: Annotated[str | None, typer.Option("--k", help="Vectors; with --vocab: features beside it.")] = None,
    vocab: Annotated[str | None, typer.Option("--vocab", help="Vocabulary V: it takes 2 V vectors.")] = None,
    tied: Annotated[bool, typer.Option("--tied", help="Embedding is unembedding: V takes V vectors.")] = False,
    plot: Annotated[Path | None, typer.Option("--plot", help="Draw log10 k over epsilon (png, svg, pdf).")] = None,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print the results as CSV.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Laws, explicit sets and proven bounds for near-orthogonal vectors.

    Give two of --d, --eps and --k. The third is answered by every law, and
    between what is proven to exist and what is proven impossible.
    --vocab beside --d or --eps stands for the k that the vocabulary takes.

    An option takes a number (4096, 1e6, 2^45), a comma list, or a range:
    A..B (11 values), A..B/N (N values), A..B:STEP, A..BxFACTOR.
    Several values give a table.

    repcap capacity --d 4096 --eps 0.0645 --vocab 32000
    repcap capacity --d 512..8192x2 --eps 0.05..0.1:0.01
    repcap capacity --k 1e6 --eps 0.06
    repcap capacity --d 64,4096 --plot out.png
    """
    if as_csv and as_json:
        raise InputError("give --json or --csv, not both")
    if plot is not None:
        _plot(plot, d, eps)
        if k is None and vocab is None and eps is None:
            return
    results = _results(d, eps, k, vocab, tied)
    if as_json:
        print_json(results[0].to_dict() if len(results) == 1 else [result.to_dict() for result in results])
    elif as_csv:
        _print_csv(results)
    elif len(results) == 1:
        _print_one(results[0])
    else:
        _print_many(results)


def _results(d: str | None, eps: str | None, k: str | None, vocab: str | None, tied: bool) -> list[Capacity]:
    from repcap.bracket.capacity import capacity

    axes: list[Sequence[Any]] = [
        values.numbers(d, "--d", whole=True),
        values.numbers(eps, "--eps"),
        values.numbers(k, "--k"),
        values.numbers(vocab, "--vocab", whole=True),
    ]
    given = [bool(axis) for axis in axes]
    if sum(given[:3]) == 3 or (sum(given[:3]) < 2 and not (given[3] and any(given[:2]))):
        raise InputError("give two of --d, --eps and --k (--vocab V stands for the k that a vocabulary takes)")
    if tied and not given[3]:
        raise InputError("--tied says how a vocabulary counts: give --vocab too")
    points = 1
    for axis in axes:
        points *= max(1, len(axis))
    if points > MOST_POINTS:
        raise InputError(f"{points} points, {MOST_POINTS} at most; take fewer values")
    dims, deviations, counts, vocabularies = (axis or [None] for axis in axes)
    return [
        capacity(d=a, eps=b, k=c, vocab=v, tied=tied) for a, b, c, v in product(dims, deviations, counts, vocabularies)
    ]


def _plot(path: Path, d: str | None, eps: str | None) -> None:
    from repcap.verbs.capacity.figure import capacity_figure

    dims = [int(value) for value in values.numbers(d, "--d", whole=True)]
    if not dims:
        raise InputError("--plot needs --d: a figure has one panel a dimension")
    given = values.numbers(eps, "--eps") if eps is not None and ".." in eps else []
    written = capacity_figure(dims, path, (min(given), max(given)) if given else None)
    note(f"wrote {', '.join(str(name) for name in written)}")


def _flat(value: Any, prefix: str = "") -> dict[str, Any]:
    if not isinstance(value, dict):
        return {prefix: "; ".join(value) if isinstance(value, list) else value}
    row: dict[str, Any] = {}
    for key, item in value.items():
        row |= _flat(item, f"{prefix}.{key}" if prefix else key)
    return row


def _print_csv(results: Sequence[Capacity]) -> None:
    rows = [_flat(result.to_dict()) for result in results]
    columns = list(dict.fromkeys(key for row in rows for key in row))
    writer = csv.DictWriter(sys.stdout, columns, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)


def _given(result: Capacity) -> str:
    words = []
    if result.k is not None:
        words.append(f"k = {_power_of(result.k)}")
    if result.d is not None:
        words.append(f"d = {result.d}")
    if result.epsilon is not None:
        ratio = result.epsilon_ratio
        words.append(f"epsilon = {result.epsilon:.6g}" + (f" = {ratio:.3g} x 2/sqrt(d)" if ratio else ""))
    if result.budget is not None:
        times = "" if result.budget.tied else "2 x "
        words.append(f"vocabulary takes {times}{result.budget.vocab} = {result.budget.needed}")
    return ", ".join(words)


def _power_of(k: float) -> str:
    return format_power(math.log10(k))


def _print_one(result: Capacity) -> None:
    console = stdout()
    console.print(_given(result), style="bold", markup=False, soft_wrap=True)
    console.print(_table_of_one(result))
    console.print()
    console.print(result.reading, markup=False, soft_wrap=False)
    for warning in result.warnings:
        warn(warning)


_KEYS = {"k": "log10_k", "epsilon": "epsilon", "d": "d"}
"""What was solved for -> the key of the entries of `laws` and `bracket`."""

_ORDER = {
    "k": ("upper", "construction", "gilbert_varshamov"),
    "epsilon": ("lower", "construction", "gilbert_varshamov", "random"),
    "d": ("lower", "construction", "gilbert_varshamov"),
}
_LABELS = {
    "upper": "proven upper bound",
    "lower": "proven lower bound",
    "construction": "explicit set",
    "gilbert_varshamov": "random coding",
    "random": "random lines",
}
_NOTES = {"gilbert_varshamov": "exists: Gilbert-Varshamov", "random": "median of one draw"}


def _table_of_one(result: Capacity) -> Table:
    solved, null = result.solved_for, result.epsilon_null
    columns = {"k": (">k", ">log10 k"), "epsilon": (">epsilon", ">x null"), "d": (">d",)}[solved]
    left = result.budget.left if result.budget is not None else {}
    table = new_table(None, "", *columns, *((">for features",) if left else ()), "from")
    laws = {curve.key: curve for _, curve in curves()}
    for name in (*_ORDER[solved], *reversed(laws)):
        law = laws.get(name)
        entry = result.laws.get(name) or result.bracket[name]
        source = law.note if law else _NOTES.get(name) or str(entry.get("name") or "")
        if name == "construction" and solved == "k":
            source += f", coherence {entry['coherence']:.4g}"
        if law and law.published and solved == "k" and result.epsilon is not None and result.epsilon >= CLASS_LOW:
            source = "indeterminate, says the paper"
        cells = _cells(entry[_KEYS[solved]], solved, null)
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
    "gilbert_varshamov": ">coding",
    "construction": ">explicit",
    "lower": ">lower",
    "upper": ">upper",
}
_MEANING = {
    "k": "log10 k. explicit, coding: that many lines exist. upper: no more are possible. {laws}: fitted laws.",
    "epsilon": "epsilon. explicit, coding: some set is as good. lower: none is better. {laws}: fitted laws.",
    "d": "dimensions. explicit, coding: that many are enough. lower: fewer are too few. {laws}: fitted laws.",
}


def _print_many(results: Sequence[Capacity]) -> None:
    solved = results[0].solved_for
    laws = {curve.key: curve for _, curve in curves()}
    short = {**_SHORT, **{key: f">{curve.short}" for key, curve in laws.items()}}
    ends = [*laws, "gilbert_varshamov", "construction", "upper" if solved == "k" else "lower"]
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
        numbers = [entry[_KEYS[solved]] for entry in entries]
        cells = ["none" if number is None else form.format(number) for number in numbers]
        table.add_row(*(given[name] for name in first), *vocab, *cells)
    console = stdout()
    console.print(table)
    console.print()
    names = ", ".join(dict.fromkeys(law.name for law, _ in curves()))
    console.print(_MEANING[solved].format(laws=names), markup=False, soft_wrap=False)
    warned = sum(bool(result.warnings) for result in results)
    if warned:
        warn(
            f"{warned} of {len(results)} points have warnings (a law beyond its data or beyond what is proven): --json"
        )
