"""`probes`: the weights that read from and write to the residual stream, layer by layer, as sets of directions."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import numpy as np

from repcap import geometry, sources
from repcap.errors import InputError, OptionError, RepcapError
from repcap.laws.limits.existence import random_coherence
from repcap.matrix import Matrix, ProgressFn
from repcap.numerics import Z_DEFAULT
from repcap.options import Device, Layers, Option, Seed, Z, verb
from repcap.verbs.probes.probe_names import ATTN_IN, BEFORE_ATTENTION, MLP_IN, PARTS, WRITES
from repcap.verbs.probes.probe_result import Aligned, GainScale, Part, Probes
from repcap.verbs.probes.probe_weights import Found, Gain, Piece, find_weights, open_part

if TYPE_CHECKING:
    import torch

    from repcap.geometry.epsilon.epsilon import Spread
    from repcap.geometry.nearest.alignment import UnitTable
    from repcap.geometry.rows.reader import RowReader
    from repcap.sources.checkpoint import Checkpoint

ALIGN_WORK = 2e13
"""Up to so many operations every vector is compared with every embedding row without being asked for."""
LEAST_ROWS = 16


@verb
def probes(
    source: Any,
    *,
    layers: Layers = (),
    fold: Annotated[bool, Option("Multiply what reads by the gain of the norm before it.")] = False,
    align_rows: Annotated[
        int | None,
        Option(
            "Compare so many vectors a part with the embedding; 0: none.",
            least=0,
            why="give a number of rows, 0 for none",
        ),
    ] = None,
    z: Z = Z_DEFAULT,
    seed: Seed = 0,
    device: Device = "auto",
    on_progress: ProgressFn | None = None,
) -> Probes:
    """Measure the vectors with which a model's blocks read from and write to its residual stream.

    Rows of q, k, v, gate, up (and routers), columns of o and down, gains of the norms; found by their names
    (`probe_names`). Weights of a block under no known name that are as wide as the stream are listed in `skipped`.
    layers: which blocks, all by default. align_rows: vectors of each part that are compared with the embedding, at
    random; None: all, or as many as 2e13 operations allow; 0: none. on_progress: called with (layers done, layers).

    Cost: O(m d^2) for m vectors, and 2 m n d operations for their alignment with n embedding rows. Memory: the unit
    rows of the embedding where they fit 1 GiB (else they are read again for each layer), blocks of 64 MiB of the
    weights; columns are gathered block by block, a whole weight is never copied to floats.

    Raises
    ------
    SourceError, InputError
        if the source cannot be read, no weight has a known name, or a layer is not there.
    """
    checkpoint = sources.open_checkpoint(source)
    with sources.choose(checkpoint, "embedding") as embedding:
        found = find_weights(checkpoint, embedding.dim)
        blocks = _layers(tuple(layers), found.layers)
        limit = _limit(found, blocks, embedding, align_rows)
        table = geometry.UnitTable(embedding, device) if limit != 0 else None
        walk = _Walk(checkpoint, found, embedding, table, _How(limit, fold, z, seed, device))
        whole = walk.embedding()
        parts: list[Part] = []
        for done, layer in enumerate(blocks):
            parts += walk.layer(layer)
            if on_progress is not None:
                on_progress(done + 1, len(blocks))
        gains = tuple(_scale(checkpoint, gain) for gain in found.gains if gain.layer is None or gain.layer in blocks)
    if not parts:
        raise InputError(f"{checkpoint.spec}: no weight could be read; the first: {': '.join(walk.skipped[0])}")
    return Probes(
        source=checkpoint.spec,
        dim=embedding.dim,
        embedding=whole,
        weights=tuple(parts),
        gains=gains,
        skipped=(*found.skipped, *walk.skipped),
        notes=tuple(_notes(walk.how, align_rows, found, walk.skipped)),
        revision=checkpoint.revision,
    )


def _layers(wanted: tuple[int, ...], there: list[int]) -> list[int]:
    wrong = next((layer for layer in wanted if layer not in there), None)
    if wrong is not None:
        raise OptionError("layers", wrong, f"this model has layers {there[0]}..{there[-1]}")
    return sorted(set(wanted)) or there


def _limit(found: Found, layers: Sequence[int], embedding: Matrix, asked: int | None) -> int | None:
    """Vectors of a part that are compared with the embedding; None for all."""
    if asked is not None:
        return asked
    sizes = [sum(piece.count for piece in pieces) for (layer, _), pieces in found.parts.items() if layer in set(layers)]
    each = ALIGN_WORK / (2.0 * embedding.count * embedding.dim)
    return None if sum(sizes) <= each else max(LEAST_ROWS, int(each / len(sizes)))


def _notes(how: _How, asked: int | None, found: Found, failed: Sequence[tuple[str, str]]) -> list[str]:
    notes = []
    if how.limit:
        why = "as asked" if asked else "to bound the work; `align_rows` takes another number"
        notes.append(
            f"alignment with the embedding is from at most {how.limit} random vectors of each part ({why}): "
            "the largest of all is at least that"
        )
    if how.fold:
        notes.append("what reads is multiplied by the gain of the norm before it")
    if found.skipped or failed:
        tensor, why = (*found.skipped, *failed)[0]
        notes.append(f"{len(found.skipped) + len(failed)} weights are left out; the first: {tensor}: {why}")
    return notes


def _scale(checkpoint: Checkpoint, gain: Gain) -> GainScale:
    values = (checkpoint.small(gain.tensor).double() + gain.offset).numpy()
    size = np.abs(values)
    return GainScale(
        layer=gain.layer,
        place=gain.place,
        tensor=gain.tensor,
        mean=float(values.mean()),
        rms=float(np.sqrt(np.mean(values**2))),
        least=float(size.min()),
        most=float(size.max()),
        small=float((size < 0.1 * np.median(size)).mean()),
    )


class _How(NamedTuple):
    """limit: vectors of a part that are compared with the embedding; None for all."""

    limit: int | None
    fold: bool
    z: float
    seed: int
    device: str


class _Walk:
    """Goes through the blocks of one checkpoint, one open at a time."""

    def __init__(
        self,
        checkpoint: Checkpoint,
        found: Found,
        embedding: Matrix,
        table: UnitTable | None,
        how: _How,
    ) -> None:
        self._checkpoint, self._found, self._embedding = checkpoint, found, embedding
        self._table, self.how = table, how
        self._gains = {(gain.layer, gain.place): gain for gain in found.gains}
        self.skipped: list[tuple[str, str]] = []

    def embedding(self) -> Spread:
        """Mean and standard deviation of the embedding's rows."""
        whole = geometry.spread_of(self._reader(self._embedding), "all", self.how.z)
        if whole is None:
            raise InputError(f"{self._checkpoint.spec}: the embedding has fewer than two rows with a direction")
        return whole

    def _reader(self, matrix: Matrix) -> RowReader:
        return geometry.plain_reader(matrix, self.how.device)

    def layer(self, layer: int) -> list[Part]:
        """All parts of one block; a part that cannot be read is listed and left out."""
        parts, opened = [], []
        try:
            for name in PARTS:
                pieces = self._found.parts.get((layer, name))
                if not pieces:
                    continue
                try:
                    opened.append(self._open(layer, name, pieces))
                except RepcapError as error:
                    self.skipped.append((pieces[0].tensor, str(error)))
                    continue
                try:
                    parts.append(self._part(layer, name, pieces, opened[-1]))
                except RepcapError as error:
                    self.skipped.append((pieces[0].tensor, str(error)))
                    opened.pop().close()
            if self._table is None or not parts:
                return parts
            return self._aligned(parts, opened)
        finally:
            for matrix in opened:
                matrix.close()

    def _open(self, layer: int, name: str, pieces: Sequence[Piece]) -> Matrix:
        matrix = open_part(self._checkpoint, pieces)
        gain = self._gains.get((layer, ATTN_IN if name in BEFORE_ATTENTION else MLP_IN))
        if gain is None and self.how.fold and not _writes(name):
            gain = self._gains.get((layer, ATTN_IN))  # parallel blocks have one norm for both
        if not self.how.fold or _writes(name) or gain is None:
            return matrix
        return geometry.ScaledColumns(matrix, self._checkpoint.small(gain.tensor).double() + gain.offset)

    def _part(self, layer: int, name: str, pieces: Sequence[Piece], matrix: Matrix) -> Part:
        reader = self._reader(matrix)
        first = geometry.first_pass(reader, find_repeats=False)
        norms: torch.Tensor = first.norms
        return Part(
            layer=layer,
            part=name,
            writes=_writes(name),
            tensors=tuple(piece.tensor for piece in pieces),
            count=matrix.count,
            spread=geometry.spread(reader, first, name, self.how.z) if first.count > 1 else None,
            median_norm=float(norms.median()) if first.count else 0.0,
            max_norm=float(norms.max()) if first.count else 0.0,
            aligned=None,
        )

    def _aligned(self, parts: list[Part], opened: list[Matrix]) -> list[Part]:
        """The same parts with their alignment; all of a block go over the embedding together."""
        assert self._table is not None
        chosen = [self._sample(part) for part in parts]
        stacked = geometry.Stacked([geometry.Subset(matrix, rows) for matrix, rows in zip(opened, chosen, strict=True)])
        found = geometry.largest_alignment(stacked, self._table)
        done, at = [], 0
        for part, rows in zip(parts, chosen, strict=True):
            here = slice(at, at + len(rows))
            at += len(rows)
            done.append(dataclasses.replace(part, aligned=self._best(rows, found.cosine[here], found.index[here])))
        return done

    def _sample(self, part: Part) -> np.ndarray:
        if self.how.limit is None or self.how.limit >= part.count:
            return np.arange(part.count)
        seed = (self.how.seed, part.layer, PARTS.index(part.part))
        return np.sort(np.random.default_rng(seed).permutation(part.count)[: self.how.limit])

    def _best(self, rows: np.ndarray, cosine: np.ndarray, index: np.ndarray) -> Aligned | None:
        known = ~np.isnan(cosine)
        if not known.any():
            return None
        at, tokens = int(np.nanargmax(cosine)), self._embedding.tokens
        pairs = float(known.sum()) * self._embedding.count
        return Aligned(
            rows=int(known.sum()),
            largest=float(cosine[at]),
            vector=int(rows[at]),
            row=int(index[at]),
            token=None if tokens is None else tokens.text(int(index[at])),
            mean=float(cosine[known].mean()),
            # k lines have k (k - 1) / 2 pairs: the k that has this many.
            random=random_coherence((1.0 + np.sqrt(1.0 + 8.0 * pairs)) / 2.0, self._embedding.dim),
        )


def _writes(name: str) -> bool:
    return name in WRITES
