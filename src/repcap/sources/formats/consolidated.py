"""Meta's `consolidated.NN.pth`: one file, or tensor-parallel parts that are joined as `params.json` says.

Llama 1 and 2 split `tok_embeddings` over the columns, Llama 3 over the vocabulary; `output` is split over the
vocabulary. The width in `params.json` tells the two apart: where it is missing, nothing is guessed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import torch

from repcap.errors import SourceError
from repcap.matrix import Matrix, MatrixInfo
from repcap.sources.beside import Folder
from repcap.sources.checkpoint import Checkpoint, TensorEntry
from repcap.sources.formats.torch_file import TorchShard
from repcap.sources.formats.torch_file import open_files as open_torch_files
from repcap.sources.names import plain
from repcap.sources.stored_files import DiskFile, Files

NUMBERED = re.compile(r"^consolidated\.[0-9]{1,9}\.pth$")
JOINED = ("tok_embeddings", "output")


class ConsolidatedCheckpoint(Checkpoint):
    """Tensor-parallel parts; the embedding and the unembedding are joined, other tensors are only listed."""

    format = "consolidated"

    def __init__(self, spec: str, files: list[Path]) -> None:
        numbered = {int(file.name.split(".")[1]): file for file in files}
        lacking = next((number for number in range(len(files)) if number not in numbered), None)
        if lacking is not None:
            raise SourceError(f"{files[0].parent} lacks consolidated.{lacking:02d}.pth: fetch all parts")
        self.spec, self.beside = spec, Folder(files[0].parent)
        self._parts = [TorchShard(DiskFile(numbered[number])) for number in range(len(files))]

    def tensors(self) -> dict[str, TensorEntry]:
        found: dict[str, TensorEntry] = {}
        for name, span in self._parts[0].spans.items():
            joined = plain(name) in JOINED and len(span.shape) == 2
            shape = self._joined_shape(name) if joined else span.shape
            found[name] = TensorEntry(name, shape, span.dtype, self._parts[0].name)
        return found

    def _shapes(self, name: str) -> list[tuple[int, ...]]:
        """Of the pieces of a tensor."""
        lacking = [part.name for part in self._parts if name not in part.spans]
        if lacking:
            raise SourceError(f"{self.spec}: {lacking[0]} holds no {name!r}: fetch all parts again")
        return [part.spans[name].shape for part in self._parts]

    def _width(self) -> int | None:
        """d, from params.json, else from the final norm, which every part repeats whole."""
        dim = self.config().get("dim")
        if type(dim) is int and dim > 0:
            return dim
        norm = self._parts[0].spans.get("norm.weight")
        return norm.shape[0] if norm is not None and len(norm.shape) == 1 else None

    def _axis(self, name: str) -> int | None:
        """0: split over rows, 1: over columns, None: every part holds the whole.

        Raises
        ------
        SourceError
            if params.json and the parts' shapes leave more than one answer, or none.
        """
        shapes = self._shapes(name)
        width, vocab = self._width(), self.config().get("vocab_size")
        rows = shapes[0][0]
        if width is None:
            raise SourceError(
                f"{self.spec}: {name} is split over {len(shapes)} files, and without `dim` in params.json it is "
                "ambiguous whether by rows or by columns: put params.json beside the files"
            )
        if sum(shape[1] for shape in shapes) == width and len({shape[0] for shape in shapes}) == 1:
            return 1
        if {shape[1] for shape in shapes} != {width}:
            parts = ", ".join(f"{a} x {b}" for a, b in shapes[:4])
            raise SourceError(f"{self.spec}: the parts of {name} ({parts}) do not fit dim = {width} of params.json")
        if type(vocab) is int and vocab > 0 and rows != vocab:
            return 0
        return None if len(set(shapes)) == 1 and self._all_alike(name) else 0

    def _all_alike(self, name: str) -> bool:
        """Whether the first and last rows of all parts agree: then every part repeats the whole."""
        parts = [part.open(name, self.spec) for part in self._parts]
        n = parts[0].count
        ends = [torch.cat([part.read(0, min(16, n)), part.read(max(0, n - 16), n)]) for part in parts]
        return all(bool((end == ends[0]).all()) for end in ends[1:])

    def _joined_shape(self, name: str) -> tuple[int, int]:
        shapes, axis = self._shapes(name), self._axis(name)
        rows, columns = shapes[0]
        if axis == 0:
            rows = sum(shape[0] for shape in shapes)
        elif axis == 1:
            columns = sum(shape[1] for shape in shapes)
        return rows, columns

    def open(self, name: str) -> Matrix:
        entry = self.entry(name)
        if len(entry.shape) < 2:
            return self._parts[0].open(name, self.spec)
        if plain(name) not in JOINED:
            raise SourceError(
                f"{self.spec}: {name} is split over {len(self._parts)} files; only the embedding and the output are "
                "joined: measure one file with FILE.pth::NAME, or use a safetensors copy"
            )
        axis = self._axis(name)
        parts = [part.open(name, self.spec) for part in self._parts]
        if axis is None:
            return parts[0]
        info = MatrixInfo(self.spec, name, entry.shape[0], entry.shape[1], entry.dtype)
        return JoinedMatrix(parts, axis, info)


def open_files(files: Files) -> Checkpoint:
    """One part as it is, or all of them joined."""
    if len(files.names) > 1:
        return ConsolidatedCheckpoint(files.spec, [files.find(name).whole("") for name in files.names])
    found = open_torch_files(files)
    parts = [name for name in files.here if NUMBERED.match(name)]
    if NUMBERED.match(files.names[0]) and len(parts) > 1:
        found.complete = False
        found.note(f"{files.names[0]} is one of {len(parts)} tensor-parallel parts: give the directory to join them")
    return found


class JoinedMatrix(Matrix):
    """Matrices one below the other (axis 0) or side by side (axis 1). Memory: one block."""

    def __init__(self, parts: Sequence[Matrix], axis: int, info: MatrixInfo) -> None:
        self._parts, self._axis, self.info = list(parts), axis, info

    def read(self, start: int, stop: int) -> torch.Tensor:
        blocks: list[torch.Tensor] = []
        first = 0
        for part in self._parts:
            if self._axis == 1:
                blocks.append(part.read(start, stop))
                continue
            low, high = max(start, first), min(stop, first + part.count)
            if low < high:
                blocks.append(part.read(low - first, high - first))
            first += part.count
        self.bytes_read = sum(part.bytes_read for part in self._parts)
        return torch.cat(blocks, dim=self._axis)

    def take(self, indices: Sequence[int]) -> torch.Tensor:
        if self._axis == 1:
            out = torch.cat([part.take(indices) for part in self._parts], dim=1)
        else:
            wanted = torch.as_tensor(list(indices), dtype=torch.long)
            first, pieces, places = 0, [], []
            for part in self._parts:
                place = ((wanted >= first) & (wanted < first + part.count)).nonzero()[:, 0]
                pieces.append(part.take((wanted[place] - first).tolist()).reshape(-1, self.dim))
                places.append(place)
                first += part.count
            gathered = torch.cat([piece for piece in pieces if len(piece)] or [torch.empty((0, self.dim))])
            out = torch.empty_like(gathered)
            out[torch.cat(places)] = gathered
        self.bytes_read = sum(part.bytes_read for part in self._parts)
        return out

    def close(self) -> None:
        for part in self._parts:
            part.close()
