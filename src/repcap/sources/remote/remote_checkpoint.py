"""A checkpoint of safetensors shards that are far away: names from the index, headers one by one as they are needed."""

from __future__ import annotations

import dataclasses
import functools
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Protocol

from repcap.errors import SourceError
from repcap.matrix import Matrix, ProgressFn, Tokens
from repcap.sources.beside import Folder
from repcap.sources.checkpoint import Checkpoint, TensorEntry
from repcap.sources.formats.safetensors_file import open_span, read_header
from repcap.sources.formats.safetensors_header import Header, Span
from repcap.sources.formats.shards import SHARD_NAME, absent_tensor, parse_index
from repcap.sources.remote.hub_repo import HubRepo, TooLarge
from repcap.sources.remote.remote_file import RemoteFile, RemoteSafetensors

CONFIGS = ("config.json", "params.json", "cfg.json")
TOKENIZERS = ("tokenizer.json", "vocab.json", "vocab.txt")


@dataclasses.dataclass(frozen=True)
class Reading:
    """What the caller allows, and whom to tell."""

    allow_truncated: bool = False
    allow_full_download: bool = False
    on_progress: ProgressFn | None = None
    quick: bool = False
    """A few rows will be read: a tokenizer that is not in the cache is not worth its download."""


class Shard(Protocol):
    """One safetensors file, wherever it is."""

    name: str

    @property
    def header(self) -> Header:
        """The checked header."""

    def open(self, name: str, source: str) -> Matrix:
        """One tensor of it as rows."""


class LocalShard:
    """A shard that is on the disk already, in huggingface_hub's cache."""

    def __init__(self, path: Path, name: str, allow_truncated: bool) -> None:
        self.path, self.name, self._allow = path, name, allow_truncated

    @functools.cached_property
    def header(self) -> Header:
        return read_header(self.path, self._allow)

    def open(self, name: str, source: str) -> Matrix:
        return open_span(self.path, self.header.tensors[name], name, source)


def hub_shard(repo: HubRepo, file: str, reading: Reading) -> Shard:
    """A safetensors file of a repository: from the cache if it is there, else by ranges."""
    path, name = repo.cached(file), file.rpartition("/")[2]
    if path is not None:
        return LocalShard(path, name, reading.allow_truncated)
    remote = repo.remote(file, reading.allow_full_download, reading.on_progress)
    return RemoteSafetensors(remote, name, reading.allow_truncated)


def read_hub_index(repo: HubRepo, file: str) -> dict[str, str]:
    """tensor -> shard of an index in a repository, checked."""
    found = parse_index(repo.small(file).read_bytes(), f"{repo.name}/{file}")
    if not found:
        raise SourceError(f"{repo.name}/{file} names no tensor: the checkpoint is empty")
    return found


def open_hub(text: str, repo: HubRepo, folder: str, names: Sequence[str], reading: Reading) -> RemoteCheckpoint:
    """One file, shards, or an index of them, in a folder (ending in `/`, or empty) of a repository."""
    index = read_hub_index(repo, folder + names[0]) if names[0].lower().endswith(".json") else None
    files = names if index is None else sorted(set(index.values()))
    shards = [hub_shard(repo, folder + file, reading) for file in files]
    return RemoteCheckpoint(text, shards, index, repo, folder, reading.quick)


def open_address(text: str, file: RemoteFile, name: str, reading: Reading) -> RemoteCheckpoint:
    """One file at a plain address."""
    return RemoteCheckpoint(text, [RemoteSafetensors(file, name, reading.allow_truncated)], None)


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


