"""What the terminal shows of the weights that read from and write to the residual stream."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from repcap.console.common import new_table
from repcap.console.failing import in_words
from repcap.console.prose import WIDTH, prose
from repcap.text import shorten, visible
from repcap.verbs.probes.probe_result import Part, Probes

SHOWN = ("ratio", "epsilon", "alignment", "length")
"""What the table of blocks can hold."""


def parts(result: Probes, show: str = "ratio") -> Iterator[RenderableType]:
    """show: one of SHOWN."""
    yield Text(shorten(result.source, WIDTH), style="bold")
    yield _by_part(result)
    yield from _by_layer(result, show)
    yield prose(result.reading)
    for note in result.notes:
        yield prose(f"Note: {in_words(note, {'align_rows': '--align-rows'})}.")


def _by_part(result: Probes) -> RenderableType:
    table = new_table(
        f"residual stream of {result.dim} dimensions, {len(result.layers)} blocks (means over them)",
        "part",
        "",
        ">vectors",
        ">epsilon",
        ">ratio",
        ">length",
        ">|cos|",
        ">chance",
        "token",
    )
    for name in result.names:
        parts = [part for part in result.weights if part.part == name]
        spreads = [part.spread for part in parts if part.spread is not None]
        aligned = [part.aligned for part in parts if part.aligned is not None]
        best = max(aligned, key=lambda found: found.largest, default=None)
        token = "" if best is None else str(best.row) if best.token is None else visible(best.token, 12)
        table.add_row(
            name,
            "writes" if parts[0].writes else "reads",
            _span([part.count for part in parts]),
            f"{sum(s.epsilon for s in spreads) / len(spreads):.4f}" if spreads else "-",
            f"{sum(s.ratio for s in spreads) / len(spreads):.2f}" if spreads else "-",
            f"{sum(part.median_norm for part in parts) / len(parts):.3g}",
            "" if best is None else f"{best.largest:.3f}",
            "" if best is None else f"{best.random:.3f}",
            Text(token),
        )
    whole = result.embedding
    table.add_row("embedding", "", str(whole.count), f"{whole.epsilon:.4f}", f"{whole.ratio:.2f}")
    return table


def _span(counts: list[int]) -> str:
    """One number, or both ends."""
    return "-".join(map(str, sorted({min(counts), max(counts)})))


_TITLES = {
    "ratio": "epsilon, as a multiple of that of random directions",
    "epsilon": "epsilon",
    "alignment": "largest |cosine| with an embedding row",
    "length": "median length of the vectors",
}


def _by_layer(result: Probes, show: str) -> Iterator[RenderableType]:
    """One row a block; as many tables below each other as it takes to stay within 80 columns."""
    columns = {name: [_cell(result.of(layer, name), show) for layer in result.layers] for name in result.names}
    for place in ("attn in", "mlp in"):
        means = {gain.layer: f"{gain.mean:.3g}" for gain in result.gains if gain.place == place}
        if means.keys() & set(result.layers):
            columns[place] = [means.get(layer, "") for layer in result.layers]
    title, room = f"\n{_TITLES[show]}; mean gain of the norms", 0
    tables: list[dict[str, list[str]]] = []
    for name, cells in columns.items():
        width = 2 + max(map(len, (name, *cells)))
        if width > room:
            tables.append({})
            room = WIDTH - len("block")
        room -= width
        tables[-1][name] = cells
    for chosen in tables:
        table = new_table(title, ">block", *(f">{name}" for name in chosen))
        for layer, *cells in zip(map(str, result.layers), *chosen.values(), strict=True):
            table.add_row(layer, *cells)
        yield table
        title = "\n(more)"


def _cell(part: Part | None, show: str) -> str:
    if part is None:
        return ""
    if show == "length":
        return f"{part.median_norm:.3g}"
    if show == "alignment":
        return "" if part.aligned is None else f"{part.aligned.largest:.3f}"
    if part.spread is None:
        return "-"
    return f"{part.spread.ratio:.2f}" if show == "ratio" else f"{part.spread.epsilon:.4f}"
