"""A checkpoint of files that each have a header: one file, or shards with or without an index, here or far away."""

from __future__ import annotations

import functools
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import PureWindowsPath
from typing import Protocol

from repcap.errors import SourceError, UnsafeFileError
from repcap.matrix import Matrix
from repcap.plain_json import parse_json
from repcap.sources.beside import Beside
from repcap.sources.checkpoint import Checkpoint, TensorEntry
from repcap.sources.formats.safetensors_header import Span
from repcap.sources.stored_files import Files, StoredFile
from repcap.text import legible

SHARD_NAME = re.compile(r"-(\d{5})-of-(?!00001\b)(\d{5})\.")
"""One of several shards: alone it proves nothing about what the model lacks."""


class Shard(Protocol):
    """One file of tensors, wherever it is."""

    name: str
    file: StoredFile

    @property
    def spans(self) -> Mapping[str, Span]:
        """Every tensor, from the checked header. Two of equal spans are one piece of memory."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What is to be said of the file, once its header has been read."""

    def open(self, name: str, source: str) -> Matrix:
        """One tensor of it as rows, in stored values; see `Checkpoint.open`."""


class LateEntry(TensorEntry):
    """An entry whose shape and dtype are looked up when they are asked for."""

    def __init__(self, name: str, file: str, look: Callable[[str], tuple[tuple[int, ...], str]]) -> None:
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "file", file)
        object.__setattr__(self, "_look", look)

    @property
    def shape(self) -> tuple[int, ...]:
        return self._look(self.name)[0]  # type: ignore[attr-defined, no-any-return]

    @property
    def dtype(self) -> str:
        return self._look(self.name)[1]  # type: ignore[attr-defined, no-any-return]


class ShardedCheckpoint(Checkpoint):
    """Shards with or without an index.

    The index only says which files there are: what a shard holds is read from its own header. A shard that is missing
    or damaged matters only when a tensor in it is asked for. Where reading is dear, a header is read when a tensor in
    its shard is asked for; the third one asked for is taken as a sign that all will be, and then they come in parallel.

    Parameters
    ----------
    spec : str
        the source as the user gave it.
    format : str
        as `Checkpoint.format`.
    shards : list of Shard
    index : dict, optional
        tensor -> shard.
    beside : Beside
        configuration and tokenizer.
    """

    def __init__(
        self,
        spec: str,
        format: str,
        shards: Sequence[Shard],
        index: Mapping[str, str] | None,
        beside: Beside,
    ) -> None:
        self.spec, self.format, self._index, self.beside = spec, format, index, beside
        self.remote = any(shard.file.path is None for shard in shards)
        self._shards = {shard.name: shard for shard in shards}
        self.files = self._shards.keys() if index is not None else ()
        self._headers: dict[str, Mapping[str, Span] | SourceError] = {}
        self._lock = threading.Lock()
        missing, total = missing_shards(list(self._shards)) if index is None else (0, 0)
        if missing:
            self.complete = False
            self.missing = f"{missing} of {total} shards are missing"
            self.note(self.missing)
        if not self.remote:
            self._read_all()

    @property
    def warnings(self) -> tuple[str, ...]:
        own = self.own_warnings
        for name, header in self._headers.items():
            if isinstance(header, SourceError):
                own += (f"{name} cannot be read, and its tensors are listed from the index only: {header}",)
            else:
                own += self._shards[name].notes
        return (*own, *self.beside.warnings)

    def tensors(self) -> dict[str, TensorEntry]:
        return dict(self._entries)

    @functools.cached_property
    def _entries(self) -> dict[str, TensorEntry]:
        index = self._index or {}
        if index and self.remote:
            return {name: LateEntry(name, file, self._look) for name, file in index.items()}
        if len(self._shards) > 1:
            self._read_all()
        found: dict[str, TensorEntry] = {}
        twice: dict[str, str] = {}
        for file in self._shards:
            for name, span in ({} if index and not self._readable(file) else self._header(file)).items():
                known = found.get(name)
                if known is not None:
                    twice[name] = f"{known.file} and {file}"
                if known is None or index.get(name) == file or (name not in index and not known.elements):
                    found[name] = TensorEntry(name, span.shape, span.dtype, file)
        for name, both in list(twice.items())[:1]:
            more = f" (and {len(twice) - 1} others)" if len(twice) > 1 else ""
            self.note(f"{name}{more} is in {both}: that of {found[name].file} is read")
        for name, file in index.items():
            found.setdefault(name, TensorEntry(name, (), "unknown", file))  # in a shard that cannot be read, or nowhere
        return found

    def open(self, name: str) -> Matrix:
        file, _ = self._find(self.entry(name).name)
        return self._shards[file].open(name, self.spec)

    def same_storage(self, left: str, right: str) -> bool:
        return self._find(left) == self._find(right)

    def holds(self, name: str) -> bool:
        if self._index is None:
            return True
        try:
            self._find(name)
        except SourceError:
            return not all(self._readable(file) for file in self._shards)
        return True

    def _readable(self, file: str) -> bool:
        return not isinstance(self._headers.get(file), SourceError)

    def _look(self, name: str) -> tuple[tuple[int, ...], str]:
        """(shape, dtype) of a tensor; ((), "unknown") where its shard cannot be read but another one can."""
        if len(self._headers) >= 2 and self._index is not None and self._index[name] not in self._headers:
            self._read_all()
        try:
            _, span = self._find(name)
        except SourceError:
            if not any(map(self._readable, self._shards)):
                raise  # it is not this shard: nothing can be read here
            return (), "unknown"
        return span.shape, span.dtype

    def _find(self, name: str) -> tuple[str, Span]:
        """(file, span) of a tensor: where the index says, or else in another shard."""
        named = self._index.get(name) if self._index is not None else None
        named = named or self._entries[name].file
        broken: SourceError | None = None
        try:
            span = self._header(named).get(name)
        except SourceError as error:
            span, broken = None, error
        if span is not None:
            return named, span
        self._read_all()
        for file, header in self._headers.items():
            if not isinstance(header, SourceError) and name in header:
                return file, header[name]
        raise broken or absent_tensor(name, named)

    def _header(self, file: str) -> Mapping[str, Span]:
        with self._lock:
            known = self._headers.get(file)
        if known is None:
            try:
                known = self._shards[file].spans
            except UnsafeFileError:
                raise
            except (SourceError, OSError) as error:
                if self._index is None:
                    raise
                known = unreadable_shard(file, error)
            with self._lock:
                self._headers[file] = known
        if isinstance(known, SourceError):
            raise known
        return known

    def _read_all(self) -> None:
        """Every header that is not here yet, several at once where that saves time."""

        def read(file: str) -> None:
            try:
                self._header(file)
            except UnsafeFileError:
                raise
            except SourceError:
                if self._index is None:
                    raise

        left = [file for file in self._shards if file not in self._headers]
        if not self.remote:
            for file in left:
                read(file)
            return
        with ThreadPoolExecutor(max_workers=8, thread_name_prefix="repcap-header") as pool:
            list(pool.map(read, left))


