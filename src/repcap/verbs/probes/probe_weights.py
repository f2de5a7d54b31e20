"""The weights of a checkpoint that read from or write to the residual stream, found by `probe_names`, as rows."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from repcap import geometry
from repcap.errors import MatrixNotFound
from repcap.matrix import Matrix
from repcap.sources.checkpoint import Checkpoint, TensorEntry
from repcap.sources.formats.stored_rows import turned
from repcap.sources.names import plain
from repcap.sources.roles.scales import packed_module
from repcap.sources.roles.select import open_as_rows
from repcap.verbs.probes import probe_names as names
from repcap.verbs.probes.probe_names import Layout, Weight


@dataclasses.dataclass(frozen=True)
class Piece:
    """Rows of one tensor that belong to one part of a block.

    columns: the tensor keeps one vector a column. rows: which vectors of it, None for all. experts: matrices that lie
    in the tensor, one behind the other.
    """

    tensor: str
    columns: bool
    rows: np.ndarray | None
    count: int
    experts: int = 1

    def open(self, checkpoint: Checkpoint) -> Matrix:
        """These vectors as rows, (count, d)."""
        whole = self.experts == 1
        opened = open_as_rows(checkpoint, self.tensor, self.columns and whole, stack=True)
        if self.columns and not whole:
            numbers = np.arange(opened.count).reshape(self.experts, -1)
            opened = geometry.Stacked([turned(geometry.Subset(opened, rows)) for rows in numbers])
        return opened if self.rows is None else geometry.Subset(opened, self.rows)


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
    return opened[0] if len(opened) == 1 else geometry.Stacked(opened)


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
        reason = f"; the first of {len(skipped)}: {skipped[0][0]}: {skipped[0][1]}" if skipped else ""
        raise MatrixNotFound(
            f"{checkpoint.spec} has no weights of blocks that can be read (see repcap inspect --all){reason}"
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
        # Conv1D of GPT-2, and the experts of some families, store (in, out). A weight that is not square shows it; it
        # holds for the square ones of as many dimensions in the block.
        self._turned = {
            len(entry.shape)
            for weight, entry in self._known
            if not weight.writes and len(entry.shape) > 1 and entry.shape[-2] == dim != entry.shape[-1]
        }

    def pieces(self, skipped: list[tuple[str, str]]) -> list[tuple[str, Piece]]:
        """(part, piece) of every readable weight; the others go to `skipped`."""
        found: list[tuple[str, Piece]] = []
        known = {entry.name for _, entry in self._known}
        skipped += [
            (entry.name, why)
            for inner, entry in self._entries
            if entry.name not in known and (why := self._unknown(inner, entry)) is not None
        ]
        for weight, entry in self._known:
            shape = (1, *entry.shape) if len(entry.shape) == 1 else entry.shape
            if len(shape) not in (2, 3) or self._dim not in shape[-2:]:
                size = " x ".join(map(str, entry.shape))
                skipped.append((entry.name, f"its shape {size} has no side of the embedding's {self._dim}"))
                continue
            experts = shape[0] if len(shape) == 3 else 1
            columns, each = self._orient(weight, shape)
            for part, rows in self._split(weight, each):
                chosen = None if rows is None else (rows + each * np.arange(experts)[:, None]).ravel()
                total = each * experts if chosen is None else len(chosen)
                found.append((part, Piece(entry.name, columns, chosen, total, experts)))
        return found

    def _unknown(self, inner: str, entry: TensorEntry) -> str | None:
        """Why a tensor under no known name is worth a word: it may be a weight that meets the stream."""
        packed = packed_module(entry.name)
        if packed is not None:
            return "it is packed: use an unquantised or a GGUF copy"
        shape = entry.shape
        fits = len(shape) in (2, 3) and self._dim in shape[-2:] and min(shape[-2:]) > 1
        adapter = "lora_" in inner
        return "no known name says what it is" if fits and not adapter and self._is_weight(entry) else None

    @staticmethod
    def _is_weight(entry: TensorEntry) -> bool:
        return entry.name.endswith(".weight") or (len(entry.shape) == 3 and not entry.name.endswith("bias"))

    def _orient(self, weight: Weight, shape: tuple[int, ...]) -> tuple[bool, int]:
        """(one vector a column, number of vectors) of one matrix of this shape."""
        rows, columns = shape[-2:]
        if rows == columns:
            return weight.writes != (len(shape) in self._turned), rows
        return (True, columns) if rows == self._dim else (False, rows)

    def _split(self, weight: Weight, count: int) -> list[tuple[str, np.ndarray | None]]:
        """(part, its vectors) of one matrix of `count` vectors; None for all of them."""
        if weight.parts == (names.UP,) and self._doubled(count):
            weight = dataclasses.replace(weight, parts=(names.GATE, names.UP), layout="concat")
        if weight.parts == (names.Q,) and self._gated(count):
            head, number = self._head_dim(), np.arange(count)
            assert head is not None
            return [(part, number[number // head % 2 == at]) for at, part in enumerate((names.Q, names.O_GATE))]
        if len(weight.parts) == 1:
            return [(weight.parts[0], None)]
        if weight.parts == (names.GATE, names.UP):
            number, half = np.arange(count), count // 2
            gate, up = (
                (number[::2], number[1::2]) if self._layout(weight) == "pairs" else (number[:half], number[half:])
            )
            return [(names.GATE, gate), (names.UP, up)]
        labels = self._qkv(self._layout(weight), count)
        if labels is None:
            return [(names.FUSED, None)]
        return [(part, np.flatnonzero(labels == number)) for number, part in enumerate(names.QKV)]

    def _gated(self, count: int) -> bool:
        """Whether half of the `q` vectors are rows of the output's gate."""
        kind = str(self._config.get("model_type", ""))
        queries, head = self._queries(), self._head_dim()
        return kind.startswith(names.GATED_QUERIES) and head is not None and count == 2 * (queries or 0)

    def _doubled(self, count: int) -> bool:
        """Whether an `up` weight holds the gate, too: it has twice the vectors of `down`, and there is no gate."""
        down = [entry for weight, entry in self._known if weight.parts == (names.DOWN,) and len(entry.shape) == 2]
        gate = any(names.GATE in weight.parts for weight, _ in self._known)
        return not gate and any(count * self._dim == 2 * entry.elements for entry in down)

    def _layout(self, weight: Weight) -> Layout:
        kind = str(self._config.get("model_type", "")).lower()
        if self._gguf or weight.layout == "whole":
            return weight.layout
        for model_type, key, value, layout in names.CONFIGURED:
            if kind == model_type and (key is None or self._config.get(key) is value):
                return layout
        return weight.layout

    def _qkv(self, layout: Layout, count: int) -> np.ndarray | None:
        """For each vector of a fused weight 0, 1 or 2: q, k or v. None where that cannot be known."""
        queries = self._queries()
        if layout == "concat":
            first = queries if queries is not None else count // 3
            rest, odd = divmod(count - first, 2)
            return None if odd or rest <= 0 else np.repeat([0, 1, 2], [first, rest, rest])
        if layout == "quarters":
            return None if count % 12 else np.array([0, 2, 1])[np.arange(count) // (count // 12) % 3]
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
        given = self._config.get("head_dim", self._config.get(f"{self._config.get('model_type')}.attention.key_length"))
        heads = next((self._config[key] for key in ("num_attention_heads", "n_head") if key in self._config), None)
        if isinstance(given, int) and given > 0:
            return given
        return self._dim // heads if isinstance(heads, int) and heads > 0 else None

    def gains(self) -> list[Gain]:
        inside = {inner for inner, _ in self._entries}
        found = []
        for inner, entry in self._entries:
            place = names.NORMS.get(inner)
            if place is None or entry.shape != (self._dim,):
                continue
            if inner in names.AFTER_WITH:
                other, signs, there = names.AFTER_WITH[inner]
                place = other if inside.isdisjoint(signs) != there else place
            found.append(Gain(self._layer, place, entry.name, _offset(self._config, self._gguf)))
        return found
