"""What `latents` finds: the states of each layer, beside the embedding."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from repcap.result import Result

if TYPE_CHECKING:
    from repcap.geometry.epsilon.epsilon import Spread
    from repcap.geometry.measurement.measurement import Measurement
    from repcap.geometry.readout.leverage import ReadoutLimits


@dataclasses.dataclass(frozen=True)
class LatentPlan:
    """How a text is read; see `latents`. layers: which, all where empty. memory: bytes of sums at once."""

    window: int
    blocks: int
    layers: tuple[int, ...]
    z: float
    memory: int


@dataclasses.dataclass(frozen=True)
class StateSpread:
    """States of one layer, raw or normed. spread: without the first position of each window; se: of its epsilon,
    jackknife over blocks of the text, None from fewer than three blocks. with_first: all positions. centred: without
    the mean state. readout: how well a linear readout can tell these states apart, from their Gram matrix alone.
    """

    spread: Spread
    se: float | None
    with_first: Spread
    centred: Spread | None
    readout: ReadoutLimits

    def to_dict(self) -> dict[str, Any]:
        return {
            **self.spread.to_dict(),
            "epsilon_se": self.se,
            "with_first": self.with_first.to_dict(),
            "centred": self.centred.to_dict() if self.centred else None,
            "readout": self.readout.to_dict(),
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


@dataclasses.dataclass(frozen=True, repr=False)
class Latents(Result):
    """epsilon of the residual stream over the tokens of a text, layer by layer, against the embedding's.

    embedding: all rows. embedding_on_text: the rows of the distinct tokens of the text, None for fewer than two.
    tokens: positions read; distinct: different tokens; windows of `window` tokens; blocks of the jackknife.
    """

    kind = "latents"

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
    device: str
    revision: str | None = None

    @property
    def holds(self) -> bool:
        """Whether epsilon agrees with the embedding's at every layer."""
        return all(layer.holds for layer in self.layers)

    @property
    def title(self) -> str:
        return f"{self.source}, {self.tokens} tokens of {self.text}"

    @property
    def numbers(self) -> str:
        found = [layer.raw.spread.epsilon for layer in self.layers]
        return f"epsilon {self.embedding.epsilon:.4f} in the embedding, {min(found):.4f} to {max(found):.4f} in layers"

    @property
    def reading(self) -> str:
        """The answer in words: does the embedding's epsilon hold for the latent space of this model?"""
        return answer(self.embedding.epsilon, self.embedding_centred, self.layers)

    @property
    def embedding_centred(self) -> float | None:
        """epsilon of the embedding without its mean row; None where nothing is left of it."""
        found = [variant.epsilon for variant in self.embedding.variants if variant.rows == "centred"]
        return found[0] if found else None

    @property
    def at_once(self) -> str:
        """In words: the directions that the states take up, and how many of them a linear readout tells apart."""
        return read_at_once(self.embedding, self.layers)

    def values(self) -> dict[str, Any]:
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
            "notes": list(self.notes),
            "device": self.device,
        }

    def rows(self) -> list[dict[str, Any]]:
        """One row a layer: its raw states."""
        keys = ("layer", "median_norm", "first_norm", "holds")
        return [{**{key: getattr(layer, key) for key in keys}, **_flat(layer.raw.to_dict())} for layer in self.layers]


def _flat(values: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if not isinstance(value, dict)}


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


def read_at_once(embedding: Measurement, layers: Sequence[LayerLatents]) -> str:
    """Two sentences: effective dimensions beside the embedding's, and the layer at which the fewest states are told."""
    taken = sorted(layer.raw.spread.effective_dim for layer in layers)
    least = min(layers, key=lambda layer: layer.raw.readout.s_limit)
    found = least.raw.readout
    own = f"{embedding.spread.effective_dim:.1f} in the embedding"
    said = f"The states fill {taken[0]:.1f} to {taken[-1]:.1f} of {embedding.dim} dimensions, {own}."
    if found.linear_limit is None:
        return f"{said} The best linear readout reads each state exactly: there are no more of them than dimensions."
    told = f"about {int(found.s_limit)}" if found.s_limit >= 1.0 else "not even one"
    return (
        f"{said} At best a linear readout tells {told} of {least.raw.spread.count} states of a layer apart in one "
        "vector that holds them."
    )
