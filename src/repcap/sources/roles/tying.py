"""Whether embedding and unembedding are one matrix: by the values, then by what is missing, then by the config."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from repcap.errors import RepcapError
from repcap.matrix import Matrix
from repcap.sources.checkpoint import Checkpoint
from repcap.sources.formats.stored_rows import turned
from repcap.sources.roles.scales import apply_scales, refuse_packed

SAMPLE_BLOCKS, SAMPLE_ROWS = 8, 16
BLOCK_BYTES = 32 << 20
NESTED = ("text_config", "llm_config", "language_config", "thinker_config", "decoder")
"""Where a multimodal configuration keeps the language model's."""


@dataclasses.dataclass(frozen=True)
class Tying:
    """The verdict, what decided it, and where the config says otherwise."""

    tied: bool | None
    evidence: str
    warnings: tuple[str, ...] = ()


def config_says(config: Mapping[str, Any], depth: int = 0) -> bool | None:
    """`tie_word_embeddings` of a configuration, also under `text_config` and its kin; None where it is not said."""
    value = config.get("tie_word_embeddings")
    if isinstance(value, bool):
        return value
    for key in NESTED if depth < 3 else ():
        inner = config.get(key)
        if isinstance(inner, dict):
            found = config_says(inner, depth + 1)
            if found is not None:
                return found
    return None


def vocabulary_size(config: Mapping[str, Any], depth: int = 0) -> int | None:
    """`vocab_size` of a configuration, also under `text_config` and its kin; None where it is not said."""
    value = config.get("vocab_size")
    if type(value) is int and value > 0:
        return value
    inner = [config[key] for key in NESTED if isinstance(config.get(key), dict)] if depth < 3 else []
    return next((size for part in inner if (size := vocabulary_size(part, depth + 1)) is not None), None)


def judge_tying(
    checkpoint: Checkpoint,
    embedding: str | None,
    unembedding: str | None,
    columns: frozenset[str] = frozenset(),
    hidden: str | None = None,
) -> Tying:
    """Decide by evidence. columns: tensors that keep one vector a column. hidden: a part of a head that is not read.

    Both present: their values are compared, first in sampled row blocks, then (local sources) in all. Head missing:
    tied. The config only decides where neither is possible, and is contradicted aloud.
    """
    if embedding is None:
        return Tying(None, f"{unembedding} is an unembedding by its name" if unembedding else "")
    said = config_says(checkpoint.config())
    if unembedding is None and hidden is not None:
        reason = f"an unembedding is there in a form that is not read ({hidden})"
        return Tying(False if said is False else None, f"{reason}; {_config_words(said)}", (reason,))
    if unembedding is None:
        return _without_head(checkpoint, said)
    try:
        equal, how = _compare(checkpoint, embedding, unembedding, columns)
    except RepcapError as error:
        reason = f"{unembedding} cannot be compared with {embedding} ({error})"
        # A config that says tied is not believed where a head of its own is stored.
        return Tying(False if said is False else None, f"{reason}; {_config_words(said)}", (reason,))
    pair = f"{embedding} and {unembedding}"
    evidence = f"{pair} {how}"
    if said is None or said == equal:
        return Tying(equal, evidence)
    verdict = "tied" if equal else "not tied"
    return Tying(
        equal, evidence, (f"the config says tie_word_embeddings = {str(said).lower()}, but {evidence}: {verdict}",)
    )


def _config_words(said: bool | None) -> str:
    return "the config does not say" if said is None else f"the config says tie_word_embeddings = {str(said).lower()}"


def _without_head(checkpoint: Checkpoint, said: bool | None) -> Tying:
    if not checkpoint.complete or checkpoint.renames:
        return Tying(said, f"{checkpoint.missing}; {_config_words(said)}")
    if checkpoint.adapter:
        return Tying(said, f"an adapter holds only what was trained; {_config_words(said)}")
    evidence = "no unembedding in the source"
    if said is False:
        warning = f"the config says tie_word_embeddings = false, but there is {evidence}: taken as tied"
        return Tying(True, evidence, (warning,))
    return Tying(True, evidence)


def _compare(checkpoint: Checkpoint, left: str, right: str, columns: frozenset[str]) -> tuple[bool, str]:
    """(equal, how it was seen) of two tensors. Memory: one block of rows of each."""
    if checkpoint.same_storage(left, right):
        return True, "share one storage"
    with _open(checkpoint, left, columns) as x, _open(checkpoint, right, columns) as y:
        if (x.count, x.dim) != (y.count, y.dim):
            return False, f"differ in shape ({x.count} x {x.dim} and {y.count} x {y.dim})"
        n = x.count
        for start in range(0, n, max(1, n // SAMPLE_BLOCKS)):
            if not _equal(x, y, start, min(start + SAMPLE_ROWS, n)):
                return False, "differ in values"
        if checkpoint.remote:
            return True, f"are equal in {SAMPLE_BLOCKS} sampled row blocks"
        rows = max(1, BLOCK_BYTES // (4 * max(1, x.dim)))
        for start in range(0, n, rows):
            if not _equal(x, y, start, min(start + rows, n)):
                return False, "differ in values"
    return True, "are equal in every value"


def _open(checkpoint: Checkpoint, name: str, columns: frozenset[str]) -> Matrix:
    entry = checkpoint.entry(name)
    refuse_packed(checkpoint, entry)
    opened = apply_scales(checkpoint, entry, checkpoint.open(name))
    return turned(opened) if name in columns else opened


def _equal(x: Matrix, y: Matrix, start: int, stop: int) -> bool:
    a, b = x.read(start, stop), y.read(start, stop)
    return bool(((a == b) | (a.isnan() & b.isnan())).all())
