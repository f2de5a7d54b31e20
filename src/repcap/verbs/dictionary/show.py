"""What the terminal shows of `dictionary`."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from repcap.bracket.interval import at_least
from repcap.console.bracket_view import bracket_rows
from repcap.console.common import new_table
from repcap.console.measured_view import detail
from repcap.console.prose import prose
from repcap.laws import fitted, published
from repcap.text import shorten, visible
from repcap.verbs.dictionary.study import Against, Dictionary


def parts(result: Dictionary) -> Iterator[RenderableType]:
    yield from detail(result.measured)
    yield _rows(result)
    if result.against is not None:
        yield _against(result.against)
        if result.against.strongest:
            yield _strongest(result.against)
    yield prose(result.reading)
    yield from (prose(f"Note: {note}.") for note in result.notes)


def _rows(result: Dictionary) -> RenderableType:
    table = new_table("\nthe dictionary", "", ">", "")
    table.add_row("alive rows", str(result.alive), f"of {result.measured.info.count}")
    dead = f"{result.zero} zero, {result.non_finite} not finite, {result.tiny} tiny"
    table.add_row("dead rows", str(result.dead), dead)
    table.add_row("coherence", f"{result.coherence:.6f}", f"rows {result.pair[0]} and {result.pair[1]}")
    table.add_row("  least possible", f"{result.coherence_bound:.6f}", f"for {result.alive} lines, proven")
    table.add_row("  of random lines", f"{result.coherence_random:.6f}", "median")
    for name in (curve.key for curve in fitted()):
        table.add_row(f"epsilon of law {name}", f"{result.law_epsilon[name]:.6f}", f"at which {result.alive} fit")
    if result.at_once is not None:
        for label, side in (("read at once", result.at_once.best), ("  along the rows", result.at_once.direct)):
            dims = "" if side.effective_dim is None else f"effective dimension {side.effective_dim:.1f}"
            table.add_row(label, str(side.most), dims)
    capacity, filled = result.measured.capacity, result.filled
    if capacity is not None and filled is not None:
        least = "exists" if at_least(capacity) is capacity["exists"] else "explicit"
        names = {least: f"proven to exist ({capacity[least]['name']})", "law": published().label, "upper": "at most"}
        for place, (key, what) in enumerate(names.items()):
            label = "" if place else "k over capacity"
            table.add_row(label, f"{filled[key]:.3g}", Text(f"{what}, at epsilon {result.measured.epsilon:.4f}"))
    return table


def _against(found: Against) -> RenderableType:
    table = new_table("\nagainst the embedding", "", ">", "")
    table.add_row("embedding", str(found.count), Text(shorten(found.source, 40)))
    table.add_row("its epsilon", f"{found.epsilon:.6f}", f"class {found.class_name}")
    table.add_row("rows within it", f"{found.rows_within:.2%}", "largest |cosine| with any embedding row")
    table.add_row("pairs within it", f"{found.pairs_within:.4%}", "|cosine| of two rows of the dictionary")
    shown = ", ".join(f"{share:.0%}: {cosine:.3f}" for share, cosine in found.largest)
    table.add_row("largest |cosine|", "", f"{shown} (random: {found.random:.3f})")
    table.add_row("directions in all", str(found.budget), "alive rows, embedding and unembedding")
    if found.capacity is not None:
        for label, k, source in bracket_rows(found.capacity):
            table.add_row(f"room: {label}", k, Text(source))
    return table


def _strongest(found: Against) -> RenderableType:
    table = new_table("\nrows nearest to the embedding", ">|cosine|", ">row", ">embedding row", "token")
    for row, other, token, cosine in found.strongest:
        shown = Text("" if token is None else visible(token, 30))
        table.add_row(f"{cosine:.4f}", str(row), str(other), shown)
    return table
