"""What the terminal shows of the residual stream."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from repcap.console.common import new_table
from repcap.console.prose import WIDTH, prose
from repcap.text import shorten
from repcap.verbs.latents.latent_result import Latents, LayerLatents, StateSpread


def parts(result: Latents) -> Iterator[RenderableType]:
    yield Text(shorten(result.source, WIDTH), style="bold")
    yield Text(
        f"{shorten(result.text, 24)}: {result.tokens} tokens, {result.distinct} different, {result.windows} windows, "
        f"{result.blocks} blocks"
    )
    yield _embedding(result)
    yield _layers(result)
    yield prose(result.reading)
    yield prose(result.at_once)
    for note in result.notes:
        yield prose(f"Note: {note}.")


def _embedding(result: Latents) -> RenderableType:
    table = new_table("\nepsilon of the embedding", "rows", ">epsilon", ">± se", ">ratio", "class")
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
    table = new_table(
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
