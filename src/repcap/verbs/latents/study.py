"""`latents`: does the embedding's epsilon hold for the states of the residual stream? Measured layer by layer."""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from repcap import geometry, sources
from repcap.errors import InputError, OptionError
from repcap.matrix import ProgressFn, stages
from repcap.numerics import Z_DEFAULT
from repcap.options import Device, Layers, Option, Z, verb
from repcap.verbs.latents.latent_result import LatentPlan, Latents, LayerLatents, StateSpread

if TYPE_CHECKING:
    from repcap.geometry.epsilon.epsilon import Spread
    from repcap.geometry.measurement.measurement import Measurement
    from repcap.verbs.latents.latent_model import Loaded
    from repcap.verbs.latents.latent_stream import LayerStates

__all__ = ["Latents", "latents", "read_pieces"]

TOLERANCE = 0.1
"""A layer whose epsilon is within a tenth of the embedding's is called near, whatever the standard errors."""
SHIPPED = "alice.txt"
PIECE = 1 << 20
"""Characters of a text that are turned into tokens at once."""


@verb
def latents(
    source: Any,
    text: Annotated[
        str | os.PathLike[str] | None, Option("UTF-8 text to read (default: a passage that repcap ships).")
    ] = None,
    *,
    ids: Iterable[int] | None = None,
    window: Annotated[int, Option("Tokens read at once.", least=2, why="a window needs at least two tokens")] = 256,
    tokens: Annotated[
        int | None, Option("Read so many tokens at most.", least=3, why="read at least three tokens")
    ] = None,
    blocks: Annotated[
        int,
        Option("Blocks of text of the jackknife, about.", least=3, why="a standard error needs at least three blocks"),
    ] = 30,
    layers: Layers = (),
    z: Z = Z_DEFAULT,
    dtype: Annotated[
        str, Option("The model in float32, bfloat16 or float16.", choices=("float32", "bfloat16", "float16"))
    ] = "float32",
    device: Device = "auto",
    memory: Annotated[int, Option("Bytes of sums at once.", silent=True, shown=False)] = 4 << 30,
    on_progress: ProgressFn | None = None,
) -> Latents:
    """Mean, standard deviation and epsilon of the residual-stream states of a decoder, at every layer.

    Parameters
    ----------
    source : str, path or torch.nn.Module
        a transformers directory, a GGUF file, pkg://..., a cached Hub checkpoint; or a transformers model in memory.
    text : path, optional
        a UTF-8 text file; by default the passage that repcap ships.
    ids : sequence of int, optional
        token ids instead of a text; needed with a model in memory, which brings no tokenizer.
    window, tokens, blocks :
        tokens read at once; read so many at most; of the jackknife, about so many.
    layers, memory :
        which layers, all by default; bytes of sums at once: a large model takes more passes over the text.
    on_progress : callable, optional
        called with (tokens read, tokens to read) over all passes.

    Notes
    -----
    The text is read in windows that do not overlap. The states are added to sums and forgotten; the standard error
    needs the text a second time. States of neighbouring positions depend on each other, so it is a jackknife over
    contiguous blocks of the text; it says how far another passage of the same kind could be off, not another kind of
    text. The first position of a window, where many models put a huge state that others attend to, is left out of the
    main number and of its blocks, and counted in `with_first`.

    Cost: two forward passes over the text for each group of layers, O(tokens d^2) a layer. Memory: the model, 40 d^2
    bytes a layer up to `memory`, 8 bytes a token and layer. No more of a text is read than `tokens` asks for; texts of
    more than a million characters are turned into tokens piece by piece, cut at the ends of lines.

    Raises
    ------
    MissingExtraError, SourceError, InputError
        if transformers is missing, the model or the text cannot be read, or the text has fewer than three tokens.
    """
    from repcap.verbs.latents import latent_model as running  # loads torch

    name = "token ids" if ids is not None else SHIPPED if text is None else str(text)
    pieces = iter(()) if ids is not None else read_pieces(text)
    first = next(pieces, "")  # a text that cannot be read is refused before a model is loaded
    loaded = running.load(source, device, dtype)
    front: list[int] = []
    if ids is not None:
        stream = np.asarray(list(ids), dtype=np.int64)[:tokens]
    elif loaded.tokenizer is None:
        raise InputError("a model in memory brings no tokenizer: give ids= instead of a text")
    else:
        front, stream = running.encode(loaded.tokenizer, itertools.chain([first], pieces), tokens)
    plan = LatentPlan(window=window, blocks=blocks, layers=tuple(layers), z=z, memory=memory)
    return _study(loaded, name, front, stream, plan, on_progress)