def open_shards(format: str, files: Files, shard: Callable[[StoredFile], Shard]) -> ShardedCheckpoint:
    """Files, or an index of them. shard: what reads one.

    Raises
    ------
    SourceError
        if the index is damaged or names no tensor.
    """
    names, index = files.names, None
    if names[0].lower().endswith(".json"):
        index = parse_index(files.text(names[0]), files.find(names[0]).where)
        names = sorted(set(index.values()))
    return ShardedCheckpoint(files.spec, format, [shard(files.find(name)) for name in names], index, files.beside)


def parse_index(body: bytes, where: str) -> dict[str, str]:
    """The `weight_map` of an index, checked.

    Raises
    ------
    SourceError
        if it is no JSON object with a weight_map of strings, or names no tensor.
    UnsafeFileError
        if a shard's name leads out of the directory of the index.
    """
    try:
        parsed = parse_json(body)
    except ValueError as error:
        raise SourceError(f"{where} is no readable index ({error}): fetch it again") from error
    found = parsed.get("weight_map") if isinstance(parsed, dict) else None
    if not isinstance(found, dict) or not all(isinstance(file, str) for file in found.values()):
        raise SourceError(f"{where} is no readable index (no weight_map of tensor: file): fetch it again")
    for name, file in found.items():
        if legible(file) != file:
            raise SourceError(f"{where} places tensor {name!r} in {file!r}, which is no name of a file: fetch it again")
        plain = file.removeprefix("./")
        if not is_inside(plain):
            raise UnsafeFileError(
                f"{where} places tensor {name!r} in {file!r}, outside its own directory: do not use this checkpoint"
            )
    if not found:
        raise SourceError(f"{where} names no tensor: fetch it again")
    return {name: file.removeprefix("./") for name, file in found.items()}


def missing_shards(files: Sequence[str]) -> tuple[int, int]:
    """(lacking, in all) of the shards, as the names `...-00001-of-00003...` of those that are here say; 0 without such.

    >>> missing_shards(["m-00001-of-00002.bin", "m-00005-of-00002.bin"])
    (1, 2)
    """
    parts = [match.groups() for file in files if (match := SHARD_NAME.search(file))]
    if not parts:
        return 0, 0
    numbers, total = {int(number) for number, _ in parts}, int(parts[0][1])
    first = 0 if 0 in numbers else 1  # some count from 0
    return total - len(numbers & {*range(first, first + total)}), total


def unreadable_shard(file: str, error: Exception) -> SourceError:
    """What to say when a tensor of this shard is asked for."""
    if isinstance(error, SourceError):
        return error
    file = getattr(error, "filename", None) or file
    if isinstance(error, FileNotFoundError):
        return SourceError(f"{file} is missing: the index names it; fetch that shard")
    reason = getattr(error, "strerror", None) or str(error)
    return SourceError(f"{file} cannot be read: {reason.lower()}")


def is_inside(file: str) -> bool:
    """Whether a shard's name is a plain file name, on any operating system."""
    windows = PureWindowsPath(file)
    return bool(file) and len(windows.parts) == 1 and not windows.drive and file not in (".", "..") and "\0" not in file


def absent_tensor(name: str, file: str) -> SourceError:
    """What to say of a tensor that the index names and no shard holds."""
    return SourceError(
        f"the index places tensor {name!r} in {file}, but neither it nor another shard holds it: measure another "
        "tensor, or take the checkpoint from elsewhere"
    )
