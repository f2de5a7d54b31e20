"""`repcap latents`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from repcap.console import common
from repcap.console.common import DeviceOption, JsonOption

if TYPE_CHECKING:
    from rich.console import RenderableType

    from repcap.verbs.latents.study import Latents, LayerLatents, StateSpread


def command(
    model: Annotated[str, typer.Argument(help="A transformers directory, a .gguf file, pkg://..., a cached Hub name.")],
    text: Annotated[
        Path | None, typer.Option("--text", help="UTF-8 text to read (default: a passage that repcap ships).")
    ] = None,
    window: Annotated[int, typer.Option("--window", help="Tokens read at once.")] = 256,
    tokens: Annotated[int | None, typer.Option("--tokens", help="Read so many tokens at most.")] = None,
    blocks: Annotated[int, typer.Option("--blocks", help="Blocks of text of the jackknife, about.")] = 30,
    layers: Annotated[str, typer.Option("--layers", help="These layers alone: 0,5,10-12.")] = "",
    z: Annotated[float, typer.Option("--z", help="epsilon = mean + z std.")] = 2.0,
    dtype: Annotated[str, typer.Option("--dtype", help="The model in float32, bfloat16 or float16.")] = "float32",
    device: DeviceOption = "auto",
    plot: Annotated[Path | None, typer.Option("--plot", help="Draw it: a .png, .svg or .pdf.")] = None,
    json: JsonOption = False,
) -> None:
    """Does the embedding's epsilon hold for the latent space? Measure the residual stream, layer by layer.

    The model reads a text; the states at every layer are added to sums and not kept. Needs transformers
    (pip install 'repcap[latents]'); nothing is downloaded.
    """
    from repcap.options import parse_ids
    from repcap.verbs.latents.study import latents

    common.check_plot(plot)
    with common.progress("Reading", "tokens") as on_progress:
        result = latents(
            model,
            text,
            window=window,
            tokens=tokens,
            blocks=blocks,
            layers=parse_ids(layers, "layer"),
            z=z,
            dtype=dtype,
            device=device,
            on_progress=on_progress,
        )
    if plot is not None:
        from repcap.verbs.latents.figure import draw_latents

        for written in draw_latents(result.to_dict(), plot):
            common.note(f"wrote {written}")
    if json:
        common.print_json(result)
    else:
        _show(result)


def _show(result: Latents) -> None:
    from repcap.console.prose import WIDTH, prose
    from repcap.text import shorten

    console = common.stdout()
    console.print(shorten(result.source, WIDTH), style="bold", markup=False)
    console.print(
        f"{shorten(result.text, 24)}: {result.tokens} tokens, {result.distinct} different, {result.windows} windows, "
        f"{result.blocks} blocks",
        markup=False,
    )
    console.print(_embedding(result))
    console.print(_layers(result))
    console.print(prose(result.sentence))
    for note in result.notes:
        console.print(prose(f"Note: {note}."))


def _embedding(result: Latents) -> RenderableType:
    table = common.new_table("\nepsilon of the embedding", "rows", ">epsilon", ">± se", ">ratio", "class")
    found = result.embedding
    error = "" if found.epsilon_se is None else f"{found.epsilon_se:.4f}"
    table.add_row("all", f"{found.epsilon:.4f}", error, f"{found.epsilon_ratio:.2f}", found.class_name)
    if result.embedding_centred is not None:
        ratio = result.embedding_centred / found.epsilon_null
        table.add_row("all, without their mean", f"{result.embedding_centred:.4f}", "", f"{ratio:.2f}", "")
    part = result.embedding_on_text
    if part is not None:
        table.add_row("tokens of the text", f"{part.epsilon:.4f}", "", f"{part.ratio:.2f}", part.class_name)
    return table


def _layers(result: Latents) -> RenderableType:
    table = common.new_table(
        "\nepsilon of the residual stream",
        ">layer",
        ">raw",
        ">± se",
        ">ratio",
        ">with 1st",
        ">no mean",
        ">normed",
        ">length",
        ">of 1st",
        "holds",
    )
    for layer in result.layers:
        table.add_row(*_row(layer))
    return table


def _row(layer: LayerLatents) -> tuple[str, ...]:
    raw = layer.raw
    return (
        str(layer.layer),
        f"{raw.spread.epsilon:.4f}",
        "" if raw.se is None else f"{raw.se:.4f}",
        f"{raw.spread.ratio:.2f}",
        f"{raw.with_first.epsilon:.4f}",
        "" if raw.centred is None else f"{raw.centred.epsilon:.4f}",
        _epsilon(layer.normed),
        _length(layer.median_norm),
        _length(layer.first_norm),
        "yes" if layer.holds else "no",
    )


def _length(value: float) -> str:
    """Three digits, and whole numbers as such up to six."""
    return f"{value:.0f}" if 100.0 <= value < 1e6 else f"{value:.3g}"


def _epsilon(states: StateSpread | None) -> str:
    return "" if states is None else f"{states.spread.epsilon:.4f}"
