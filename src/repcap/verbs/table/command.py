"""`repcap table`."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Annotated

import typer

from repcap.console import common
from repcap.console.batches import resumable
from repcap.console.common import JsonOption, PlotOption
from repcap.console.derive import Options, command_of
from repcap.console.values import numbers
from repcap.verbs.table.study import MOST, table


@command_of(table)
def command(
    options: Options,
    d: Annotated[str, typer.Option("--d", help="Dimensions: 2..16384, 2..512:2, 512..8192x2, or a list.")],
    eps: Annotated[
        str | None, typer.Option("--eps", "--epsilon", help="Accepted |cosine|: one, a list or a range.")
    ] = None,
    k: Annotated[str | None, typer.Option("--k", help="Numbers of lines, instead of --eps.")] = None,
    plot: PlotOption = None,
    json: JsonOption = False,
) -> None:
    """The best known set of lines and the proven limit for each dimension.

    A..B is every dimension from A to B. With --out run it again to go on: rows that are there are not computed again.
    tools/check_certificate.py checks what --certificates writes, without repcap.

    [bold]Examples[/bold]

        repcap table --d 2..16 --eps 0.2
        repcap table --d 2..16384 --eps 0.1 --out lines.csv
        repcap table --d 64..4096x2 --k 1e4,1e6 --out lines.parquet --certificates proofs
    """
    common.check_plot(plot)
    dims = [int(one) for one in numbers(d, "--d", whole=True, every=True, most=MOST)]
    at, counts = numbers(eps, "--eps") or None, numbers(k, "--k") or None
    keeping = nullcontext() if options["out"] is None else resumable(options["out"])
    with keeping, common.progress("Sets and limits", "rows") as on_progress:
        found = table(dims, eps=at, k=counts, **options, on_progress=on_progress)
    common.present(found, json, plot)
    if found.path is not None:
        common.note(f"{found.numbers}: {found.path}")
