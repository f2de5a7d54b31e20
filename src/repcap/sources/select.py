"""Which tensor is meant, what it is, and whether embedding and unembedding are one: judged from any Checkpoint."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Iterable, Mapping

from repcap.errors import InputError, MatrixNotFound, SourceError
from repcap.matrix import Matrix
from repcap.sources import names
from repcap.sources.checkpoint import Checkpoint, TensorEntry
from repcap.sources.rows import TransposedMatrix
from repcap.sources.scales import apply_scales, packed_module, refuse_packed
from repcap.sources.tying import Tying, judge_tying

ROLES = ("embedding", "unembedding", "decoder")


@dataclasses.dataclass(frozen=True)
class Roles:
    """Tensor names by role; None where the checkpoint has no such tensor under a known name."""

    embedding: str | None = None
    unembedding: str | None = None
    decoder: str | None = None
    family: str | None = None
    columns: frozenset[str] = frozenset()
    """Tensors that keep one vector a column."""
    decoder_evidence: str = ""

    def of(self, name: str) -> str:
        """The role of a tensor."""
        return next((role for role in ROLES if getattr(self, role) == name), "matrix")


def find_roles(tensors: Mapping[str, TensorEntry]) -> Roles:
    """Match the table of names against a checkpoint's tensors."""
    by_plain = _by_plain(tensors.values())
    decoder, columns, evidence = _find_decoder(by_plain)
    if decoder is not None:
        kept = frozenset({decoder}) if columns else frozenset()
        return Roles(decoder=decoder, family="sae", columns=kept, decoder_evidence=evidence)
    for family in names.FAMILIES:
        embedding = _first(family.embedding, by_plain)
        if embedding is None:
            continue
        unembedding = _first(family.unembedding, by_plain)
        turned = [name for name in (embedding, unembedding) if name and names.plain(name) in family.columns]
        return Roles(embedding, unembedding, None, family.name, frozenset(turned))
    return Roles()


def _by_plain(entries: Iterable[TensorEntry]) -> dict[str, TensorEntry]:
    """Plain name -> entry. Packed modules stand under their module's name, so that a packed head is not 'missing'."""
    found: dict[str, TensorEntry] = {}
    for entry in entries:
        if names.LEFT_OUT.search(entry.name):
            continue
        key = names.plain(packed_module(entry.name) or entry.name)
        if key not in found or (entry.is_matrix and not found[key].is_matrix):
            found[key] = entry
    return found


def _first(patterns: Iterable[str], by_plain: Mapping[str, TensorEntry]) -> str | None:
    """The first tensor that a pattern means: matrices before others."""
    hits: list[TensorEntry] = []
    for pattern in patterns:
        if pattern.startswith("*."):
            hits.extend(entry for key, entry in by_plain.items() if names.matches(pattern, key))
        elif pattern in by_plain:
            hits.append(by_plain[pattern])
    hits.sort(key=lambda entry: not entry.is_matrix)  # stable: the table's order among equals
    return hits[0].name if hits else None


def _find_decoder(by_plain: Mapping[str, TensorEntry]) -> tuple[str | None, bool, str]:
    """(tensor, one vector a column, what decided it) of an SAE's decoder."""
    for entry in names.DICTIONARIES:
        decoder = by_plain.get(entry.decoder)
        if decoder is None or len(decoder.shape) != 2:
            continue
        if entry.beside and not any(name in by_plain for name in entry.beside):
            continue
        columns, evidence = _orientation(decoder, entry, by_plain)
        return decoder.name, columns, evidence
    return None, False, ""


def _orientation(
    decoder: TensorEntry, known: names.Dictionary, by_plain: Mapping[str, TensorEntry]
) -> tuple[bool, str]:
    """Whether a decoder keeps one feature a column: by the biases' lengths, else by the convention of its name."""
    rows, cols = decoder.shape
    if rows != cols:
        for group, length_is_rows in ((names.FEATURE_BIASES, True), (names.INPUT_BIASES, False)):
            for name in group:
                bias = by_plain.get(name)
                if bias is None or len(bias.shape) != 1 or bias.shape[0] not in (rows, cols):
                    continue
                as_rows = (bias.shape[0] == rows) == length_is_rows
                what = "features" if length_is_rows else "inputs"
                return not as_rows, f"{bias.name} has {bias.shape[0]} {what}"
    if known.columns is not None:
        return known.columns, f"{decoder.name} keeps one feature a {'column' if known.columns else 'row'}"
    columns = known.decoder != "W_dec"  # nn.Linear(k, d) stores (d, k)
    return columns, f"{decoder.name} keeps one feature a {'column' if columns else 'row'} by convention"


def choose(checkpoint: Checkpoint, matrix: str = "embedding") -> Matrix:
    """The matrix that `matrix` (a role or a tensor's name) means, with role, tying and evidence in its info.

    Raises
    ------
    MatrixNotFound
        if there is none; the message lists what could be measured.
    """
    if matrix == "both":
        raise InputError("'both' is two matrices: open 'embedding' and 'unembedding' one after the other")
    tensors = checkpoint.tensors()
    roles = find_roles(tensors)
    tying = judge_tying(checkpoint, roles.embedding, roles.unembedding)
    name, role, evidence = _resolve(checkpoint, matrix, tensors, roles, tying)
    opened = open_as_rows(checkpoint, name, name in roles.columns)
    tied = tying.tied if role in ("embedding", "unembedding") else None
    opened.info = dataclasses.replace(
        opened.info,
        source=checkpoint.spec,
        role=role,
        tied=tied,
        evidence=evidence,
        revision=checkpoint.revision,
        warnings=(*checkpoint.warnings, *(tying.warnings if tied is not None else ())),
    )
    if role in ("embedding", "unembedding"):
        opened.tokens = checkpoint.tokens()
        late = [warning for warning in checkpoint.warnings if warning not in opened.info.warnings]
        if late:
            opened.info = dataclasses.replace(opened.info, warnings=(*opened.info.warnings, *late))
    return opened


