"""`latents`: does the embedding's epsilon hold for the states of the residual stream? Measured layer by layer."""

from __future__ import annotations

import dataclasses
import itertools
import math
import time
from collections.abc import Iterator, Sequence
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from repcap import geometry
from repcap._version import __version__
from repcap.errors import InputError
from repcap.matrix import ProgressFn

if TYPE_CHECKING:
    from repcap.geometry.epsilon.epsilon import Spread
    from repcap.geometry.measurement.measurement import Measurement
    from repcap.verbs.latents.latent_model import Loaded

TOLERANCE = 0.1
"""A layer whose epsilon is within a tenth of the embedding's is called near, whatever the standard errors."""
SHIPPED = "alice.txt"
PIECE = 1 << 20
"""Characters of a text that are turned into tokens at once."""


@dataclasses.dataclass(frozen=True)
class StateSpread:
    """States of one layer, raw or normed. spread: without the first position of each window; se: of its epsilon,
    jackknife over blocks of the text, None from fewer than three blocks. with_first: all positions. centred: without
    the mean state.
    """

    spread: Spread
    se: float | None
    with_first: Spread
    centred: Spread | None

    def to_dict(self) -> dict[str, Any]:
        return {
            **self.spread.to_dict(),
            "epsilon_se": self.se,
            "with_first": self.with_first.to_dict(),
            "centred": self.centred.to_dict() if self.centred else None,
        }


@dataclasses.dataclass(frozen=True)
class LayerLatents:
    """One layer: 0 is what enters the first block, l what leaves block l.

    raw: the residual stream itself. normed: as the next block's first normalisation (after the last block the final
    one) hands it on; None where the model normalises elsewhere. median_norm: length of the states without the first
    position; first_norm: median length at the first position of a window. holds: whether epsilon of `raw` agrees with
    the embedding's.
    """

    layer: int
    raw: StateSpread
    normed: StateSpread | None
    median_norm: float
    first_norm: float
    holds: bool

    def to_dict(self) -> dict[str, Any]:
        return {
            "layer": self.layer,
            "raw": self.raw.to_dict(),
            "normed": self.normed.to_dict() if self.normed else None,
            "median_norm": self.median_norm,
            "first_norm": self.first_norm,
            "holds": self.holds,
        }


@dataclasses.dataclass(frozen=True)
class Latents:
    """epsilon of the residual stream over the tokens of a text, layer by layer, against the embedding's.

    embedding: all rows. embedding_on_text: the rows of the distinct tokens of the text, None for fewer than two.
    tokens: positions read; distinct: different tokens; windows of `window` tokens; blocks of the jackknife.
    """

    source: str
    text: str
    tokens: int
    distinct: int
    window: int
    windows: int
    blocks: int
    embedding: Measurement
    embedding_on_text: Spread | None
    layers: tuple[LayerLatents, ...]
    notes: tuple[str, ...]
    options: dict[str, Any]
    device: str
    seconds: float
    revision: str | None = None

    @property
    def holds(self) -> bool:
        """Whether epsilon agrees with the embedding's at every layer."""
        return all(layer.holds for layer in self.layers)

    @property
    def sentence(self) -> str:
        """The answer in words: does the embedding's epsilon hold for the latent space of this model?"""
        return answer(self.embedding.epsilon, self.embedding_centred, self.layers)

    @property
    def embedding_centred(self) -> float | None:
        """epsilon of the embedding without its mean row; None where nothing is left of it."""
        found = [variant.epsilon for variant in self.embedding.variants if variant.rows == "centred"]
        return found[0] if found else None

    def to_dict(self) -> dict[str, Any]:
        found = self.embedding
        return {
            "source": self.source,
            "revision": self.revision,
            "text": self.text,
            "tokens": self.tokens,
            "distinct_tokens": self.distinct,
            "window": self.window,
            "windows": self.windows,
            "blocks": self.blocks,
            "dim": found.dim,
            "z": found.spread.z,
            "epsilon_null": found.epsilon_null,
            "embedding": {
                **found.spread.to_dict(),
                "epsilon_se": found.epsilon_se,
                "epsilon_centred": self.embedding_centred,
            },
            "embedding_on_text": self.embedding_on_text.to_dict() if self.embedding_on_text else None,
            "layers": [layer.to_dict() for layer in self.layers],
            "holds": self.holds,
            "sentence": self.sentence,
            "notes": list(self.notes),
            "options": self.options,
            "device": self.device,
            "seconds": self.seconds,
            "repcap_version": __version__,
        }


