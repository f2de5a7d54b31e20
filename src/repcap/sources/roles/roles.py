"""Which tensor plays which role: the table of `names` matched against a checkpoint's tensors."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Mapping
from typing import Any

from repcap.sources import names
from repcap.sources.checkpoint import Checkpoint, TensorEntry
from repcap.sources.roles.scales import packed_module
from repcap.sources.roles.tying import vocabulary_size

ROLES = ("embedding", "unembedding", "decoder")
MAX_PREFIX = 2
"""Unknown leading components (`policy.`, `student.`) that are tried to be taken off where nothing else matches."""


@dataclasses.dataclass(frozen=True)
class Roles:
    """Tensor names by role; None where the checkpoint has no such tensor under a known name."""

    embedding: str | None = None
    unembedding: str | None = None
    decoder: str | None = None
    family: str | None = None
    """Row of the table that matched; `declared` where the model itself said it."""
    headless: bool = False
    """The family has no unembedding at all, so tying has no meaning."""
    columns: frozenset[str] = frozenset()
    """Tensors that keep one vector a column."""
    decoder_evidence: str = ""
    stacked: str | None = None
    """A decoder of more than two dimensions, which is no matrix."""
    hidden: str | None = None
    """A part of an unembedding that is there in a form that is not read: it must not pass for a missing one."""
    hidden_embedding: str | None = None
    """The same of an embedding."""
    absent: tuple[str, ...] = ()
    """Tensors that an index names and no file holds; they would have had a role."""
    warnings: tuple[str, ...] = ()

    def of(self, name: str) -> str:
        """The role of a tensor."""
        return next((role for role in ROLES if getattr(self, role) == name), "matrix")


def roles_of(checkpoint: Checkpoint) -> Roles:
    """Roles in a checkpoint: what the model itself declares goes before the table.

    Tensors that an index names and no file holds play no role, and neither does an empty unembedding.
    """
    found = _present_roles(checkpoint)
    embedding, unembedding = checkpoint.declared()
    if embedding is None:
        return found
    # A model that declares an embedding and no unembedding may still have a head that it does not declare.
    head = unembedding or (found.unembedding if found.embedding == embedding else None)
    return dataclasses.replace(found, embedding=embedding, unembedding=head, family="declared", headless=False)


def _present_roles(checkpoint: Checkpoint) -> Roles:
    tensors = dict(checkpoint.tensors())
    warnings: list[str] = []
    absent: list[str] = []
    while True:
        found = find_roles(tensors)
        named = [name for name in (found.embedding, found.unembedding, found.decoder) if name]
        away = {name: f"the index names {name}, but no file holds it" for name in named if not checkpoint.holds(name)}
        head = found.unembedding
        absent += away
        if not away and head and checkpoint.format != "module" and not tensors[head].elements:
            away = {head: f"{head} is empty ({tensors[head].size}): it is no unembedding"}
        if not away:
            found = _turned_round(found, tensors, checkpoint.config())
            return dataclasses.replace(found, absent=tuple(absent), warnings=(*warnings, *found.warnings))
        warnings += away.values()
        tensors = {name: entry for name, entry in tensors.items() if name not in away}


def _turned_round(found: Roles, tensors: Mapping[str, TensorEntry], config: Mapping[str, Any]) -> Roles:
    """Token matrices that are kept one token a column, as other frameworks do, by their shapes."""
    width, vocab = config.get("hidden_size"), vocabulary_size(config)
    columns, warnings = set(found.columns), []
    if found.embedding and found.embedding not in columns and width != vocab:
        shape = tensors[found.embedding].shape
        if shape == (width, vocab):
            columns.add(found.embedding)
            warnings.append(
                f"{found.embedding} is {shape[0]} x {shape[1]}, and the config says hidden_size = {width} and "
                f"vocab_size = {vocab}: it is read as one token a column"
            )
    if found.embedding and found.unembedding and not columns:
        first, head = tensors[found.embedding], tensors[found.unembedding]
        if first.is_matrix and first.shape[0] != first.shape[1] and head.shape == first.shape[::-1]:
            columns.add(found.unembedding)
            warnings.append(
                f"{found.unembedding} is {head.size}, the embedding {first.size}: it is read as one token a column"
            )
    return dataclasses.replace(found, columns=frozenset(columns), warnings=(*found.warnings, *warnings))


def _rivals(embedding: str, depth: int, tensors: Mapping[str, TensorEntry]) -> tuple[str, ...]:
    """A warning where other matrices have the embedding's name but for what stands before it: models side by side."""

    def tail(name: str) -> list[str]:
        return names.plain(name).split(".", depth)[depth:]

    same = [name for name in tensors if tail(name) == tail(embedding) and not names.LEFT_OUT.search(name)]
    others = [name for name in same if name != embedding and tensors[name].is_matrix]
    return (f"{' and '.join(others[:3])} could be the embedding, too: {embedding} is taken",) if others else ()


