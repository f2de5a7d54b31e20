"""What a source offers: candidate matrices, tying, tokenizer and config facts."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from repcap.result import Result
from repcap.sources.checkpoint import Checkpoint, TensorEntry
from repcap.sources.roles.roles import Roles
from repcap.sources.roles.select import judge, resolve, token_warnings, vocabulary_like
from repcap.sources.roles.tying import config_says, vocabulary_size

CONFIG_FACTS = (
    "model_type",
    "architectures",
    "hidden_size",
    "d_model",
    "n_embd",
    "dim",
    "d_in",
    "d_sae",
    "torch_dtype",
    "dtype",
)
"""Keys of a configuration that bear on a measurement; those that are there are shown."""

MAX_LIKE = 8
"""Vocabulary-like tensors without a role that are listed at most (all with `tensors`)."""


@dataclasses.dataclass(frozen=True)
class Candidate:
    """A tensor as it could be measured."""

    name: str
    rows: int | None
    """Vectors; None where the header that says so is missing."""
    dim: int | None
    shape: tuple[int, ...]
    """As stored (a decoder that keeps one vector a column is the other way round)."""
    dtype: str
    file: str
    role: str
    tied: bool | None
    evidence: str
    """What decided role and tying."""


@dataclasses.dataclass(frozen=True, repr=False)
class Inspection(Result):
    """What `repcap inspect` shows."""

    kind = "inspect"
    tells = True

    source: str
    format: str
    """`safetensors`, `gguf`, `pytorch`, `consolidated`, `npy`, `npz`, `module`, `tensor`, `array`."""
    revision: str | None
    family: str | None
    """Row of the table of names that matched, None where none did."""
    tensor_count: int
    parameters: int
    """Elements of all tensors whose shape is known."""
    candidates: tuple[Candidate, ...]
    """Matrices with a role first, then others of a vocabulary-like shape; with `::tensor` that one alone."""
    tensors: tuple[Candidate, ...]
    """Every tensor."""
    tied: bool | None
    evidence: str
    token_count: int | None
    """Ids that the tokenizer knows; None without a tokenizer."""
    vocab_size: int | None
    """As the config says."""
    padding_rows: int | None
    """Rows of the embedding at or beyond the tokenizer's ids."""
    config: dict[str, Any]
    warnings: tuple[str, ...]

    @property
    def problems(self) -> tuple[str, ...]:
        """What a check complains of: rows without a token, and every warning (tokens without a row are one)."""
        padding = (f"{self.padding_rows} rows of the embedding have no token",) if self.padding_rows else ()
        return (*padding, *self.warnings)

    @property
    def title(self) -> str:
        return self.source

    @property
    def numbers(self) -> str:
        """Format, size, family and commit."""
        parts = [self.format, f"{self.tensor_count} tensors", f"{self.parameters:,} elements"]
        if self.family:
            parts.append(f"names as in {self.family}" if self.family != "declared" else "roles as the model declares")
        if self.revision:
            parts.append(f"commit {self.revision[:12]}")
        return ", ".join(parts)

    @property
    def reading(self) -> str:
        verdict = {True: "tied", False: "not tied", None: "tying unknown"}[self.tied]
        return f"{verdict}: {self.evidence}" if self.evidence else ""

    def rows(self) -> list[dict[str, Any]]:
        """One row a tensor."""
        return [dataclasses.asdict(tensor) for tensor in self.tensors]


def inspect_checkpoint(checkpoint: Checkpoint, tensor: str | None = None) -> Inspection:
    """Look at headers, and at sampled rows where embedding and unembedding have to be compared.

    tensor: a name or a role; the only candidate then. Cost: headers, 256 rows (every row where those are equal), and
    the tokenizer file.

    Raises
    ------
    MatrixNotFound
        if there is no `tensor`.
    """
    tensors = checkpoint.tensors()
    roles, tying = judge(checkpoint)
    config, tokens = checkpoint.config(), checkpoint.tokens()
    named = [name for name in (roles.embedding, roles.unembedding, roles.decoder) if name]
    like = [entry.name for entry in vocabulary_like(checkpoint) if entry.name not in named][:MAX_LIKE]
    if not named and not like:
        like = [name for name, entry in tensors.items() if entry.is_matrix][:MAX_LIKE]
    shown = [*named, *like] if tensor is None else [resolve(checkpoint, tensor, roles, tying)[0]]

    def candidate(entry: TensorEntry) -> Candidate:
        return _candidate(entry, roles, tying.tied, tying.evidence)

    by_token = roles.embedding or roles.unembedding
    rows = candidate(tensors[by_token]).rows if by_token else None
    return Inspection(
        source=checkpoint.spec,
        format=checkpoint.format,
        revision=checkpoint.revision,
        family=roles.family,
        tensor_count=len(tensors),
        parameters=sum(entry.elements for entry in tensors.values() if entry.dtype != "unknown"),
        candidates=tuple(candidate(tensors[name]) for name in shown),
        tensors=tuple(candidate(entry) for entry in tensors.values()),
        tied=tying.tied,
        evidence=tying.evidence,
        token_count=tokens.count if tokens else None,
        vocab_size=vocabulary_size(config),
        padding_rows=max(0, rows - tokens.count) if tokens and rows is not None else None,
        config=_facts(config),
        warnings=(*checkpoint.warnings, *roles.warnings, *tying.warnings, *token_warnings(rows, tokens, config)),
    )


def _candidate(entry: TensorEntry, roles: Roles, tied: bool | None, tying_evidence: str) -> Candidate:
    role = roles.of(entry.name)
    known = entry.dtype != "unknown" and len(entry.shape) == 2
    shape = entry.shape[::-1] if known and entry.name in roles.columns else entry.shape
    token_matrix = role in ("embedding", "unembedding")
    evidence = {"matrix": "", "decoder": roles.decoder_evidence}.get(role, tying_evidence)
    return Candidate(
        name=entry.name,
        rows=shape[0] if known else None,
        dim=shape[1] if known else None,
        shape=entry.shape,
        dtype=entry.dtype,
        file=entry.file,
        role=role,
        tied=tied if token_matrix else None,
        evidence=evidence,
    )


def _is_fact(value: Any) -> bool:
    """A text, a number, or a list of such."""
    return isinstance(value, (str, int)) or (
        isinstance(value, list) and all(isinstance(item, (str, int)) for item in value)
    )


def _facts(config: Mapping[str, Any]) -> dict[str, Any]:
    facts = {key: config[key] for key in CONFIG_FACTS if _is_fact(config.get(key))}
    said = config_says(config)
    if said is not None:
        facts["tie_word_embeddings"] = said
    quantisation = config.get("quantization_config")
    if isinstance(quantisation, dict):
        facts["quantization"] = str(quantisation.get("quant_method", "unnamed"))
    return facts
