"""Where remote tensors are kept: small .safetensors files that fill up range by range and survive being killed.

::

    <cache>/hub/<host>/<org--name>/refs/<revision>            the commit that a branch or tag last stood for
    <cache>/hub/<host>/<org--name>/<commit>/files.json        names of the files at that commit
    <cache>/hub/<host>/<org--name>/<commit>/<file>/header     the shard's header, as it came
    <cache>/hub/<host>/<org--name>/<commit>/<file>/<tensor>.safetensors
    <cache>/url/<address>/<version>/...                       the same for a file at a plain address

<cache> is REPCAP_CACHE, or the user's cache directory. While a tensor is fetched it is `<tensor>.safetensors.part`
(a sparse file of the final size). Beside it stands a journal of the byte ranges that are safely in it, with a checksum
each: bytes that were changed since are fetched again.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO
from urllib.parse import quote

from filelock import FileLock
from platformdirs import user_cache_dir

from repcap.errors import InputError, RemoteError, SourceError
from repcap.files import atomic_path
from repcap.sources.remote.journal import Journal, Span, Spans

Write = Callable[[int, bytes], None]
"""Called with (position, bytes)."""
Commit = Callable[[int, int], None]
"""Called with a span whose bytes have all been written."""
Fetch = Callable[[list[Span], Write, Commit], None]
"""Brings the spans, in any order and from any thread."""


def cache_dir() -> Path:
    """REPCAP_CACHE, or the platform's cache directory for this user.

    Raises
    ------
    InputError
        if REPCAP_CACHE begins with the home of a user who is not known.
    """
    given = os.environ.get("REPCAP_CACHE")
    if given:
        try:
            return Path(given).expanduser()
        except RuntimeError as error:
            raise InputError(f"REPCAP_CACHE is {given!r}: there is no such home directory") from error

    return Path(user_cache_dir("repcap"))


def file_name(text: str) -> str:
    """`text` as the name of one file on any system, different for different texts."""
    quoted = quote(text, safe=" ()[]+=,@").replace("*", "%2A")
    if quoted.startswith("."):
        quoted = "%2E" + quoted[1:]
    if len(quoted) > 120:
        quoted = f"{quoted[:80]}-{hashlib.sha256(text.encode()).hexdigest()[:24]}"
    return quoted


def make_directory(path: Path) -> Path:
    """Create a directory of the cache.

    Raises
    ------
    InputError
        if the cache cannot be written.
    """
    with _explained(path):
        path.mkdir(parents=True, exist_ok=True)
    return path


def write_bytes(path: Path, body: bytes) -> None:
    """Write a small file of the cache, whole or not at all.

    Raises
    ------
    InputError
        if the cache cannot be written.
    """
    with _explained(path), atomic_path(path) as temporary:
        temporary.write_bytes(body)


@contextlib.contextmanager
def _explained(path: Path) -> Iterator[None]:
    """What the disk says, with the way out."""
    try:
        yield
    except (OSError, InputError) as error:
        cause = error.__cause__ if isinstance(error, InputError) else error
        reason = (getattr(cause, "strerror", None) or str(cause)).lower()
        raise InputError(
            f"cannot write the cache {path}: {reason}; set REPCAP_CACHE to a directory that can be"
        ) from error


@contextlib.contextmanager
def taking_turns(lock_file: Path) -> Iterator[None]:
    """Wait while another process or thread is in this block. Where a file system has no locks, nobody waits."""
    lock = FileLock(lock_file)
    try:
        lock.acquire()
    except (OSError, NotImplementedError):
        yield
        return
    try:
        yield
    finally:
        lock.release()


def tensor_header(name: str, dtype: str, shape: Sequence[int], nbytes: int, metadata: dict[str, str]) -> bytes:
    """Length and header of a .safetensors that holds one tensor.

    dtype: as safetensors writes it (`BF16`). The data begin at a multiple of 8 bytes, as the format wants it.
    """
    entry = {"dtype": dtype, "shape": list(shape), "data_offsets": [0, nbytes]}
    text = json.dumps({"__metadata__": metadata, name: entry}, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text


class TensorFile:
    """One tensor's bytes in the cache, whole or in part.

    Parameters
    ----------
    path : Path
        of the .safetensors that it becomes.
    header : bytes
        its length and header (`tensor_header`).
    nbytes : int
        bytes of data.

    Positions are relative to the tensor's first byte. Several processes may fill the same file: they take turns, and
    each sees what the others have fetched. Memory: one piece of the journal (1 MiB). Cost: bytes that an earlier run
    has fetched are read once more, for their checksum.
    """

    FLUSH_BYTES, FLUSH_SECONDS = 1 << 23, 1.0
    """A kill loses at most this much of what has been fetched."""

    def __init__(self, path: Path, header: bytes, nbytes: int) -> None:
        self.path, self.header, self.nbytes = path, header, nbytes
        self.part = path.with_name(path.name + ".part")
        self.journal = path.with_name(path.name + ".journal")
        self.offset = len(header)
        self._journal = Journal(self.journal, nbytes)
        self._spans = Spans()
        self._pending: list[Span] = []
        self._flushed = 0.0
        self._lock = threading.RLock()
        self._turn = threading.Lock()
        self._look()

    @property
    def complete(self) -> bool:
        return self._spans.covers(0, self.nbytes)

    @property
    def where(self) -> Path:
        """The file that holds the bytes now. A whole file of something else does not count."""
        return self.path if self._holds_header(self.path) else self.part

    def missing(self, wanted: Sequence[Span]) -> list[Span]:
        """What of `wanted` is not in the file, in order and disjoint."""
        with self._lock:
            return [gap for start, stop in Spans(wanted) for gap in self._spans.gaps(start, stop)]

    def fill(self, wanted: Sequence[Span], fetch: Fetch) -> None:
        """Have `wanted` in the file. `fetch(gaps, write, commit)` brings what is missing or has been changed.

        What `fetch` commits stays, even if it fails or the process is killed.
        """
        with self._turn:
            self._doubt(wanted)
            if not self.missing(wanted):
                return
            make_directory(self.path.parent)
            with taking_turns(Path(f"{self.path}.lock")):
                self._look()
                changed = not self._doubt(wanted)
                gaps = self.missing(wanted)
                if gaps:
                    self._fetch(gaps, fetch, changed)

    def _doubt(self, wanted: Sequence[Span]) -> bool:
        """Look at what an earlier run has left of `wanted`; False if it has been changed, and is missing now."""
        doubtful = self._journal.doubtful(wanted)
        if not doubtful:
            return True
        try:
            with self.where.open("rb") as data:
                right = self._journal.check(doubtful, data, self.offset)
        except OSError:  # it has just been renamed by another process, or cannot be read
            right = True
        if not right:
            with self._lock:
                self._spans = self._recorded()
        return right

    def _fetch(self, gaps: list[Span], fetch: Fetch, changed: bool) -> None:
        self._check_space(sum(stop - start for start, stop in gaps))
        try:
            self._fetch_into_part(gaps, fetch)
            if self.complete:
                self.part.replace(self.path)
        except OSError as error:
            if error.errno is None or isinstance(error, ConnectionError):
                raise
            reason = (error.strerror or str(error)).lower()
            raise SourceError(
                f"cannot write {error.filename or self.part}: {reason}; what was fetched is kept"
            ) from error
        except RemoteError as error:
            if not changed:
                raise
            raise RemoteError(
                f"{error}; it has to be fetched again, as {self.path} in the cache was changed"
            ) from error

    def _fetch_into_part(self, gaps: list[Span], fetch: Fetch) -> None:
        with self._open_part() as handle:

            def write(position: int, piece: bytes) -> None:
                with self._lock:
                    handle.seek(self.offset + position)
                    handle.write(piece)

            def commit(start: int, stop: int) -> None:
                with self._lock:
                    self._pending.append((start, stop))
                    waiting = sum(b - a for a, b in self._pending)
                    if waiting >= self.FLUSH_BYTES or time.monotonic() - self._flushed >= self.FLUSH_SECONDS:
                        self._flush(handle)

            try:
                fetch(gaps, write, commit)
            finally:
                with self._lock:
                    self._flush(handle)

    def _flush(self, handle: BinaryIO) -> None:
        """Journal the pending spans, after their bytes are on the disk: a journal must never say too much."""
        if self._pending:
            handle.flush()
            os.fsync(handle.fileno())
            self._journal.add(self._pending, handle, self.offset)
            for start, stop in self._pending:
                self._spans.add(start, stop)
            self._pending.clear()
        self._flushed = time.monotonic()

    @contextlib.contextmanager
    def _open_part(self) -> Iterator[BinaryIO]:
        """The partial file, opened for writing; made anew where it is missing or of something else."""
        if self._journal.records and self._holds_header(self.path):
            self.path.replace(self.part)  # most of it is right
        elif not self._journal.records or not self._holds_header(self.part):
            self.path.unlink(missing_ok=True)
            with self.part.open("wb") as fresh:
                fresh.write(self.header)
                fresh.truncate(self.offset + self.nbytes)
            self._journal.keep([])
            self._spans = Spans()
        self._journal.save()  # without a last line that was torn, and what has been found to be changed
        self._flushed = time.monotonic()
        with self.part.open("r+b") as handle:
            yield handle

    def _holds_header(self, path: Path) -> bool:
        try:
            with path.open("rb") as opened:
                right = opened.read(self.offset) == self.header
            return right and path.stat().st_size == self.offset + self.nbytes
        except OSError:  # not there, or not to be read
            return False

    def _look(self) -> None:
        """Learn what is on the disk."""
        with self._lock:
            self._journal.load()
            if not self._holds_header(self.where):
                self._journal.keep([])
            self._spans = self._recorded()

    def _recorded(self) -> Spans:
        return Spans((record.start, record.stop) for record in self._journal.records)

    def _check_space(self, needed: int) -> None:
        free = shutil.disk_usage(self.path.parent).free
        if needed > free:
            raise SourceError(
                f"{self.path.parent} has {free / 1e6:,.1f} MB free, {needed / 1e6:,.1f} MB are needed: "
                "free some, or set REPCAP_CACHE to a larger disk"
            )
