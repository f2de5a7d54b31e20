"""Matrices over a remote file: rows come by ranges when they are asked for, and stay in the cache."""

from __future__ import annotations

import contextlib
import functools
import json
import threading
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from repcap.errors import SourceError
from repcap.matrix import MatrixInfo, ProgressFn
from repcap.sources import formats
from repcap.sources.checkpoint import as_rows
from repcap.sources.formats.dtypes import ITEM_BYTES, SAFETENSORS, check_readable, to_real
from repcap.sources.formats.safetensors_header import PREFIX, Header, Span, header_length, parse_header
from repcap.sources.formats.stored_rows import EncodedMatrix, FileRows
from repcap.sources.remote.cache import (
    Commit,
    Fetch,
    TensorFile,
    Write,
    file_name,
    make_directory,
    tensor_header,
    write_bytes,
)
from repcap.sources.remote.journal import Span as Bytes
from repcap.sources.remote.ranges import RangeFile, RangesRefused
from repcap.sources.remote.transfer import Transfer

if TYPE_CHECKING:
    import torch

STORED = {canonical: stored for stored, canonical in SAFETENSORS.items()}
"""Canonical dtype -> what safetensors calls it."""


class RemoteFile:
    """The bytes of one remote file: by ranges, or from the whole file where ranges are refused and that is allowed.

    Parameters
    ----------
    ranges : RangeFile
    folder : Path
        of the cache, for this version of this file; None until the version is known.
    whole : callable, optional
        downloads the whole file and returns its path; None where that is not allowed.
    on_progress : callable, optional
        called with (bytes done, bytes in all) of each transfer.
    """

    def __init__(
        self,
        ranges: RangeFile,
        folder: Path,
        whole: Callable[[], Path] | None = None,
        on_progress: ProgressFn | None = None,
    ) -> None:
        self.ranges, self.folder, self._download, self.on_progress = ranges, folder, whole, on_progress
        self._whole: Path | None = None
        self._lock = threading.Lock()

    @property
    def where(self) -> str:
        return self.ranges.where

    @property
    def size(self) -> int | None:
        """Bytes of the file; known once something has been read."""
        return self.ranges.size if self._whole is None else self._whole.stat().st_size

    def read(self, start: int, stop: int) -> bytes:
        """Bytes start..stop-1. Memory: the range."""
        if self._whole is None:
            try:
                return self.ranges.read(start, stop)
            except RangesRefused as refusal:
                self._fetch_whole(refusal)
        assert self._whole is not None
        with self._whole.open("rb") as opened:
            opened.seek(start)
            return opened.read(stop - start)

    def fetch(self, base: int) -> Fetch:
        """What fills a `TensorFile` whose first byte is byte `base` of this file."""
        transfer = Transfer(self.ranges, base, self.on_progress)

        def bring(spans: list[Bytes], write: Write, commit: Commit) -> None:
            if self._whole is None:
                try:
                    return transfer(spans, write, commit)
                except RangesRefused as refusal:
                    self._fetch_whole(refusal)
            assert self._whole is not None
            _copy(self._whole, base, spans, write, commit)

        return bring

    def _fetch_whole(self, refusal: RangesRefused) -> None:
        """The whole file, where that is allowed; else the refusal."""
        if self._download is None:
            raise refusal
        with self._lock:
            if self._whole is None:
                self._whole = self._download()


def _copy(path: Path, base: int, spans: list[Bytes], write: Write, commit: Commit) -> None:
    with path.open("rb") as opened:
        for start, stop in spans:
            opened.seek(base + start)
            for at in range(start, stop, 1 << 20):
                piece = opened.read(min(1 << 20, stop - at))
                write(at, piece)
                commit(at, at + len(piece))


class RangedRows(FileRows):
    """Rows of a `TensorFile`, fetched before they are read. Threads may share one."""

    def __init__(self, tensor: TensorFile, fetch: Fetch, row_bytes: int, count: int) -> None:
        self.tensor, self.row_bytes, self.count = tensor, row_bytes, count
        self._fetch = fetch

    def have(self, spans: Sequence[Bytes]) -> None:
        """Fetch the rows first..last-1 of each span that are not here yet, all spans at once."""
        width = self.row_bytes
        self.tensor.fill([(start * width, stop * width) for start, stop in spans], self._fetch)

    def read(self, start: int, stop: int) -> np.ndarray:
        self.have([(start, stop)])
        with self._opened() as rows:
            return rows.read(start, stop)

    def columns(self, first: int, last: int) -> np.ndarray:
        self.have([(0, self.count)])
        with self._opened() as rows:
            return rows.columns(first, last)

    def _opened(self) -> contextlib.closing[FileRows]:
        # Opened for each read: the file changes its name when it is whole.
        for _ in range(3):
            with contextlib.suppress(FileNotFoundError):
                rows = FileRows(self.tensor.where, self.tensor.offset, self.row_bytes, self.count)
                return contextlib.closing(rows)
        raise SourceError(f"{self.tensor.path} has vanished from the cache meanwhile: run again")

    def close(self) -> None:
        """Nothing stays open between reads."""


