"""`repcap design`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from repcap.console import common
from repcap.console.common import JsonOption
from repcap.console.values import numbers, real
from repcap.laws import published

if TYPE_CHECKING:
    from repcap.verbs.design.study import Design, DesignRow


def command(
    features: Annotated[str, typer.Option("--features", help="Features to hold, such as 1e7.")],
    eps: Annotated[str, typer.Option("--eps", help="epsilon: a number, a list, or a range such as 0.06..0.09/4.")],
    vocab: Annotated[
        int | None, typer.Option("--vocab", min=1, help="Vocabulary V: takes 2 V directions, V with --tied.")
    ] = None,
    tied: Annotated[bool, typer.Option("--tied", help="Embedding and unembedding share one matrix.")] = False,
    multiple: Annotated[int, typer.Option("--multiple", min=1, help="Round d_model up to a multiple of this.")] = 128,
    params: Annotated[str | None, typer.Option("--params", help="Parameters of the whole model, such as 8e9.")] = None,
    store: Annotated[
        Path | None, typer.Option("--store", help="Take the peers from this result store, not the published table.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """The d_model that holds so many features beside a vocabulary, by each law and between proven limits.

    `ratio` and `full` are the published laws. `enough`: so many directions are proven to exist in that d_model.
    `needed`: below it they are proven not to.
    """
    from repcap.errors import InputError
    from repcap.verbs.design.study import design

    if tied and vocab is None:
        raise InputError("--tied says how a vocabulary counts: give --vocab too")
    found = design(
        real(features, "--features"),
        numbers(eps, "--eps"),
        vocab=vocab,
        tied=tied,
        multiple=multiple,
        params=None if params is None else real(params, "--params"),
        store=store,
    )
    if json:
        common.print_json(found)
    else:
        _show(found)


def _show(found: Design) -> None:
    from repcap.console.prose import prose
    from repcap.text import shorten

    console = common.stdout()
    console.print(prose(found.reading))
    table = common.new_table(f"\nd_model, rounded up to a multiple of {found.multiple}")
    shares = found.vocab is not None
    columns = [">epsilon", *(f">{width.name}" for width in found.rows[0].widths)]
    if shares:
        columns.append(f">embedding at {published().key}")
    for column in columns:
        table.add_column(column.removeprefix(">"), justify="right")
    for row in found.rows:
        table.add_row(*_cells(row, shares))
    console.print(table)
    for remark in found.remarks:
        common.warn(remark)
    if found.peers:
        peers = common.new_table(f"\nmodels of that size, from {found.peers_from}")
        for column, side in (("model", "left"), ("d_model", "right"), ("epsilon", "right"), ("ratio to null", "right")):
            peers.add_column(column, justify=side)  # type: ignore[arg-type]  # rich's own literal
        for peer in found.peers:
            peers.add_row(shorten(peer.model, 46), str(peer.d_model), f"{peer.epsilon:.4f}", f"{peer.ratio:.2f}")
        console.print(peers)
    console.print(prose(found.heuristic))


def _cells(row: DesignRow, shares: bool) -> list[str]:
    cells = [f"{row.epsilon:g}"]
    cells += ["none" if w.rounded is None else str(w.rounded) for w in row.widths]
    if shares:
        full = row.width(published().key)
        weight = "" if full.embedding_params is None else f"{full.embedding_params:.3g}"
        cells.append(weight if full.share is None else f"{weight}, {full.share:.1%}")
    return cells