def open_as_rows(checkpoint: Checkpoint, name: str, columns: bool = False) -> Matrix:
    """Tensor `name` with its scales applied, one vector a row."""
    entry = checkpoint.entry(name)
    refuse_packed(checkpoint, entry)
    if entry.shape == (0,):
        raise SourceError(
            f"{name} is partitioned (shape (0,), as DeepSpeed ZeRO-3 leaves it): gather the parameter first "
            "(deepspeed.zero.GatheredParameters)"
        )
    opened = apply_scales(checkpoint, entry, checkpoint.open(name))
    if not columns:
        return opened
    info = dataclasses.replace(opened.info, count=opened.dim, dim=opened.count)
    return TransposedMatrix(opened, info)


def _resolve(
    checkpoint: Checkpoint, matrix: str, tensors: Mapping[str, TensorEntry], roles: Roles, tying: Tying
) -> tuple[str, str, str]:
    """(tensor, role, evidence) of a role or a name."""
    if matrix == "embedding":
        return _embedding(checkpoint, tensors, roles, tying)
    if matrix == "unembedding" and roles.embedding is not None:
        if roles.unembedding is not None:
            return roles.unembedding, "unembedding", tying.evidence
        if tying.tied:
            return roles.embedding, "unembedding", tying.evidence
        raise MatrixNotFound(f"{checkpoint.spec} holds no unembedding: {tying.evidence}; measure --matrix embedding")
    if matrix == "decoder" and roles.decoder is not None:
        return roles.decoder, "decoder", roles.decoder_evidence
    found = matrix if matrix in tensors else _by_short_name(matrix, tensors)
    if found is None:
        raise MatrixNotFound(_not_found(checkpoint, matrix, tensors))
    role = roles.of(found)
    return found, role, "asked for by name" if role == "matrix" else tying.evidence or roles.decoder_evidence


def _embedding(
    checkpoint: Checkpoint, tensors: Mapping[str, TensorEntry], roles: Roles, tying: Tying
) -> tuple[str, str, str]:
    if roles.embedding is not None:
        return roles.embedding, "embedding", tying.evidence
    if roles.decoder is not None:
        return roles.decoder, "decoder", roles.decoder_evidence
    if len(tensors) == 1:
        return next(iter(tensors)), "matrix", "the only tensor of the source"
    matrices = [entry for entry in tensors.values() if len(entry.shape) == 2]
    if len(matrices) == 1:
        return matrices[0].name, "matrix", "the only 2-d tensor of the source"
    raise MatrixNotFound(_not_found(checkpoint, "embedding", tensors))


def _by_short_name(matrix: str, tensors: Mapping[str, TensorEntry]) -> str | None:
    """A tensor that is `matrix` but for wrappers and `.weight`, if there is exactly one."""
    wanted = names.plain(matrix)
    hits = [name for name in tensors if names.plain(name) == wanted]
    return hits[0] if len(hits) == 1 else None


def vocabulary_like(checkpoint: Checkpoint, tensors: Mapping[str, TensorEntry]) -> list[TensorEntry]:
    """2-d tensors that could be a token matrix, likeliest first: many more rows than columns, or vocab_size rows."""
    config = checkpoint.config()
    vocab = config.get("vocab_size")
    vocab = vocab if isinstance(vocab, int) else None
    fitting = [
        entry
        for entry in tensors.values()
        if entry.is_matrix
        and not names.LEFT_OUT.search(entry.name)
        and (entry.shape[0] >= 4 * entry.shape[1] or (vocab is not None and entry.shape[0] == vocab))
    ]
    return sorted(fitting, key=lambda entry: (entry.shape[0] != vocab, -entry.shape[0]))


def _not_found(checkpoint: Checkpoint, matrix: str, tensors: Mapping[str, TensorEntry]) -> str:
    spec = checkpoint.spec
    if not tensors:
        return f"{spec} holds no tensors"
    if matrix not in ROLES:
        close = difflib.get_close_matches(matrix, list(tensors), 3, 0.5)
        hint = f"; near to it: {', '.join(close)}" if close else ""
        return f"{spec} holds no tensor {matrix!r}{hint}; see repcap inspect {spec}"
    found = vocabulary_like(checkpoint, tensors)
    why = "2-d tensors of a vocabulary-like shape"
    if not found:
        found = sorted((e for e in tensors.values() if e.is_matrix), key=lambda entry: -entry.elements)
        why = "its largest 2-d tensors"
    if not found:
        return f"{spec} holds no 2-d tensor, so nothing to measure"
    listed = ", ".join(f"{entry.name} ({entry.shape[0]} x {entry.shape[1]})" for entry in found[:6])
    return f"{spec} has no {matrix} under a known name; {why}: {listed}; pick one with --matrix NAME"
