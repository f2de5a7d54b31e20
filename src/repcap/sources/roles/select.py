"""Which tensor is meant by a role or a name; opened with its scales, its role and what decided it."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Mapping
from typing import Any

from repcap.errors import InputError, MatrixNotFound, SourceError, VectorsError
from repcap.matrix import HEARD, Matrix, Tokens
from repcap.sources import names
from repcap.sources.checkpoint import Checkpoint, TensorEntry
from repcap.sources.formats.dtypes import EIGHT_BIT_FLOATS, is_integer
from repcap.sources.formats.stored_rows import turned
from repcap.sources.roles.roles import ROLES, Roles, roles_of
from repcap.sources.roles.scales import ScaledMatrix, apply_scales, refuse_packed, scale_beside
from repcap.sources.roles.tying import Tying, judge_tying, vocabulary_size
from repcap.sources.tokens import MAX_ID, MappedTokens
from repcap.text import printable

TOKEN_ROLES = ("embedding", "unembedding")


def judge(checkpoint: Checkpoint) -> tuple[Roles, Tying]:
    """Roles and tying of a checkpoint."""
    roles = roles_of(checkpoint)
    if roles.headless:
        return roles, Tying(None, f"the {roles.family} family has no unembedding")
    return roles, judge_tying(checkpoint, roles.embedding, roles.unembedding, roles.columns, roles.hidden)


def choose(checkpoint: Checkpoint, matrix: str = "embedding") -> Matrix:
    """The matrix that `matrix` (a role or a tensor's name) means, with role, tying and evidence in its info.

    Raises
    ------
    MatrixNotFound
        if there is none; the message lists what could be measured.
    InputError
        for `both`, which is two matrices.
    """
    if matrix == "both":
        raise InputError("'both' is two matrices: open 'embedding' and 'unembedding' one after the other")
    roles, tying = judge(checkpoint)
    name, role, evidence = resolve(checkpoint, matrix, roles, tying)
    opened = open_as_rows(checkpoint, name, name in roles.columns)
    is_token_matrix = role in TOKEN_ROLES
    if is_token_matrix:
        opened.tokens = _row_tokens(checkpoint, roles)
    if isinstance(opened, ScaledMatrix):
        evidence = f"{evidence}; scaled by {opened.scale_name}"
    opened.info = dataclasses.replace(
        opened.info,
        source=checkpoint.spec,
        role=role,
        tied=tying.tied if is_token_matrix else None,
        evidence=evidence,
        revision=checkpoint.revision,
        warnings=(
            *checkpoint.warnings,
            *(roles.warnings if role != "matrix" else ()),
            *(tying.warnings if is_token_matrix else ()),
            *_stand_in_warning(matrix, role, name),
            *(token_warnings(opened.count, opened.tokens, checkpoint.config()) if is_token_matrix else ()),
            *_unscaled_warning(checkpoint, name, role),
            *_adapter_warning(checkpoint, name),
        ),
    )
    if (heard := HEARD.get()) is not None:
        heard += ((checkpoint.spec, warning) for warning in opened.info.warnings)
    return opened


def open_as_rows(checkpoint: Checkpoint, name: str, columns: bool = False, stack: bool = False) -> Matrix:
    """Tensor `name` with its scales applied, one vector a row. stack: matrices of 3 dimensions one below the other.

    Raises
    ------
    SourceError
        if it is packed, or partitioned over processes, or its bytes cannot be read.
    VectorsError
        if it has more than two dimensions, but for `stack`.
    """
    entry = checkpoint.entry(name)
    refuse_packed(checkpoint, entry)
    if len(entry.shape) > 2 and not stack:
        dims = entry.size
        where = checkpoint.spec if len(checkpoint.tensors()) == 1 else f"{checkpoint.spec}: tensor {name!r}"
        raise VectorsError(f"{where} has {len(entry.shape)} dimensions ({dims}): give a matrix, one vector a row")
    if entry.shape == (0,):
        raise SourceError(
            f"{checkpoint.spec}: {name} has shape (0,), as DeepSpeed ZeRO-3 leaves a partitioned weight: "
            "gather the parameter first (deepspeed.zero.GatheredParameters)"
        )
    opened = apply_scales(checkpoint, entry, checkpoint.open(name))
    if checkpoint.format == "module" and is_integer(entry.dtype) and not isinstance(opened, ScaledMatrix):
        raise SourceError(
            f"{checkpoint.spec}: {name} holds {entry.dtype} codes of a quantiser: dequantise it first, or load the "
            "model unquantised"
        )
    return turned(opened) if columns else opened


def _row_tokens(checkpoint: Checkpoint, roles: Roles) -> Tokens | None:
    """The tokens by row. model2vec keeps the row of each token in `mapping`, where tokens share rows."""
    tokens, mapping = checkpoint.tokens(), checkpoint.tensors().get("mapping")
    if tokens is None or roles.family != "model2vec" or mapping is None:
        return tokens
    if len(mapping.shape) != 1 or not is_integer(mapping.dtype) or mapping.elements > MAX_ID:
        return tokens
    rows = [int(row) for row in checkpoint.small("mapping").tolist()]
    if rows and not 0 <= min(rows) <= max(rows) <= MAX_ID:
        checkpoint.note(f"no token texts: mapping names rows from {min(rows)} to {max(rows)}")
        return None
    return MappedTokens(tokens, rows)


def _stand_in_warning(asked: str, role: str, name: str) -> tuple[str, ...]:
    if asked != "embedding" or role != "unembedding":
        return ()
    return (f"the source holds no embedding: its unembedding {name} is measured",)


def token_warnings(rows: int | None, tokens: Tokens | None, config: Mapping[str, Any]) -> tuple[str, ...]:
    """What to say of a tokenizer that knows more ids than the matrix has rows, and of a config that wants more."""
    found, vocab = [], vocabulary_size(config)
    if tokens is not None and rows is not None and tokens.count > rows:
        beyond = tokens.count - rows
        found.append(f"the tokenizer knows {tokens.count} ids, the matrix has {rows} rows: {beyond} ids have no row")
    if vocab is not None and rows is not None and vocab > rows:
        found.append(f"the config says vocab_size = {vocab}, the matrix has {rows} rows: it may be a part of one")
    return tuple(found)


def _unscaled_warning(checkpoint: Checkpoint, name: str, role: str) -> tuple[str, ...]:
    entry = checkpoint.entry(name)
    codes = entry.dtype in EIGHT_BIT_FLOATS or (role in TOKEN_ROLES and is_integer(entry.dtype))
    if not codes or scale_beside(checkpoint, entry) is not None:
        return ()
    return (f"{name} is {entry.dtype} and no scale is beside it: it is measured as it is stored",)


def _adapter_warning(checkpoint: Checkpoint, name: str) -> tuple[str, ...]:
    module = name.removesuffix(".weight").removesuffix(".base_layer")
    if not any(other.startswith(f"{module}.lora_") for other in checkpoint.tensors()):
        return ()
    return (f"a LoRA adapter on {module} is not merged: the base weight is measured",)


def resolve(checkpoint: Checkpoint, matrix: str, roles: Roles, tying: Tying) -> tuple[str, str, str]:
    """(tensor, role, evidence) of a role or a name; MatrixNotFound where there is none."""
    tensors = checkpoint.tensors()
    if matrix == "embedding":
        return _embedding(checkpoint, roles, tying)
    if matrix == "unembedding" and roles.unembedding is not None:
        return roles.unembedding, "unembedding", tying.evidence
    if matrix == "unembedding" and roles.embedding is not None:
        if tying.tied:
            return roles.embedding, "unembedding", f"tied ({tying.evidence}): the embedding is measured"
        raise MatrixNotFound(f"{checkpoint.spec} holds no unembedding: {tying.evidence}; measure --matrix embedding")
    if matrix == "decoder" and roles.decoder is None:
        _refuse_stacked(checkpoint, roles)
    if matrix == "decoder" and roles.decoder is not None:
        return roles.decoder, "decoder", roles.decoder_evidence
    found = matrix if matrix in tensors else _by_short_name(matrix, tensors)
    if found is None:
        raise MatrixNotFound(_not_found(checkpoint, matrix))
    role = roles.of(found)
    known = {"matrix": "asked for by name", "decoder": roles.decoder_evidence}
    return found, role, known.get(role, tying.evidence)


def _embedding(checkpoint: Checkpoint, roles: Roles, tying: Tying) -> tuple[str, str, str]:
    """The embedding; in a source without one, an SAE's decoder or the only matrix there is."""
    if roles.embedding is not None:
        return roles.embedding, "embedding", tying.evidence
    if roles.decoder is not None:
        return roles.decoder, "decoder", roles.decoder_evidence
    if roles.hidden_embedding is not None:
        raise MatrixNotFound(
            f"{checkpoint.spec}: an embedding is there in a form that is not read ({roles.hidden_embedding}); name "
            "another tensor with --matrix"
        )
    if not checkpoint.complete:
        also = f"; the unembedding {roles.unembedding} is here: --matrix unembedding" if roles.unembedding else ""
        raise MatrixNotFound(
            f"{checkpoint.spec}: {checkpoint.missing}, and none here holds the embedding{also}; fetch the whole "
            "checkpoint, or name a tensor with --matrix"
        )
    if roles.unembedding is not None:
        return roles.unembedding, "unembedding", tying.evidence
    _refuse_stacked(checkpoint, roles)
    _refuse_adapter(checkpoint)
    if roles.absent:
        return roles.absent[0], "embedding", ""  # opening it says which file should hold it
    tensors = checkpoint.tensors()
    if len(tensors) == 1:
        return next(iter(tensors)), "matrix", "the only tensor of the source"
    matrices = [entry for entry in tensors.values() if len(entry.shape) == 2]
    if len(matrices) == 1:
        return matrices[0].name, "matrix", "the only 2-d tensor of the source"
    raise MatrixNotFound(_not_found(checkpoint, "embedding"))


def _refuse_stacked(checkpoint: Checkpoint, roles: Roles) -> None:
    if roles.stacked is not None:
        entry = checkpoint.entry(roles.stacked)
        raise VectorsError(
            f"{checkpoint.spec}: the decoder {entry.name} has {len(entry.shape)} dimensions ({entry.size}), several "
            "matrices in one: save the one that you mean, one feature a row"
        )


def _refuse_adapter(checkpoint: Checkpoint) -> None:
    """An adapter alone is no model."""
    facts, tensors = checkpoint.facts("adapter_config.json"), checkpoint.tensors()
    lora = all("lora_" in name for name in tensors)
    if not tensors or not (lora or ("peft_type" in facts and checkpoint.adapter)):
        return
    base = facts.get("base_model_name_or_path")
    whose = f"an adapter for {base}" if isinstance(base, str) and base else "an adapter (its base model is not named)"
    way = f"measure {base}" if isinstance(base, str) and base else "measure its base model"
    parts = "LoRA parts" if lora else "parts"
    raise MatrixNotFound(
        f"{checkpoint.spec} holds the {parts} of {whose} and no weights of their own: {way}, or merge the adapter into "
        "it first"
    )


def _by_short_name(matrix: str, tensors: Mapping[str, TensorEntry]) -> str | None:
    """A tensor that is `matrix` but for wrappers and `.weight`, if there is exactly one."""
    wanted = names.plain(matrix)
    hits = [name for name in tensors if names.plain(name) == wanted]
    return hits[0] if len(hits) == 1 else None


def vocabulary_like(checkpoint: Checkpoint) -> list[TensorEntry]:
    """2-d tensors that could be a token matrix, likeliest first: vocab_size rows, or rows >= 4 times columns."""
    vocab = vocabulary_size(checkpoint.config())
    fitting = [
        entry
        for entry in checkpoint.tensors().values()
        if entry.is_matrix
        and not names.LEFT_OUT.search(entry.name)
        and (entry.shape[0] >= 4 * entry.shape[1] or entry.shape[0] == vocab)
    ]
    return sorted(fitting, key=lambda entry: (entry.shape[0] != vocab, -entry.shape[0]))


def _not_found(checkpoint: Checkpoint, matrix: str) -> str:
    spec, tensors = checkpoint.spec, checkpoint.tensors()
    if not tensors:
        return f"{spec} holds no tensors"
    if matrix not in ROLES:
        close = difflib.get_close_matches(matrix, list(tensors), 3, 0.5)
        hint = f"; near to it: {', '.join(map(printable, close))}" if close else ""
        return f"{spec} holds no tensor {matrix!r}{hint}; see repcap inspect {spec}"
    found = vocabulary_like(checkpoint)
    why = "2-d tensors of a vocabulary-like shape"
    if not found:
        found = sorted((e for e in tensors.values() if e.is_matrix), key=lambda entry: -entry.elements)
        why = "its largest 2-d tensors"
    if not found:
        return f"{spec} holds no 2-d tensor, so nothing to measure"
    listed = ", ".join(f"{printable(entry.name)} ({entry.shape[0]} x {entry.shape[1]})" for entry in found[:6])
    return f"{spec} has no {matrix} under a known name; {why}: {listed}; pick one with --matrix NAME"