def read_pieces(text: str | os.PathLike[str] | None = None) -> Iterator[str]:
    """A UTF-8 text in pieces of about a million characters that end with a line, or else a word; None: the shipped one.

    A shorter text is one piece. Memory: two pieces.

    Raises
    ------
    InputError
        if it cannot be read or is no UTF-8.
    """
    source = resources.files("repcap.data").joinpath(SHIPPED) if text is None else Path(text)
    try:
        with source.open(encoding="utf-8-sig") as file:
            rest = ""
            while len(block := file.read(PIECE)) == PIECE:
                block = rest + block
                cut = block.rfind("\n") + 1 or max(block.rfind(" "), 0) or len(block)
                yield block[:cut]
                rest = block[cut:]
            yield rest + block
    except (OSError, UnicodeDecodeError) as error:
        reason = str(getattr(error, "strerror", "")).lower() or "not a UTF-8 text"
        raise InputError(f"cannot read the text {text}: {reason}") from error


def _study(
    loaded: Loaded,
    name: str,
    front: list[int],
    stream: np.ndarray,
    plan: LatentPlan,
    on_progress: ProgressFn | None,
) -> Latents:
    from repcap.verbs.latents.latent_stream import find_blocks, max_window, read_layers

    if len(stream) < 3:
        raise InputError(f"{name} has {len(stream)} tokens: at least three are needed")
    layers = _layers(plan.layers, len(find_blocks(loaded.model)) + 1)
    embedding = sources.open_source(loaded.model, "embedding")
    if stream.max() >= embedding.count or stream.min() < 0:
        wrong = stream.max() if stream.max() >= embedding.count else stream.min()
        raise InputError(f"token id {wrong} is no row of the embedding, which has {embedding.count}")
    window = min(plan.window, max_window(loaded.model) or plan.window)
    step = max(1, window - len(front))
    before = np.array(front, dtype=np.int64)
    windows = [np.concatenate([before, stream[at : at + step]]) for at in range(0, len(stream), step)]
    # Multiplications over d^2: of the embedding's sums, and of 12 d^2 weights a block and token in two passes.
    measuring, reading = stages(on_progress, embedding.count, 24 * len(stream) * len(layers))
    whole = geometry.measure_matrix(embedding, geometry.MeasureOptions(z=plan.z, centre=True), on_progress=measuring)
    distinct: list[int] = np.unique(stream).tolist()
    of_text = geometry.MeasureOptions(z=plan.z, only_ids=distinct)
    on_text = geometry.measure_matrix(embedding, of_text).spread if len(distinct) > 1 else None
    found, blocks = read_layers(loaded.model, windows, layers, whole.dim, plan, reading)
    judged = _judged(found, whole)
    return Latents(
        source=loaded.name,
        text=name,
        tokens=len(stream),
        distinct=len(distinct),
        window=window,
        windows=len(windows),
        blocks=blocks,
        embedding=whole,
        embedding_on_text=on_text,
        layers=judged,
        notes=tuple(_notes(judged, len(stream), whole.dim, on_text, whole)),
        device=str(next(loaded.model.parameters()).device),
        revision=getattr(loaded.model.config, "_commit_hash", None),
    )


def _judged(found: Mapping[int, LayerStates], embedding: Measurement) -> tuple[LayerLatents, ...]:
    return tuple(
        LayerLatents(
            layer=layer,
            raw=part.raw,
            normed=part.normed,
            median_norm=part.median_norm,
            first_norm=part.first_norm,
            holds=agrees(part.raw, embedding),
        )
        for layer, part in sorted(found.items())
    )


def _layers(wanted: tuple[int, ...], count: int) -> list[int]:
    wrong = next((layer for layer in wanted if not 0 <= layer < count), None)
    if wrong is not None:
        why = f"this model has layers 0..{count - 1} (0 is the input of the first block)"
        raise OptionError("layers", wrong, why)
    return sorted(set(wanted)) or list(range(count))


def agrees(states: StateSpread, embedding: Measurement) -> bool:
    """Whether the epsilons are within a tenth of the embedding's, or within two standard errors of the difference."""
    apart = abs(states.spread.epsilon - embedding.epsilon)
    error = math.hypot(states.se or 0.0, embedding.epsilon_se or 0.0)
    return apart <= max(TOLERANCE * abs(embedding.epsilon), 2.0 * error)


def _notes(
    layers: Sequence[LayerLatents], tokens: int, dim: int, on_text: Spread | None, embedding: Measurement
) -> list[str]:
    notes = []
    sink = max(layers, key=lambda layer: layer.first_norm / max(layer.median_norm, 1e-300))
    ratio = sink.first_norm / max(sink.median_norm, 1e-300)
    if ratio > 5.0:
        notes.append(
            f"at layer {sink.layer} the state of a window's first position is {ratio:.0f} times as long as the others' "
            "(an attention sink); it is left out above and counted under `with 1st`"
        )
    if on_text is not None and abs(on_text.epsilon - embedding.epsilon) > TOLERANCE * abs(embedding.epsilon):
        notes.append(
            f"the tokens of this text alone have epsilon {on_text.epsilon:.4f} in the embedding, all tokens "
            f"{embedding.epsilon:.4f}: a part of the difference lies in which tokens occur"
        )
    if tokens < 4 * dim:
        notes.append(f"{tokens} tokens in {dim} dimensions: a longer text gives a smaller standard error")
    notes.append(
        "states are sums of many features: that they crowd together does not say that the features' directions do"
    )
    return notes
