"""`repcap probes`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from repcap.console import common
from repcap.console.common import DeviceOption, JsonOption, SeedOption
from repcap.text import visible

if TYPE_CHECKING:
    from rich.console import RenderableType

    from repcap.verbs.probes.probe_result import Part, Probes

SHOWN = ("ratio", "epsilon", "alignment", "length")


def command(
    model: Annotated[str, typer.Argument(help="File, directory, Hub name, pkg:// ... (see repcap inspect).")],
    layers: Annotated[str, typer.Option("--layers", help="These blocks alone: 0,5,10-12.")] = "",
    show: Annotated[str, typer.Option("--show", help="In the table: ratio, epsilon, alignment or length.")] = "ratio",
    fold: Annotated[
        bool, typer.Option("--fold", help="Multiply what reads by the gain of the norm before it.")
    ] = False,
    align_rows: Annotated[
        int | None, typer.Option("--align-rows", help="Compare so many vectors a part with the embedding; 0: none.")
    ] = None,
    z: Annotated[float, typer.Option("--z", help="epsilon = mean + z std.")] = 2.0,
    seed: SeedOption = 0,
    device: DeviceOption = "auto",
    plot: Annotated[Path | None, typer.Option("--plot", help="Heat map: a .png, .svg or .pdf.")] = None,
    json: JsonOption = False,
) -> None:
    """The weights that read from and write to the residual stream, layer by layer.

    Rows of q, k, v, gate and up read from it, columns of o and down write to it (experts and what stands in place of
    attention, too): how near to orthogonal each set is, how near to the token embeddings its vectors come, how long
    they are, and the gains of the norms.
    """
    from repcap.errors import InputError
    from repcap.options import parse_ids
    from repcap.verbs.probes.study import probes

    if show not in SHOWN:
        raise InputError(f"--show {show}: use {', '.join(SHOWN)}")
    common.check_plot(plot)
    with common.progress("Blocks", "blocks") as on_progress:
        result = probes(
            model,
            layers=parse_ids(layers, "block"),
            fold=fold,
            align_rows=align_rows,
            z=z,
            seed=seed,
            device=device,
            on_progress=on_progress,
        )
    if plot is not None:
        from repcap.verbs.probes.figure import draw_probes

        for written in draw_probes(result.to_dict(), plot):
            common.note(f"wrote {written}")
    if json:
        common.print_json(result)
    else:
        _show(result, show)


def _show(result: Probes, show: str) -> None:
    from repcap.console.prose import WIDTH, prose
    from repcap.text import shorten

    console = common.stdout()
    console.print(shorten(result.source, WIDTH), style="bold", markup=False)
    console.print(_by_part(result))
    for table in _by_layer(result, show):
        console.print(table)
    console.print(prose(result.sentence))
    for note in result.notes:
        console.print(prose(f"Note: {note}."))


def _by_part(result: Probes) -> RenderableType:
    from rich.text import Text

    table = common.new_table(
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
        parts = [part for part in result.parts if part.part == name]
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
    from repcap.console.prose import WIDTH

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
        table = common.new_table(title, ">block", *(f">{name}" for name in chosen))
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
