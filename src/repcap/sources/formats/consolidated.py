"""Meta's `consolidated.NN.pth`: one file, or tensor-parallel parts that are joined as `params.json` says.

Llama 1 and 2 split `tok_embeddings` over the columns, Llama 3 over the vocabulary; `output` is split over the
vocabulary. The width in `params.json` tells the two apart: where it is missing, nothing is guessed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from repcap.errors import SourceError
from repcap.matrix import Matrix, MatrixInfo, Tokens
from repcap.sources.beside import Folder
from repcap.sources.checkpoint import Checkpoint, TensorEntry
from repcap.sources.formats.memory import dtype_name, tensor_matrix
from repcap.sources.formats.torch_file import TorchCheckpoint, load_tensors
from repcap.sources.names import plain

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
        self.spec, self._files = spec, [numbered[number] for number in range(len(files))]
        self._folder = Folder(files[0].parent)
        self._parts = [load_tensors(file) for file in self._files]

    def config(self) -> dict[str, Any]:
        return self._folder.config

    def tokens(self) -> Tokens | None:
        return self._folder.tokens

    def tensors(self) -> dict[str, TensorEntry]:
        found: dict[str, TensorEntry] = {}
        for name, tensor in self._parts[0].items():
            shape = tuple(tensor.shape)
            if plain(name) in JOINED and len(shape) == 2:
                shape = self._joined_shape(name)
            found[name] = TensorEntry(name, shape, dtype_name(tensor), self._files[0].name)
        return found

    def _pieces(self, name: str) -> list[torch.Tensor]:
        lacking = [file.name for file, part in zip(self._files, self._parts, strict=True) if name not in part]
        if lacking:
            raise SourceError(f"{self.spec}: {lacking[0]} holds no {name!r}: fetch all parts again")
        return [part[name] for part in self._parts]

    def _width(self) -> int | None:
        """d, from params.json, else from the final norm, which every part repeats whole."""
        dim = self.config().get("dim")
        if type(dim) is int and dim > 0:
            return dim
        norm = self._parts[0].get("norm.weight")
        return int(norm.shape[0]) if norm is not None and norm.dim() == 1 else None

    def _axis(self, name: str) -> int | None:
        """0: split over rows, 1: over columns, None: every part holds the whole.

        Raises
        ------
        SourceError
            if params.json and the parts' shapes leave more than one answer, or none.
        """
        pieces = self._pieces(name)
        shapes = [tuple(piece.shape) for piece in pieces]
        width, vocab = self._width(), self.config().get("vocab_size")
        rows = shapes[0][0]
        if width is None:
            raise SourceError(
                f"{self.spec}: {name} is split over {len(pieces)} files, and without `dim` in params.json it is "
                "ambiguous whether by rows or by columns: put params.json beside the files"
            )
        if sum(shape[1] for shape in shapes) == width and len({shape[0] for shape in shapes}) == 1:
            return 1
        if {shape[1] for shape in shapes} != {width}:
            parts = ", ".join(f"{a} x {b}" for a, b in shapes[:4])
            raise SourceError(f"{self.spec}: the parts of {name} ({parts}) do not fit dim = {width} of params.json")
        if type(vocab) is int and vocab > 0 and rows != vocab:
            return 0
        whole = all(piece.shape == pieces[0].shape and _same_rows(piece, pieces[0]) for piece in pieces[1:])
        return None if whole else 0

    def _joined_shape(self, name: str) -> tuple[int, int]:
        pieces, axis = self._pieces(name), self._axis(name)
        rows, columns = int(pieces[0].shape[0]), int(pieces[0].shape[1])
        if axis == 0:
            rows = sum(int(piece.shape[0]) for piece in pieces)
        elif axis == 1:
            columns = sum(int(piece.shape[1]) for piece in pieces)
        return rows, columns

    def open(self, name: str) -> Matrix:
        entry = self.entry(name)
        tensor = self._parts[0][name]
        if tensor.dim() < 2:
            return tensor_matrix(tensor, name, self.spec)
        if plain(name) not in JOINED:
            raise SourceError(
                f"{self.spec}: {name} is split over {len(self._files)} files; only the embedding and the output are "
                "joined: measure one file with FILE.pth::NAME, or use a safetensors copy"
            )
        axis = self._axis(name)
        parts = [tensor_matrix(piece, name, self.spec) for piece in self._pieces(name)]
        if axis is None:
            return parts[0]
        info = MatrixInfo(self.spec, name, entry.shape[0], entry.shape[1], entry.dtype)
        return JoinedMatrix(parts, axis, info)


def open_files(spec: str, files: Sequence[Path], allow_truncated: bool) -> Checkpoint:
    """One part as it is, or all of them joined."""
    if len(files) > 1:
        return ConsolidatedCheckpoint(spec, list(files))
    found = TorchCheckpoint(spec, list(files))
    parts = [item for item in files[0].parent.glob("consolidated.*.pth") if NUMBERED.match(item.name)]
    if NUMBERED.match(files[0].name) and len(parts) > 1:
        found.complete = False
        found.note(f"{files[0].name} is one of {len(parts)} tensor-parallel parts: give the directory to join them")
    return found


def _same_rows(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Whether the first and last rows of two parts agree: then every part repeats the whole."""
    return bool((a[:16] == b[:16]).all() and (a[-16:] == b[-16:]).all())


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
