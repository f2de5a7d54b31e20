"""The weights of a checkpoint that read from or write to the residual stream, found by `probe_names`, as rows."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from repcap.errors import MatrixNotFound
from repcap.geometry.views import Stacked, Subset
from repcap.matrix import Matrix
from repcap.sources.checkpoint import Checkpoint, TensorEntry
from repcap.sources.names import plain
from repcap.sources.select import open_as_rows
from repcap.studies import probe_names as names
from repcap.studies.probe_names import Layout, Weight


@dataclasses.dataclass(frozen=True)
class Piece:
    """Rows of one tensor that belong to one part of a block.

    columns: the tensor keeps one vector a column. rows: which vectors of it, None for all.
    """

    tensor: str
    columns: bool
    rows: np.ndarray | None
    count: int

    def open(self, checkpoint: Checkpoint) -> Matrix:
        """These vectors as rows, (count, d)."""
        opened = open_as_rows(checkpoint, self.tensor, self.columns)
        return opened if self.rows is None else Subset(opened, self.rows)


@dataclasses.dataclass(frozen=True)
class Gain:
    """The gain vector of a normalisation. layer: None for the final one. offset: added to what is stored."""

    layer: int | None
    place: str
    tensor: str
    offset: float


@dataclasses.dataclass(frozen=True)
class Found:
    """What was found. parts: (layer, part) -> pieces. skipped: (tensor, why) of weights that cannot be read."""

    parts: dict[tuple[int, str], list[Piece]]
    gains: tuple[Gain, ...]
    skipped: tuple[tuple[str, str], ...]

    @property
    def layers(self) -> list[int]:
        return sorted({layer for layer, _ in self.parts})


def open_part(checkpoint: Checkpoint, pieces: Iterable[Piece]) -> Matrix:
    """All pieces of a part, one below the other."""
    opened = [piece.open(checkpoint) for piece in pieces]
    return opened[0] if len(opened) == 1 else Stacked(opened)


def find_weights(checkpoint: Checkpoint, dim: int) -> Found:
    """Look through the names and shapes of a checkpoint; `dim` is the width of its residual stream.

    Raises
    ------
    MatrixNotFound
        if no weight has a known name.
    """
    blocks: dict[int, list[tuple[str, TensorEntry]]] = {}
    for entry in checkpoint.tensors().values():
        place = names.in_block(entry.name)
        if place is not None:
            blocks.setdefault(place[0], []).append((place[1], entry))
    config = _text_config(checkpoint.config())
    parts: dict[tuple[int, str], list[Piece]] = {}
    gains: list[Gain] = []
    skipped: list[tuple[str, str]] = []
    for layer in sorted(blocks):
        block = _Block(layer, blocks[layer], dim, config, checkpoint.format == "gguf")
        for part, piece in block.pieces(skipped):
            parts.setdefault((layer, part), []).append(piece)
        gains += block.gains()
    if not parts:
        reason = f"; {skipped[0][0]}: {skipped[0][1]}" if skipped else ""
        raise MatrixNotFound(
            f"{checkpoint.spec} has no weights of blocks under a known name (see repcap inspect --all){reason}"
        )
    return Found(parts, (*gains, *_final(checkpoint, dim, config)), tuple(skipped))


def _text_config(config: Mapping[str, Any]) -> Mapping[str, Any]:
    inner = config.get("text_config")
    return inner if isinstance(inner, dict) and "num_attention_heads" in inner else config


def _offset(config: Mapping[str, Any], gguf: bool) -> float:
    return 1.0 if not gguf and config.get("model_type") in names.ONE_PLUS else 0.0


def _final(checkpoint: Checkpoint, dim: int, config: Mapping[str, Any]) -> list[Gain]:
    """The norm before the unembedding."""
    by_plain = {plain(name): entry for name, entry in checkpoint.tensors().items()}
    for name in names.FINAL_NORMS:
        entry = by_plain.get(name)
        if entry is not None and entry.shape == (dim,):
            return [Gain(None, names.FINAL, entry.name, _offset(config, checkpoint.format == "gguf"))]
    return []


class _Block:
    """One block: its tensors by the names inside it."""

    def __init__(
        self, layer: int, entries: list[tuple[str, TensorEntry]], dim: int, config: Mapping[str, Any], gguf: bool
    ) -> None:
        self._layer, self._entries, self._dim, self._config, self._gguf = layer, entries, dim, config, gguf
        self._known = [(weight, entry) for inner, entry in entries if (weight := names.weight_of(inner)) is not None]
        shapes = [entry.shape for weight, entry in self._known if not weight.writes and len(entry.shape) == 2]
        # Conv1D of GPT-2 stores (in, out). A weight that is not square shows it; it holds for the block's square ones.
        self._turned = any(rows == dim != columns for rows, columns in shapes)

    def pieces(self, skipped: list[tuple[str, str]]) -> list[tuple[str, Piece]]:
        """(part, piece) of every readable weight; the others go to `skipped`."""
        found: list[tuple[str, Piece]] = []
        for weight, entry in self._known:
            if len(entry.shape) != 2 or self._dim not in entry.shape:
                shape = " x ".join(map(str, entry.shape))
                skipped.append((entry.name, f"its shape {shape} has no side of the stream's {self._dim}"))
                if len(entry.shape) == 3:
                    skipped[-1] = (entry.name, f"the experts lie in one tensor of 3 dimensions ({shape})")
                continue
            columns, count = self._orient(weight, entry)
            for part, rows in self._split(weight, count):
                size = count if rows is None else len(rows)
                found.append((part, Piece(entry.name, columns, rows, size)))
        return found

    def _orient(self, weight: Weight, entry: TensorEntry) -> tuple[bool, int]:
        """(one vector a column, number of vectors)."""
        rows, columns = entry.shape
        if rows == columns:
            return weight.writes != self._turned, rows
        return (True, columns) if rows == self._dim else (False, rows)

    def _split(self, weight: Weight, count: int) -> list[tuple[str, np.ndarray | None]]:
        if weight.parts == (names.UP,) and self._doubled(count):
            weight = dataclasses.replace(weight, parts=(names.GATE, names.UP), layout="concat")
        if len(weight.parts) == 1:
            return [(weight.parts[0], None)]
        if weight.parts == (names.GATE, names.UP):
            half = count // 2
            return [(names.GATE, np.arange(half)), (names.UP, np.arange(half, count))]
        labels = self._qkv(self._layout(weight), count)
        if labels is None:
            return [(names.FUSED, None)]
        return [(part, np.flatnonzero(labels == number)) for number, part in enumerate(names.QKV)]

    def _doubled(self, count: int) -> bool:
        """Whether an `up` weight holds the gate, too: it has twice the vectors of `down`, and there is no gate."""
        down = [entry for weight, entry in self._known if weight.parts == (names.DOWN,) and len(entry.shape) == 2]
        gate = any(names.GATE in weight.parts for weight, _ in self._known)
        return not gate and any(count * self._dim == 2 * entry.elements for entry in down)

    def _layout(self, weight: Weight) -> Layout:
        if not weight.name.endswith("query_key_value"):
            return weight.layout
        kind = str(self._config.get("model_type", ""))
        for model_type, key, layout in names.CONFIGURED:
            if kind.lower() == model_type and (key is None or self._config.get(key)):
                return layout
        return weight.layout

    def _qkv(self, layout: Layout, count: int) -> np.ndarray | None:
        """For each vector of a fused weight 0, 1 or 2: q, k or v. None where that cannot be known."""
        queries = self._queries()
        if layout == "concat":
            first = queries if queries is not None else count // 3
            rest, odd = divmod(count - first, 2)
            return None if odd or rest <= 0 else np.repeat([0, 1, 2], [first, rest, rest])
        head = self._head_dim()
        if head is None or count % head:
            return None
        number = np.arange(count) // head
        if layout == "heads":
            return number % 3 if count % (3 * head) == 0 else None
        groups, odd = divmod(count // head - (queries or 0) // head, 2)
        if queries is None or odd or groups < 1 or queries % (head * groups):
            return None
        each = queries // head // groups
        return np.maximum(number % (each + 2) - each + 1, 0)

    def _queries(self) -> int | None:
        """Vectors that are queries: as many as the output projection has inputs."""
        out = [entry for weight, entry in self._known if weight.parts == (names.O,) and len(entry.shape) == 2]
        return out[0].elements // self._dim if out and self._dim in out[0].shape else None

    def _head_dim(self) -> int | None:
        given = self._config.get("head_dim")
        heads = next((self._config[key] for key in ("num_attention_heads", "n_head") if key in self._config), None)
        if isinstance(given, int) and given > 0:
            return given
        return self._dim // heads if isinstance(heads, int) and heads > 0 else None

    def gains(self) -> list[Gain]:
        inside = {inner for inner, _ in self._entries}
        own = bool(inside & {"pre_feedforward_layernorm", "post_feedforward_layernorm"})
        found = []
        for inner, entry in self._entries:
            place = names.NORMS.get(inner)
            if place is None or entry.shape != (self._dim,):
                continue
            if inner == "post_attention_layernorm" and own:
                place = names.ATTN_OUT
            found.append(Gain(self._layer, place, entry.name, _offset(self._config, self._gguf)))
        return found
