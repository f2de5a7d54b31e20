"""What the terminal shows of a design."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from repcap.console.common import new_table
from repcap.console.prose import prose
from repcap.laws import published
from repcap.text import shorten
from repcap.verbs.design.study import Design, DesignRow


def parts(result: Design) -> Iterator[RenderableType]:
    yield prose(result.reading)
    shares = result.vocab is not None
    columns = [">epsilon", *(f">{width.name}" for width in result.points[0].widths)]
    if shares:
        columns.append(f">embedding at {published().key}")
    table = new_table(f"\nd_model, rounded up to a multiple of {result.multiple}", *columns)
    for row in result.points:
        table.add_row(*_cells(row, shares))
    yield table
    if result.peers:
        named = f"\nmodels of that size, from {result.peers_from}"
        peers = new_table(named, "model", ">d_model", ">epsilon", ">ratio to null")
        for peer in result.peers:
            name = Text(shorten(peer.model, 46))
            peers.add_row(name, str(peer.d_model), f"{peer.epsilon:.4f}", f"{peer.ratio:.2f}")
        yield peers
    yield prose(result.heuristic)


def _cells(row: DesignRow, shares: bool) -> list[str]:
    cells = [f"{row.epsilon:g}"]
    cells += ["none" if w.rounded is None else str(w.rounded) for w in row.widths]
    if shares:
        full = row.width(published().key)
        weight = "" if full.embedding_params is None else f"{full.embedding_params:.3g}"
        cells.append(weight if full.share is None else f"{weight}, {full.share:.1%}")
    return cells
