"""Which tensor plays which role: the table of `names` matched against a checkpoint's tensors."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping

from repcap.sources import names
from repcap.sources.checkpoint import Checkpoint, TensorEntry
from repcap.sources.roles.scales import packed_module

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

    def of(self, name: str) -> str:
        """The role of a tensor."""
        return next((role for role in ROLES if getattr(self, role) == name), "matrix")


def roles_of(checkpoint: Checkpoint) -> Roles:
    """Roles in a checkpoint: what the model itself declares goes before the table."""
    tensors = checkpoint.tensors()
    found = find_roles(tensors)
    embedding, unembedding = checkpoint.declared()
    if embedding is None:
        return found
    # A model that declares an embedding and no unembedding may still have a head that it does not declare.
    head = unembedding or (found.unembedding if found.embedding == embedding else None)
    return dataclasses.replace(found, embedding=embedding, unembedding=head, family="declared", headless=False)


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
                embedding, unembedding, decoder, family.name, not family.unembedding, frozenset(columns), evidence
            )
    return Roles(
        decoder=decoder, family="sae" if decoder else None, columns=frozenset(columns), decoder_evidence=evidence
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


def _orientation(
    decoder: TensorEntry, known: names.Dictionary, by_plain: Mapping[str, TensorEntry]
) -> tuple[bool, str]:
    """Whether a decoder keeps one feature a column: by the biases' lengths, else by the convention of its name."""
    rows, cols = decoder.shape
    if rows != cols:
        for group, length_is_rows in ((names.FEATURE_BIASES, True), (names.INPUT_BIASES, False)):
            for bias in (by_plain[name] for name in group if name in by_plain):
                if len(bias.shape) == 1 and bias.shape[0] in (rows, cols):
                    by_row = (bias.shape[0] == rows) == length_is_rows
                    what = "one for each feature" if length_is_rows else "one for each input"
                    words = f"{bias.name} has {bias.shape[0]} entries, {what}, so {decoder.name} keeps one feature a "
                    return not by_row, words + ("row" if by_row else "column")
    columns = known.columns
    return columns, f"{decoder.name} keeps one feature a {'column' if columns else 'row'}, as is usual for its name"
