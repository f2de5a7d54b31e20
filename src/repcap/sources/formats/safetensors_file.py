"""Local safetensors: one file, or shards with an index that is checked against the shards' own headers."""

from __future__ import annotations

import functools
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from repcap.errors import SourceError
from repcap.matrix import Matrix, MatrixInfo, Tokens
from repcap.sources import formats
from repcap.sources.beside import Folder
from repcap.sources.checkpoint import Checkpoint, TensorEntry, as_rows
from repcap.sources.formats.dtypes import ITEM_BYTES, check_readable, to_real
from repcap.sources.formats.safetensors_header import PREFIX, Header, Span, header_length, parse_header
from repcap.sources.formats.shards import absent_tensor, check_regular, missing_shards, read_index, unreadable_shard
from repcap.sources.formats.stored_rows import EncodedMatrix, FileRows

if TYPE_CHECKING:
    import torch


def read_header(path: str | os.PathLike[str], allow_truncated: bool = False) -> Header:
    """The checked header of a local file. Cost: one read of the header."""
    file = Path(path)
    check_regular(file)
    size = file.stat().st_size
    with file.open("rb") as opened:
        length = header_length(opened.read(PREFIX), size, str(file))
        return parse_header(opened.read(length), size, str(file), allow_truncated)


class SafetensorsCheckpoint(Checkpoint):
    """One file, or the shards of an index.

    The index only says which files there are: what a shard holds is read from its own header. A shard that is missing
    or damaged matters only when a tensor in it is asked for.
    """

    format = "safetensors"

    def __init__(
        self, spec: str, files: list[Path], index: dict[str, str] | None = None, truncated: bool = False
    ) -> None:
        self.spec, self._files, self._index, self._allow = spec, files, index or {}, truncated
        self._folder = Folder(files[0].parent)
        self._own: tuple[str, ...] = ()
        self._headers: dict[str, Header] = {}
        self._broken: dict[str, SourceError] = {}
        for file in files:
            self._load(file)
        if index is None and (missing := missing_shards(files)):
            self.complete = False
            self.missing = f"{missing} of {missing + len(files)} shards are missing"
            self._own += (self.missing,)

    @classmethod
    def from_index(cls, spec: str, index: Path, truncated: bool = False) -> SafetensorsCheckpoint:
        """The shards that `index` names."""
        where = read_index(index)
        files = [index.parent / name for name in sorted(set(where.values()))]
        if not files:
            raise SourceError(f"{index} names no tensor: fetch it again")
        return cls(spec, files, where, truncated)

    def _load(self, file: Path) -> None:
        try:
            header = read_header(file, self._allow)
        except (SourceError, OSError) as error:
            if not self._index:
                raise
            self._broken[file.name] = unreadable_shard(file, error)
            return
        self._headers[file.name] = header
        if extra := file.stat().st_size - header.end:
            self._own += (f"{file.name} has {extra} bytes after its last tensor",) if extra > 0 else ()
        if header.truncated:
            self._own += (f"{file.name} is truncated: only tensors that are whole can be read",)

    def note(self, warning: str) -> None:
        self._own += (warning,)

    @property
    def warnings(self) -> tuple[str, ...]:  # type: ignore[override]
        absent = [f"{name} cannot be read; tensors in it are listed from the index only" for name in self._broken]
        return (*self._own, *absent, *self._folder.warnings)

    @functools.cached_property
    def _spans(self) -> dict[str, tuple[str, Span]]:
        """Tensor -> (file, span), from the headers; the index decides where two shards hold the same name."""
        found: dict[str, tuple[str, Span]] = {}
        for file, header in self._headers.items():
            for name, span in header.tensors.items():
                if name not in found or self._index.get(name) == file:
                    found[name] = (file, span)
        return found

    def tensors(self) -> dict[str, TensorEntry]:
        return self._entries

    @functools.cached_property
    def _entries(self) -> dict[str, TensorEntry]:
        found = {name: TensorEntry(name, span.shape, span.dtype, file) for name, (file, span) in self._spans.items()}
        for name, file in self._index.items():
            if name not in found:  # in a shard that cannot be read, or nowhere
                found[name] = TensorEntry(name, (), "unknown", file)
        return found

    def holds(self, name: str) -> bool:
        return name in self._spans or bool(self._broken)

    def facts(self, name: str) -> dict[str, Any]:
        return self._folder.facts(name)

    def config(self) -> dict[str, Any]:
        return self._folder.config

    def tokens(self) -> Tokens | None:
        return self._folder.tokens

    def open(self, name: str) -> Matrix:
        entry = self.entry(name)
        if name not in self._spans:
            raise absent_tensor(name, entry.file, self._broken)
        file, span = self._spans[name]
        return open_span(self._folder.path / file, span, name, self.spec)


def open_files(spec: str, files: Sequence[Path], allow_truncated: bool) -> SafetensorsCheckpoint:
    """One file, shards, or an index of them."""
    if files[0].suffix.lower() == ".json":
        return SafetensorsCheckpoint.from_index(spec, files[0], allow_truncated)
    return SafetensorsCheckpoint(spec, list(files), None, allow_truncated)


def open_span(path: Path, span: Span, name: str, source: str) -> Matrix:
    """Rows of a checked byte range of a file, whatever wrote it."""
    where = f"{path}: tensor {name!r}"
    check_readable(span.dtype, where)
    count, dim = as_rows(span.shape)
    size = path.stat().st_size
    if span.stop > size:
        raise SourceError(
            f"{where} lies beyond the end of the truncated file (bytes {span.start} to {span.stop} of {size}): "
            "fetch the file again"
        )
    info = MatrixInfo(source=source, name=name, count=count, dim=dim, dtype=span.dtype)
    item = ITEM_BYTES[span.dtype]
    rows = FileRows(path, span.start, dim * item, count)
    return EncodedMatrix(rows, functools.partial(_decode, dtype=span.dtype), info, item_bytes=item)


def _decode(raw: np.ndarray, dtype: str) -> torch.Tensor:
    return to_real(formats.from_bytes(raw, dtype))