class RemoteMatrix(EncodedMatrix):
    """A matrix whose rows come over the network, each once.

    `read` fetches what it is asked for; `prefetch` fetches many blocks at a time, several requests at once. Memory: as
    `EncodedMatrix`. `bytes_read` counts stored bytes handed out, wherever they came from.
    """

    contiguous = True
    MERGE_BYTES = 1 << 14
    """Scattered rows nearer than this come in one request."""

    _rows: RangedRows

    def prefetch(self, spans: Sequence[tuple[int, int]]) -> None:
        self._rows.have(spans)

    def take(self, indices: Sequence[int]) -> torch.Tensor:
        slack = self.MERGE_BYTES // max(1, self._rows.row_bytes)
        present = sorted({int(index) for index in indices if 0 <= index < self.count})
        self._rows.have(_runs(present, slack))
        return super().take(indices)  # which refuses what is outside


def _runs(indices: Sequence[int], slack: int) -> list[tuple[int, int]]:
    """Sorted row numbers as spans; gaps of up to `slack` rows are bridged."""
    runs: list[tuple[int, int]] = []
    for index in indices:
        if runs and index - runs[-1][1] <= slack:
            runs[-1] = (runs[-1][0], index + 1)
        else:
            runs.append((index, index + 1))
    return runs


class RemoteSafetensors:
    """One remote safetensors file: its header, and matrices over its tensors.

    Cost of the header: two ranges, once; it is kept in the cache.
    """

    def __init__(self, file: RemoteFile, name: str, allow_truncated: bool = False) -> None:
        self.file, self.name, self._allow = file, name, allow_truncated
        self._size: int | None = None

    @functools.cached_property
    def header(self) -> Header:
        kept = kept_header(self.file.folder)
        if kept is not None and len(kept[0]) > PREFIX:
            whole, self._size = kept
        else:
            head = self.file.read(0, PREFIX)
            self._size = self.file.size
            whole = head + self.file.read(PREFIX, PREFIX + header_length(head, self._size, self.file.where))
            keep_header(self.file.folder, whole, self._size, self.file.ranges.content)
        return parse_header(whole[PREFIX:], self._size, self.file.where, self._allow)

    def open(self, name: str, source: str) -> RemoteMatrix:
        """Tensor `name` (which the header has) as rows in stored values; see `Checkpoint.open`."""
        span = self.header.tensors[name]
        where = f"{self.file.where}: tensor {name!r}"
        check_readable(span.dtype, where)
        count, dim = as_rows(span.shape)
        self._check_whole(span, where)
        item = ITEM_BYTES[span.dtype]
        info = MatrixInfo(source=source, name=name, count=count, dim=dim, dtype=span.dtype)
        tensor = cached_tensor(self.file, name, STORED[span.dtype], span.shape, span.stop - span.start)
        rows = RangedRows(tensor, self.file.fetch(span.start), dim * item, count)
        matrix = RemoteMatrix(rows, functools.partial(decode_rows, dtype=span.dtype), info, item_bytes=item)
        matrix.identity = identity(self.file, span.start, span.stop, span.dtype)
        return matrix

    def _check_whole(self, span: Span, where: str) -> None:
        if self.header.truncated and self._size is not None and span.stop > self._size:
            raise SourceError(
                f"{where} lies beyond the end of the truncated file (bytes {span.start} to {span.stop} of "
                f"{self._size}): use another revision or copy"
            )


def cached_tensor(
    file: RemoteFile, name: str, dtype: str, shape: Sequence[int], nbytes: int, **metadata: str
) -> TensorFile:
    """Where a tensor of a remote file is kept. dtype: as safetensors writes it."""
    facts = {"file": file.where, "tensor": name, **metadata}
    header = tensor_header(name, dtype, shape, nbytes, facts)
    return TensorFile(file.folder / f"{file_name(name)}.safetensors", header, nbytes)


def kept_header(folder: Path) -> tuple[bytes, int | None] | None:
    """(beginning of a remote file, its size) as `keep_header` left them; None where they are not as they were."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        about = json.loads((folder / "about.json").read_text(encoding="utf-8"))
        body, size = (folder / "header").read_bytes(), about["size"]
        if zlib.crc32(body) == about["crc"] and (size is None or isinstance(size, int)):
            return body, size
    return None


def identity(file: RemoteFile, start: int, stop: int, kind: str) -> str | None:
    """`Matrix.identity` of bytes start..stop-1 of a remote file, where the Hub has named its content."""
    content = file.ranges.content
    if content is None:
        with contextlib.suppress(OSError, ValueError, AttributeError):
            content = json.loads((file.folder / "about.json").read_text(encoding="utf-8")).get("content")
    return f"{content} {start}-{stop} {kind}" if isinstance(content, str) else None


def keep_header(folder: Path, body: bytes, size: int | None, content: str | None = None) -> None:
    """Keep the beginning of a remote file, its size, what names its content, and a checksum of what is kept."""
    make_directory(folder)
    write_bytes(folder / "header", body)
    write_bytes(folder / "about.json", json.dumps({"size": size, "crc": zlib.crc32(body), "content": content}).encode())


def decode_rows(raw: np.ndarray, dtype: str) -> Any:
    """Bytes of rows as floating numbers."""
    return to_real(formats.from_bytes(raw, dtype))
