"""`repcap capacity`: the laws and the proven limits at points (d, epsilon), (d, k) or (k, epsilon)."""

from __future__ import annotations

import csv
import sys
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Annotated, Any

import typer

from repcap.bracket.capacity import Capacity, capacity
from repcap.console import values
from repcap.console.common import JsonOption, check_plot, note, print_json, stdout, warn
from repcap.console.derive import Options, command_of
from repcap.errors import InputError
from repcap.text import flattened
from repcap.verbs import part
from repcap.verbs.capacity import show

MOST_POINTS = 10_000


@command_of(capacity)
def command(
    options: Options,
    d: Annotated[str | None, typer.Option("--d", help="Dimensions.")] = None,
    eps: Annotated[str | None, typer.Option("--eps", help="Accepted |cosine|, between 0 and 1.")] = None,
    k: Annotated[str | None, typer.Option("--k", help="Vectors; with --vocab: features beside it.")] = None,
    vocab: Annotated[str | None, typer.Option("--vocab", help="Vocabulary V: it takes 2 V vectors.")] = None,
    plot: Annotated[Path | None, typer.Option("--plot", help="Draw log10 k over epsilon (png, svg, pdf).")] = None,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print the results as CSV.")] = False,
    json: JsonOption = False,
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
    if as_csv and json:
        raise InputError("give --json or --csv, not both")
    if plot is not None:
        _plot(plot, d, eps)
        if k is None and vocab is None and eps is None:
            return
    results = _results(d, eps, k, vocab, **options)
    if json:
        print_json(results[0] if len(results) == 1 else results)
    elif as_csv:
        _print_csv(results)
    elif len(results) == 1:
        for part_of_it in show.parts(results[0]):
            stdout().print(part_of_it)
        for warning in results[0].warnings:
            warn(warning)
    else:
        for part_of_it in show.parts_of_many(results):
            stdout().print(part_of_it)
        warned = sum(bool(result.warnings) for result in results)
        if warned:
            why = "a law beyond its data or beyond what is proven"
            warn(f"{warned} of {len(results)} points have warnings ({why}): --json")


def _results(d: str | None, eps: str | None, k: str | None, vocab: str | None, tied: bool) -> list[Capacity]:
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
    check_plot(path)
    dims = [int(value) for value in values.numbers(d, "--d", whole=True)]
    if not dims:
        raise InputError("--plot needs --d: a figure has one panel a dimension")
    given = values.numbers(eps, "--eps") if eps is not None and ".." in eps else []
    between = (min(given), max(given)) if given else None
    written = part("capacity", "figure").draw([{"d": d} for d in dims], path, eps=between)
    note(f"wrote {', '.join(str(name) for name in written)}")


def _print_csv(results: Sequence[Capacity]) -> None:
    rows = [flattened(result.to_dict()) for result in results]
    rows = [{k: "; ".join(v) if isinstance(v, list) else v for k, v in row.items()} for row in rows]
    columns = list(dict.fromkeys(key for row in rows for key in row))
    writer = csv.DictWriter(sys.stdout, columns, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
