"""What a checkpoint offers: candidate matrices, tying, tokenizer and config facts. Headers only."""

from __future__ import annotations

import dataclasses
from typing import Any

from repcap.sources.checkpoint import Checkpoint
from repcap.sources.select import find_roles, vocabulary_like
from repcap.sources.tying import judge_tying


@dataclasses.dataclass(frozen=True)
class Candidate:
    """A matrix that could be measured."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    file: str
    role: str
    evidence: str


@dataclasses.dataclass(frozen=True)
class Inspection:
    """What `repcap inspect` shows."""

    source: str
    format: str
    revision: str | None
    candidates: tuple[Candidate, ...]
    tied: bool | None
    evidence: str

    def to_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)


def inspect_checkpoint(checkpoint: Checkpoint) -> Inspection:
    tensors = checkpoint.tensors()
    roles = find_roles(tensors)
    tying = judge_tying(checkpoint, roles.embedding, roles.unembedding)
    chosen = [n for n in (roles.embedding, roles.unembedding, roles.decoder) if n]
    chosen += [entry.name for entry in vocabulary_like(checkpoint, tensors) if entry.name not in chosen]
    found = tuple(
        Candidate(name, tensors[name].shape, tensors[name].dtype, tensors[name].file, roles.of(name), "")
        for name in chosen
    )
    return Inspection(checkpoint.spec, checkpoint.format, checkpoint.revision, found, tying.tied, tying.evidence)