def find_roles(tensors: Mapping[str, TensorEntry]) -> Roles:
    """Match the table of names against tensors."""
    by_plain = _by_plain(tensors.values())
    decoder, turned, evidence = _find_decoder(by_plain)
    columns = {decoder} if decoder and turned else set()
    for depth in range(MAX_PREFIX + 1):
        shown = _without_prefix(by_plain, depth)
        for family in names.FAMILIES:
            patterns = [name for name in family.embedding if not depth or "." in name or "embed" in name]
            embedding = _first(patterns, shown)
            if embedding is None:
                continue
            unembedding = _first(family.unembedding, shown) or _other_head(tensors[embedding], family, by_plain)
            turned_here = {shown[name].name for name in family.columns if name in shown}
            columns |= turned_here & {embedding, unembedding}
            if decoder == unembedding:
                decoder, evidence = None, ""
            return Roles(
                embedding=embedding,
                unembedding=unembedding,
                decoder=decoder,
                family=family.name,
                headless=not family.unembedding,
                columns=frozenset(columns),
                decoder_evidence=evidence,
                hidden=None if unembedding or not family.unembedding else _part_of_head(family, shown, by_plain),
                warnings=_rivals(embedding, depth, tensors),
            )
    head = None if decoder else _lone_head(by_plain)
    if head and names.plain(head) == "unembed.W_U":
        columns.add(head)
    return Roles(
        unembedding=head,
        decoder=decoder,
        hidden_embedding=_part_of_embedding(by_plain),
        stacked=None if decoder else _stacked_decoder(by_plain),
        family="sae" if decoder else None,
        columns=frozenset(columns),
        decoder_evidence=evidence,
    )


def _by_plain(entries: Iterable[TensorEntry]) -> dict[str, TensorEntry]:
    """Plain name -> entry. Packed modules stand under their module's name, so that a packed head is not 'missing'."""
    found: dict[str, TensorEntry] = {}
    for entry in entries:
        if not names.LEFT_OUT.search(entry.name):
            _keep(found, names.plain(packed_module(entry.name) or entry.name), entry)
    return found


def _keep(found: dict[str, TensorEntry], key: str, entry: TensorEntry) -> None:
    """Where two tensors have one plain name, the first matrix among them stays."""
    if key not in found or (entry.is_matrix and not found[key].is_matrix):
        found[key] = entry


def _without_prefix(by_plain: Mapping[str, TensorEntry], depth: int) -> dict[str, TensorEntry]:
    """The entries by their names without the first `depth` components; shorter names fall out."""
    found: dict[str, TensorEntry] = {}
    for key, entry in by_plain.items():
        parts = key.split(".", depth)
        if len(parts) > depth:
            _keep(found, parts[depth], entry)
    return found


def _first(patterns: Iterable[str], by_plain: Mapping[str, TensorEntry]) -> str | None:
    """The first tensor that a pattern means: matrices before others."""
    hits: list[TensorEntry] = []
    for pattern in patterns:
        if pattern.startswith("*.") or "#" in pattern:
            hits.extend(entry for key, entry in by_plain.items() if names.matches(pattern, key))
        elif pattern in by_plain:
            hits.append(by_plain[pattern])
    hits.sort(key=lambda entry: not entry.is_matrix)  # stable: the table's order among equals
    return hits[0].name if hits else None


