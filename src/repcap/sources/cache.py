"""Where remote tensors are kept: small .safetensors files that fill up range by range and survive being killed.

::

    <cache>/hub/<host>/<org--name>/refs/<revision>            the commit that a branch or tag last stood for
    <cache>/hub/<host>/<org--name>/<commit>/files.json        names of the files at that commit
    <cache>/hub/<host>/<org--name>/<commit>/<file>/header     the shard's header, as it came
    <cache>/hub/<host>/<org--name>/<commit>/<file>/<tensor>.safetensors
    <cache>/url/<address>/<version>/...                       the same for a file at a plain address

<cache> is REPCAP_CACHE, or the user's cache directory. While a tensor is fetched it is `<tensor>.safetensors.part`
(a sparse file of the final size) beside a journal of the byte ranges that are safely in it.
"""

from __future__ import annotations

import bisect
import contextlib
import hashlib
import json
import os
import re
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO
from urllib.parse import quote

from repcap.errors import InputError, SourceError
from repcap.files import write_text

Span = tuple[int, int]
"""Bytes start..stop-1."""

JOURNAL_LINE = re.compile(r"([0-9]{1,18}) ([0-9]{1,18})")

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
    from platformdirs import user_cache_dir

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
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise InputError(
            f"cannot write the cache {path}: {reason}; set REPCAP_CACHE to a directory that can be"
        ) from error
    return path


@contextlib.contextmanager
def taking_turns(lock_file: Path) -> Iterator[None]:
    """Wait while another process or thread is in this block. Where a file system has no locks, nobody waits."""
    from filelock import FileLock

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


class Spans:
    """A set of bytes as disjoint spans in order."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._stops: list[int] = []

    def add(self, start: int, stop: int) -> None:
        """Union with start..stop-1. Cost: O(log spans), and the spans that it swallows."""
        if start >= stop:
            return
        first = bisect.bisect_left(self._stops, start)
        last = bisect.bisect_right(self._starts, stop)
        if first < last:
            start, stop = min(start, self._starts[first]), max(stop, self._stops[last - 1])
        self._starts[first:last] = [start]
        self._stops[first:last] = [stop]

    def gaps(self, start: int, stop: int) -> list[Span]:
        """What start..stop-1 lacks, in order."""
        found, at = [], start
        for index in range(bisect.bisect_right(self._stops, start), len(self._starts)):
            if self._starts[index] >= stop:
                break
            if self._starts[index] > at:
                found.append((at, self._starts[index]))
            at = self._stops[index]
        if at < stop:
            found.append((at, stop))
        return found

    def covers(self, start: int, stop: int) -> bool:
        return not self.gaps(start, stop)

    def __iter__(self) -> Iterator[Span]:
        return iter(list(zip(self._starts, self._stops, strict=True)))

    @property
    def total(self) -> int:
        return sum(self._stops) - sum(self._starts)


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
    each sees what the others have fetched. Memory: none to speak of.
    """

    FLUSH_BYTES, FLUSH_SECONDS = 1 << 23, 1.0
    """A kill loses at most this much of what has been fetched."""

    def __init__(self, path: Path, header: bytes, nbytes: int) -> None:
        self.path, self.header, self.nbytes = path, header, nbytes
        self.part = path.with_name(path.name + ".part")
        self.journal = path.with_name(path.name + ".journal")
        self.offset = len(header)
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
        union = Spans()
        for start, stop in wanted:
            union.add(start, stop)
        with self._lock:
            return [gap for start, stop in union for gap in self._spans.gaps(start, stop)]

    def fill(self, wanted: Sequence[Span], fetch: Fetch) -> None:
        """Have `wanted` in the file. `fetch(gaps, write, commit)` brings what is missing.

        What `fetch` commits stays, even if it fails or the process is killed.
        """
        with self._turn:
            if not self.missing(wanted):
                return
            make_directory(self.path.parent)
            with taking_turns(Path(f"{self.path}.lock")):
                self._look()
                gaps = self.missing(wanted)
                if gaps:
                    self._fetch(gaps, fetch)

    def _fetch(self, gaps: list[Span], fetch: Fetch) -> None:
        self._check_space(sum(stop - start for start, stop in gaps))
        try:
            self._fetch_into_part(gaps, fetch)
            if self.complete:
                self.part.replace(self.path)
                self.journal.unlink(missing_ok=True)
        except OSError as error:
            if error.errno is None or isinstance(error, ConnectionError):
                raise
            reason = (error.strerror or str(error)).lower()
            raise SourceError(
                f"cannot write {error.filename or self.part}: {reason}; what was fetched is kept"
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
            with self.journal.open("a", encoding="ascii") as journal:
                journal.writelines(f"{start} {stop}\n" for start, stop in self._pending)
            for start, stop in self._pending:
                self._spans.add(start, stop)
            self._pending.clear()
        self._flushed = time.monotonic()

    @contextlib.contextmanager
    def _open_part(self) -> Iterator[BinaryIO]:
        """The partial file, opened for writing; made anew where it is missing or of something else."""
        if not self._part_is_ours():
            with self.part.open("wb") as fresh:
                fresh.write(self.header)
                fresh.truncate(self.offset + self.nbytes)
            self._spans = Spans()
        # Written anew, merged: its last line may have been torn when a machine stopped.
        write_text(self.journal, "".join(f"{start} {stop}\n" for start, stop in self._spans))
        self._flushed = time.monotonic()
        with self.part.open("r+b") as handle:
            yield handle

    def _part_is_ours(self) -> bool:
        return self.journal.exists() and self._holds_header(self.part)

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
            self._spans = Spans()
            if self._holds_header(self.path):
                self._spans.add(0, self.nbytes)
            elif self._part_is_ours():
                for line in self.journal.read_text(encoding="ascii", errors="replace").split("\n")[:-1]:
                    span = JOURNAL_LINE.fullmatch(line)
                    if span and int(span[2]) <= self.nbytes:
                        self._spans.add(int(span[1]), int(span[2]))

    def _check_space(self, needed: int) -> None:
        free = shutil.disk_usage(self.path.parent).free
        if needed > free:
            raise SourceError(
                f"{self.path.parent} has {free / 1e6:,.0f} MB free, {needed / 1e6:,.0f} MB are needed: "
                "free some, or set REPCAP_CACHE to a larger disk"
            )
