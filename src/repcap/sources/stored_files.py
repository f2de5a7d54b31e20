"""Files of a checkpoint, on the disk or far away: all that formats know of where bytes come from."""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import TypeVar

from repcap.errors import SourceError
from repcap.matrix import Matrix, MatrixInfo
from repcap.sources.beside import MAX_JSON, Beside, Folder
from repcap.sources.checkpoint import as_rows
from repcap.sources.formats.dtypes import ITEM_BYTES, SAFETENSORS, check_readable
from repcap.sources.formats.safetensors_header import Span
from repcap.sources.formats.stored_rows import Decode, EncodedMatrix, FileRows, KeptMatrix, decode_rows

T = TypeVar("T")
STORED = {canonical: stored for stored, canonical in SAFETENSORS.items()}
"""Canonical dtype -> what safetensors calls it."""
Shift = Callable[[], int]
"""Bytes between where a tensor is said to begin and where it does, for a format that tells them only beside it."""


class StoredFile(ABC):
    """One file. Threads may share one."""

    name: str
    where: str
    """Its name in messages."""
    again: str
    """What to do about a damaged one."""
    path: Path | None = None
    """Where it lies, if it is on the disk."""

    @property
    @abstractmethod
    def size(self) -> int | None:
        """Bytes; None where a server does not say, or nothing has been read yet."""

    @abstractmethod
    def read(self, start: int, stop: int) -> bytes:
        """Bytes start..stop-1, fewer where the file ends before. Memory: the range."""

    def header(self, read: Callable[[], bytes], parse: Callable[[bytes], T]) -> T:
        """What `parse` makes of what `read` gives: some of the file's bytes, or facts from them. A far file keeps it.

        `read` is not called where it is kept and `parse` takes it (raises no ValueError, TypeError or KeyError).
        """
        return parse(read())

    @abstractmethod
    def whole(self, why: str) -> Path:
        """The whole file on the disk. why: a clause for the message where it would have to be downloaded."""

    @abstractmethod
    def rows(
        self, name: str, start: int, shape: tuple[int, int], item: int, shift: Shift | None = None, **facts: str
    ) -> FileRows:
        """Rows of a matrix whose bytes begin at `start`: `shape` is (rows, elements), `item` the bytes of one.

        name: of the tensor. shift: asked for when the first row is read. facts: `dtype` as safetensors writes it, and
        what should stand beside a kept copy.
        """

    def identity(self, start: int, stop: int, kind: str) -> str | None:
        """`Matrix.identity` of bytes start..stop-1, where it is known without reading them."""
        return None

    def matrix(
        self,
        info: MatrixInfo,
        start: int,
        width: int,
        decode: Decode,
        item: int,
        keep: bool = False,
        shift: Shift | None = None,
        **facts: str,
    ) -> EncodedMatrix:
        """Rows of `width` bytes each from byte `start` on, as `decode` makes them numbers.

        item: bytes of an element, 0 where it has none of its own. keep: see `KeptMatrix`.

        Raises
        ------
        SourceError
            if the file ends before they do.
        """
        stop = start + info.count * width
        if self.size is not None and stop > self.size:
            raise SourceError(
                f"{self.where}: tensor {info.name!r} lies beyond the end of the truncated file (bytes {start} to "
                f"{stop} of {self.size}): {self.again}"
            )
        shape = (info.count, width // item if item else width)
        rows = self.rows(info.name, start, shape, item or 1, shift, **facts)
        found = (KeptMatrix if keep else EncodedMatrix)(rows, decode, info, item_bytes=item)
        found.identity = self.identity(start, stop, info.dtype)
        return found

    def open_span(self, span: Span, name: str, source: str, shift: Shift | None = None) -> Matrix:
        """Rows of a checked byte range, whatever wrote it, in stored values; see `Checkpoint.open`."""
        check_readable(span.dtype, f"{self.where}: tensor {name!r}")
        count, dim = as_rows(span.shape)
        info = MatrixInfo(source=source, name=name, count=count, dim=dim, dtype=span.dtype)
        item = ITEM_BYTES[span.dtype]
        decode = functools.partial(decode_rows, dtype=span.dtype)
        return self.matrix(info, span.start, dim * item, decode, item, shift=shift, dtype=STORED[span.dtype])


class Files(ABC):
    """The files of one checkpoint, in a directory, on the Hub or at an address."""

    spec: str
    """The source as the user gave it."""
    names: Sequence[str]
    """An index alone, or the files in order."""
    here: Collection[str]
    """Names of all files beside them."""
    beside: Beside
    allow_truncated: bool

    @abstractmethod
    def find(self, name: str) -> StoredFile:
        """The file of this name, which need not be there."""

    @abstractmethod
    def text(self, name: str) -> bytes:
        """A small file, whole."""

    @property
    def path(self) -> Path:
        """Of the only file, which is on the disk."""
        return self.find(self.names[0]).whole("")


class DiskFiles(Files):
    """Files of one directory."""

    def __init__(self, spec: str, folder: Path, names: Sequence[str], allow_truncated: bool) -> None:
        self.spec, self.folder, self.names, self.allow_truncated = spec, folder, names, allow_truncated
        self.beside = Folder(folder)

    @property
    def here(self) -> Collection[str]:  # type: ignore[override]
        return {item.name for item in self.folder.iterdir()}

    def find(self, name: str) -> DiskFile:
        return DiskFile(self.folder / name)

    def text(self, name: str) -> bytes:
        path = self.folder / name
        if path.stat().st_size > MAX_JSON:
            raise SourceError(f"{path} is too large for an index ({path.stat().st_size} bytes): fetch it again")
        return path.read_bytes()


class DiskFile(StoredFile):
    """A file on the disk, by positioned reads."""

    again = "fetch it again"

    def __init__(self, path: Path) -> None:
        self.path: Path = path
        self.name, self.where = path.name, str(path)

    @property
    def size(self) -> int:
        return self.path.stat().st_size

    def read(self, start: int, stop: int) -> bytes:
        check_regular(self.path)
        with self.path.open("rb") as file:
            file.seek(start)
            return file.read(stop - start)

    def whole(self, why: str) -> Path:
        return self.path

    def rows(
        self, name: str, start: int, shape: tuple[int, int], item: int, shift: Shift | None = None, **facts: str
    ) -> FileRows:
        return FileRows(self.path, start + (shift() if shift else 0), shape[1] * item, shape[0])


def check_regular(path: Path) -> None:
    """Raise SourceError for a pipe, a device or a directory where a file should be: reading it could wait for ever."""
    if path.is_symlink() and not path.exists():
        raise SourceError(f"{path} is a link to {path.readlink()}, which is not there: fetch the file again")
    if path.exists() and not path.is_file():
        raise SourceError(f"{path} is no regular file: give the weights themselves")