def _other_head(embedding: TensorEntry, family: names.Family, by_plain: Mapping[str, TensorEntry]) -> str | None:
    """A head under a name that the family's row does not list."""
    if not family.unembedding or not embedding.is_matrix:
        return None
    for head in names.HEADS:
        for key, entry in by_plain.items():
            if (key == head or key.endswith("." + head)) and entry.shape == embedding.shape:
                return entry.name
    return None


def _part_of_head(
    family: names.Family, shown: Mapping[str, TensorEntry], by_plain: Mapping[str, TensorEntry]
) -> str | None:
    """A tensor that lies below the name of an unembedding: the codes of a quantiser, say."""
    for module in family.unembedding:
        for key, entry in shown.items():
            if names.below(key, module) and not entry.name.endswith(".weight"):
                return entry.name
    for module in names.SURE_HEADS:
        for key, entry in by_plain.items():
            _, found, rest = f".{key}".partition(f".{module}.")
            if found and names.below(f"{module}.{rest}", module) and not entry.name.endswith(".weight"):
                return entry.name
    return None


def _part_of_embedding(by_plain: Mapping[str, TensorEntry]) -> str | None:
    """A tensor that lies below the name of an embedding, of one that says much."""
    modules = [
        name for family in names.FAMILIES for name in family.embedding if re.search(r"\w\.\w+|embed_|_embd", name)
    ]
    for key, entry in by_plain.items():
        for module in modules:
            if names.below(key[key.find(module) :], module) and not entry.name.endswith(".weight"):
                return entry.name
    return None


def _lone_head(by_plain: Mapping[str, TensorEntry]) -> str | None:
    """An unembedding in a source without an embedding, by its name; less telling names want the shape of one."""
    for head in names.SURE_HEADS:
        for key, entry in by_plain.items():
            if (key == head or key.endswith("." + head)) and entry.is_matrix:
                return entry.name
    for head in names.HEADS:
        bare = by_plain.get(head)
        if bare is not None and bare.is_matrix and bare.shape[0] >= 4 * bare.shape[1]:
            return bare.name
    return None


def _find_decoder(by_plain: Mapping[str, TensorEntry]) -> tuple[str | None, bool, str]:
    """(tensor, one vector a column, what decided it) of an SAE's decoder."""
    for known in names.DICTIONARIES:
        decoder = by_plain.get(known.decoder)
        if decoder is None or len(decoder.shape) != 2:
            continue
        if known.beside and not any(name in by_plain for name in known.beside):
            continue
        columns, evidence = _orientation(decoder, known, by_plain)
        return decoder.name, columns, evidence
    return None, False, ""


def _stacked_decoder(by_plain: Mapping[str, TensorEntry]) -> str | None:
    decoders = (by_plain[known.decoder] for known in names.DICTIONARIES if known.decoder in by_plain)
    return next((entry.name for entry in decoders if len(entry.shape) > 2), None)


def _orientation(
    decoder: TensorEntry, known: names.Dictionary, by_plain: Mapping[str, TensorEntry]
) -> tuple[bool, str]:
    """Whether a decoder keeps one feature a column: by the biases' lengths, else by the convention of its name."""
    rows, cols = decoder.shape
    if rows != cols:
        for group, length_is_rows in ((names.FEATURE_BIASES, True), (names.INPUT_BIASES, False)):
            for bias in (by_plain[name] for name in group if name in by_plain):
                length = bias.elements if bias.elements == max(bias.shape, default=0) else 0  # (k,), (1, k) or (k, 1)
                if length in (rows, cols):
                    by_row = (length == rows) == length_is_rows
                    what = "one for each feature" if length_is_rows else "one for each input"
                    words = f"{bias.name} has {length} entries, {what}, so {decoder.name} keeps one feature a "
                    return not by_row, words + ("row" if by_row else "column")
    columns = known.columns
    return columns, f"{decoder.name} keeps one feature a {'column' if columns else 'row'}, as is usual for its name"