def answer(embedding: float, embedding_centred: float | None, layers: Sequence[LayerLatents]) -> str:
    """One sentence: whether epsilon of the states is the embedding's, and by how much not; and without the means."""
    apart = [layer for layer in layers if not layer.holds]
    centred = [layer.raw.centred.epsilon for layer in layers if layer.raw.centred is not None]
    rest = ""
    if centred and embedding_centred is not None:
        rest = (
            f" Without the mean row and the mean states it is {embedding_centred:.4f} in the embedding and "
            f"{min(centred):.4f} to {max(centred):.4f} in the layers."
        )
    if not apart:
        return (
            f"Yes: on this text epsilon of the residual stream agrees with the embedding's {embedding:.4f} at all "
            f"{len(layers)} layers, within a tenth or two standard errors.{rest}"
        )
    worst = max(apart, key=lambda layer: abs(layer.raw.spread.epsilon - embedding))
    value = worst.raw.spread.epsilon
    return (
        f"No: on this text epsilon of the residual stream differs from the embedding's {embedding:.4f} at {len(apart)} "
        f"of {len(layers)} layers by more than a tenth and more than two standard errors, most at layer {worst.layer} "
        f"({value:.4f}, {value / embedding:.2f} times).{rest}"
    )


@dataclasses.dataclass(frozen=True)
class LatentOptions:
    """window: tokens read at once; tokens: read so many at most; blocks: of the jackknife, about so many.

    layers: which, all by default. memory: bytes of sums at once; a large model takes more passes over the text.
    """

    window: int = 256
    tokens: int | None = None
    blocks: int = 30
    layers: tuple[int, ...] = ()
    z: float = 2.0
    device: str = "auto"
    dtype: str = "float32"
    memory: int = 4 << 30

    def check(self) -> None:
        """Raise InputError for a value that means nothing."""
        if self.window < 2:
            raise InputError(f"--window {self.window}: a window needs at least two tokens")
        if self.tokens is not None and self.tokens < 3:
            raise InputError(f"--tokens {self.tokens}: read at least three tokens")
        if self.blocks < 3:
            raise InputError(f"--blocks {self.blocks}: a standard error needs at least three blocks")


def latents(
    source: Any,
    text: str | Path | None = None,
    *,
    ids: Sequence[int] | None = None,
    on_progress: ProgressFn | None = None,
    **options: Any,
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
    on_progress : callable, optional
        called with (tokens read, tokens to read) over all passes.
    options
        of `LatentOptions`.

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
    from repcap.verbs.latents.latent_model import encode, load

    started, chosen = time.perf_counter(), LatentOptions(**options)
    chosen.check()
    name = "token ids" if ids is not None else SHIPPED if text is None else str(text)
    pieces = iter(()) if ids is not None else read_pieces(text)
    first = next(pieces, "")  # a text that cannot be read is refused before a model is loaded
    loaded = load(source, chosen.device, chosen.dtype)
    front: list[int] = []
    if ids is not None:
        stream = np.asarray(ids, dtype=np.int64)[: chosen.tokens]
    elif loaded.tokenizer is None:
        raise InputError("a model in memory brings no tokenizer: give ids= instead of a text")
    else:
        front, stream = encode(loaded.tokenizer, itertools.chain([first], pieces), chosen.tokens)
    return _study(loaded, name, front, stream, chosen, started, on_progress)


def read_pieces(text: str | Path | None = None) -> Iterator[str]:
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
    options: LatentOptions,
    started: float,
    on_progress: ProgressFn | None,
) -> Latents:
    from repcap.sources import open_source
    from repcap.verbs.latents.latent_model import find_blocks, max_window
    from repcap.verbs.latents.latent_stream import read_layers

    if len(stream) < 3:
        raise InputError(f"{name} has {len(stream)} tokens: at least three are needed")
    layers = _layers(options.layers, len(find_blocks(loaded.model)) + 1)
    embedding = open_source(loaded.model, "embedding")
    if stream.max() >= embedding.count or stream.min() < 0:
        wrong = stream.max() if stream.max() >= embedding.count else stream.min()
        raise InputError(f"token id {wrong} is no row of the embedding, which has {embedding.count}")
    window = min(options.window, max_window(loaded.model) or options.window)
    step = max(1, window - len(front))
    before = np.array(front, dtype=np.int64)
    windows = [np.concatenate([before, stream[at : at + step]]) for at in range(0, len(stream), step)]
    whole = geometry.measure_matrix(embedding, geometry.MeasureOptions(z=options.z, centre=True))
    distinct: list[int] = np.unique(stream).tolist()
    of_text = geometry.MeasureOptions(z=options.z, only_ids=distinct)
    on_text = geometry.measure_matrix(embedding, of_text).spread if len(distinct) > 1 else None
    found, blocks = read_layers(loaded.model, windows, layers, whole.dim, options, on_progress)
    judged = tuple(
        LayerLatents(
            layer=layer,
            raw=part.raw,
            normed=part.normed,
            median_norm=part.median_norm,
            first_norm=part.first_norm,
            holds=agrees(part.raw, whole),
        )
        for layer, part in sorted(found.items())
    )
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
        options=dataclasses.asdict(options),
        device=str(next(loaded.model.parameters()).device),
        seconds=time.perf_counter() - started,
        revision=getattr(loaded.model.config, "_commit_hash", None),
    )


def _layers(wanted: tuple[int, ...], count: int) -> list[int]:
    wrong = next((layer for layer in wanted if not 0 <= layer < count), None)
    if wrong is not None:
        raise InputError(f"--layers {wrong}: this model has layers 0..{count - 1} (0 is the input of the first block)")
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