class RemoteCheckpoint(Checkpoint):
    """Shards with or without an index.

    Opening it reads the index only. A shard's header is read when a tensor in it is asked for; the third one asked for
    is taken as a sign that all will be, and then they come in parallel. A shard that is missing or damaged matters only
    when a tensor in it is asked for.

    Parameters
    ----------
    spec : str
        the source as the user gave it.
    shards : list of Shard
    index : dict, optional
        tensor -> shard.
    repo : HubRepo, optional
        where configuration and tokenizer lie; None for a file at a plain address.
    prefix : str
        folder inside the repository, ending in `/`, or empty.
    quick : bool
        leave out a tokenizer that would have to be downloaded.
    """

    format = "safetensors"
    remote = True

    def __init__(
        self,
        spec: str,
        shards: list[Shard],
        index: dict[str, str] | None,
        repo: HubRepo | None = None,
        prefix: str = "",
        quick: bool = False,
    ) -> None:
        self.spec, self._index, self._repo, self._prefix = spec, index, repo, prefix
        self._quick = quick
        self._notes: tuple[str, ...] = ()
        self._shards = {shard.name: shard for shard in shards}
        self._headers: dict[str, Header | SourceError] = {}
        self._lock = threading.Lock()
        self.revision = repo.commit if repo else None
        self.complete = index is not None or _all_there(list(self._shards))

    def note(self, warning: str) -> None:
        self._notes += (warning,)

    @property
    def warnings(self) -> tuple[str, ...]:  # type: ignore[override]
        own = (self._repo.warnings if self._repo else ()) + self._notes
        for name, header in self._headers.items():
            if isinstance(header, SourceError):
                own += (f"{name} cannot be read, and its tensors are listed from the index only: {header}",)
            elif header.truncated:
                own += (f"{name} is truncated: only tensors that are whole can be read",)
        return (*own, *(self._folder.warnings if "_folder" in self.__dict__ and self._folder else ()))

    def tensors(self) -> dict[str, TensorEntry]:
        return dict(self._without_index if self._index is None else self._from_index)

    @functools.cached_property
    def _from_index(self) -> dict[str, TensorEntry]:
        return {name: LateEntry(name, file, self._look) for name, file in (self._index or {}).items()}

    @functools.cached_property
    def _without_index(self) -> dict[str, TensorEntry]:
        """Every tensor, from every header: there is no index to say so."""
        if len(self._shards) > 1:
            self._read_all()
        found: dict[str, TensorEntry] = {}
        for file in self._shards:
            for name, span in self._header(file).tensors.items():
                found.setdefault(name, TensorEntry(name, span.shape, span.dtype, file))
        return found

    def open(self, name: str) -> Matrix:
        file, _ = self._find(self.entry(name).name)
        return self._shards[file].open(name, self.spec)

    def _look(self, name: str) -> tuple[tuple[int, ...], str]:
        """(shape, dtype) of a tensor; ((), "unknown") where its shard cannot be read but another one can."""
        if len(self._headers) >= 2 and self._index is not None and self._index[name] not in self._headers:
            self._read_all()
        try:
            _, span = self._find(name)
        except SourceError:
            self._read_all()
            if not any(isinstance(header, Header) for header in self._headers.values()):
                raise  # it is not this shard: nothing can be read here
            return (), "unknown"
        return span.shape, span.dtype

    def holds(self, name: str) -> bool:
        if self._index is None:
            return True
        try:
            self._find(name)
        except SourceError:
            return any(isinstance(header, SourceError) for header in self._headers.values())
        return True

    def _find(self, name: str) -> tuple[str, Span]:
        """(file, span) of a tensor: where the index says, or else in another shard."""
        named = self._index[name] if self._index is not None else self._without_index[name].file
        span = self._header(named).tensors.get(name)
        if span is not None:
            return named, span
        self._read_all()
        for file, header in self._headers.items():
            if isinstance(header, Header) and name in header.tensors:
                return file, header.tensors[name]
        raise absent_tensor(name, named, {})

    def _header(self, file: str) -> Header:
        with self._lock:
            known = self._headers.get(file)
        if known is None:
            try:
                known = self._shards[file].header
            except SourceError as error:
                known = error
            with self._lock:
                self._headers[file] = known
        if isinstance(known, SourceError):
            raise known
        return known

    def _read_all(self) -> None:
        """Every header that is not here yet, several at once."""

        def read(file: str) -> None:
            try:
                self._header(file)
            except SourceError:
                return  # kept, and raised where a tensor of that shard is asked for

        with ThreadPoolExecutor(max_workers=8, thread_name_prefix="repcap-header") as pool:
            list(pool.map(read, [file for file in self._shards if file not in self._headers]))

    @functools.cached_property
    def _folder(self) -> Folder | None:
        """Configuration and tokenizer, where huggingface_hub keeps them."""
        file = self._first(CONFIGS)
        if self._repo is None or file is None:
            return None
        try:
            return Folder(self._repo.small(file).parent)
        except TooLarge as error:
            self._notes += (f"{error}; tying is judged without it",)
            return None

    def _first(self, names: tuple[str, ...]) -> str | None:
        files = self._repo.files if self._repo is not None else ()
        return next((self._prefix + name for name in names if self._prefix + name in files), None)

    def facts(self, name: str) -> dict[str, Any]:
        if self._repo is None or self._prefix + name not in self._repo.files:
            return {}
        return Folder(self._repo.small(self._prefix + name).parent).facts(name)

    def config(self) -> dict[str, Any]:
        return self._folder.config if self._folder is not None else {}

    def tokens(self) -> Tokens | None:
        file = self._first(TOKENIZERS)
        if file is None or self._repo is None or (self._quick and self._repo.cached(file) is None):
            return None
        try:
            folder = Folder(self._repo.small(file).parent)
        except TooLarge as error:
            self._notes += (f"{error}; rows are shown without their tokens",)
            return None
        found = folder.tokens
        if self._folder is not None:
            self._folder.warnings.extend(folder.warnings)
        return found


def _all_there(names: list[str]) -> bool:
    """Whether shards without an index are as many as their names say."""
    totals = {int(name.rpartition("-of-")[2][:5]) for name in names if SHARD_NAME.search(name)}
    return not totals or totals == {len(names)}
