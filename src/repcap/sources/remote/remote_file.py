"""A remote file: its rows come by ranges when they are asked for, and stay in the cache."""

from __future__ import annotations

import contextlib
import json
import threading
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np

from repcap.errors import RemoteError, SourceError
from repcap.matrix import ProgressFn
from repcap.sources.formats.stored_rows import FileRows
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
from repcap.sources.stored_files import Shift, StoredFile

T = TypeVar("T")


class RemoteFile(StoredFile):
    """The bytes of one remote file: by ranges, or from the whole file where ranges are refused and that is allowed.

    Parameters
    ----------
    name : str
    ranges : RangeFile
    folder : Path
        of the cache, for this version of this file; None until the version is known.
    whole : callable, optional
        downloads the whole file and returns its path; None where that is not allowed.
    on_progress : callable, optional
        called with (bytes done, bytes in all) of each transfer.
    """

    again = "use another revision or copy"

    def __init__(
        self,
        name: str,
        ranges: RangeFile,
        folder: Path,
        whole: Callable[[], Path] | None = None,
        on_progress: ProgressFn | None = None,
    ) -> None:
        self.name, self.where = name, ranges.where
        self.ranges, self.folder, self._download, self.on_progress = ranges, folder, whole, on_progress
        self._whole: Path | None = None
        self._size: int | None = None
        self._lock = threading.Lock()

    @property
    def size(self) -> int | None:
        """Bytes of the file; known once something has been read, or its header is kept."""
        return (self.ranges.size or self._size) if self._whole is None else self._whole.stat().st_size

    def header(self, read: Callable[[], bytes], parse: Callable[[bytes], T]) -> T:
        kept = self._kept()
        if kept is not None:
            self._size = kept[1]
            with contextlib.suppress(ValueError, TypeError, KeyError), self._far():
                return parse(kept[0])
        with self._far():
            body = read()
            self._keep(body)
            return parse(body)

    @contextlib.contextmanager
    def _far(self) -> Iterator[None]:
        """What readers say of a damaged file, with the way out that there is here."""
        try:
            yield
        except SourceError as error:
            if not str(error).endswith("fetch it again"):
                raise
            raise RemoteError(str(error).removesuffix("fetch it again") + self.again) from error

    def _kept(self) -> tuple[bytes, int | None] | None:
        """(what `header` has read, size of the file) as `_keep` left them; None where they are not as they were."""
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            about = json.loads((self.folder / "about.json").read_text(encoding="utf-8"))
            body, size = (self.folder / "header").read_bytes(), about["size"]
            if zlib.crc32(body) == about["crc"] and (size is None or isinstance(size, int)):
                return body, size
        return None

    def _keep(self, body: bytes) -> None:
        """Keep a header, the size of the file, what names its content, and a checksum of what is kept."""
        make_directory(self.folder)
        write_bytes(self.folder / "header", body)
        about = {"size": self.size, "crc": zlib.crc32(body), "content": self.ranges.content}
        write_bytes(self.folder / "about.json", json.dumps(about).encode())

    def identity(self, start: int, stop: int, kind: str) -> str | None:
        """Where the Hub has named the content of the file."""
        content = self.ranges.content
        if content is None:
            with contextlib.suppress(OSError, ValueError, AttributeError):
                content = json.loads((self.folder / "about.json").read_text(encoding="utf-8")).get("content")
        return f"{content} {start}-{stop} {kind}" if isinstance(content, str) else None

    def rows(
        self, name: str, start: int, shape: tuple[int, int], item: int, shift: Shift | None = None, **facts: str
    ) -> FileRows:
        nbytes = shape[0] * shape[1] * item
        dtype = facts.pop("dtype")
        header = tensor_header(name, dtype, shape, nbytes, {"file": self.where, "tensor": name, **facts})
        kept = TensorFile(self.folder / f"{file_name(name)}.safetensors", header, nbytes)

        def fetch(spans: list[Bytes], write: Write, commit: Commit) -> None:
            self._bring(start + (shift() if shift else 0), spans, write, commit)

        return RangedRows(kept, fetch, shape[1] * item, shape[0])

    def whole(self, why: str) -> Path:
        if self._download is None:
            cost = f"{self.size / 1e6:,.0f} MB" if self.size else "the whole of it"
            raise RemoteError(
                f"{self.where}: {why}, so this would download {cost}: pass --allow-full-download to do that"
            )
        return self._have_whole()

    def read(self, start: int, stop: int) -> bytes:
        """Bytes start..stop-1. Memory: the range."""
        if self._whole is None:
            try:
                return self.ranges.read(start, stop)
            except RangesRefused:
                if self._download is None:
                    raise
        with self._have_whole().open("rb") as opened:
            opened.seek(start)
            return opened.read(stop - start)

    def _bring(self, base: int, spans: list[Bytes], write: Write, commit: Commit) -> None:
        """Fetch spans of what begins at byte `base` of this file."""
        if self._whole is None:
            try:
                return Transfer(self.ranges, base, self.on_progress)(spans, write, commit)
            except RangesRefused:
                if self._download is None:
                    raise
        _copy(self._have_whole(), base, spans, write, commit)

    def _have_whole(self) -> Path:
        """The whole file, which may be downloaded."""
        with self._lock:
            if self._whole is None:
                assert self._download is not None
                self._whole = self._download()
            return self._whole


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

    far = True

    def __init__(self, tensor: TensorFile, fetch: Fetch, row_bytes: int, count: int) -> None:
        self.tensor, self.row_bytes, self.count = tensor, row_bytes, count
        self._fetch = fetch

    def have(self, spans: Sequence[Bytes]) -> None:
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
