"""PyTorch files by ranges; what no part can be read of alone (old pickles, npz) whole, where the caller allows it."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import io
import json
from collections.abc import Sequence
from typing import Any

from repcap.errors import RemoteError
from repcap.matrix import Matrix, MatrixInfo
from repcap.sources.checkpoint import Checkpoint, TensorEntry, as_rows
from repcap.sources.formats import format_of
from repcap.sources.formats.dtypes import ITEM_BYTES, check_readable
from repcap.sources.formats.safetensors_header import Header, Span
from repcap.sources.formats.torch_zip import LOCAL_HEADER, Place, data_start, read_places
from repcap.sources.local_files import open_path
from repcap.sources.remote.cache import Commit, Write
from repcap.sources.remote.hub_repo import HubRepo
from repcap.sources.remote.journal import Span as Bytes
from repcap.sources.remote.remote_checkpoint import (
    CONFIGS,
    TOKENIZERS,
    Reading,
    RemoteCheckpoint,
    Shard,
    read_hub_index,
)
from repcap.sources.remote.remote_file import (
    STORED,
    RangedRows,
    RemoteFile,
    RemoteMatrix,
    cached_tensor,
    decode_rows,
    identity,
    keep_header,
    kept_header,
)


def open_hub(text: str, repo: HubRepo, folder: str, files: Sequence[str], reading: Reading) -> Checkpoint:
    """PyTorch archives by ranges. Other files whole, with what lies beside them; of an index, those that are read.

    Raises
    ------
    RemoteError
        unless `reading.allow_full_download`, or they are in the cache already.
    """
    names = [folder + file for file in files]
    ranged = _by_ranges(text, repo, folder, files, reading)
    if ranged is not None:
        return ranged
    if names[0].lower().endswith(".json"):
        return WholeShards(text, repo, folder, read_hub_index(repo, names[0]), reading)
    _check_allowed(repo, [name for name in names if repo.cached(name) is None], reading)
    paths = [repo.cached(name) or repo.download(name, reading.on_progress) for name in names]
    for beside in (*CONFIGS, *TOKENIZERS):
        if folder + beside in repo.files:
            repo.small(folder + beside)
    found = open_path(text, paths[0] if len(paths) == 1 else paths[0].parent, reading.allow_truncated)
    found.revision = repo.commit
    return found


def _by_ranges(
    text: str, repo: HubRepo, folder: str, files: Sequence[str], reading: Reading
) -> RemoteCheckpoint | None:
    """PyTorch files of which none is in the cache yet, where the first is an archive; None else."""
    row = format_of(files[0])
    if row is None or row.name != "pytorch":
        return None
    index = read_hub_index(repo, folder + files[0]) if files[0].lower().endswith(".json") else None
    names = list(files) if index is None else sorted(set(index.values()))
    if any(repo.cached(folder + name) is not None or folder + name not in repo.files for name in names):
        return None
    remotes = [repo.remote(folder + name, reading.allow_full_download, reading.on_progress) for name in names]
    shards: list[Shard] = [TorchShard(file, name) for file, name in zip(remotes, names, strict=True)]
    if not TorchShard.is_archive(remotes[0]):
        return None
    found = RemoteCheckpoint(text, shards, index, repo, folder, reading.quick)
    found.format = "pytorch"
    return found


class TorchShard:
    """One PyTorch archive, read by ranges: its directory and its pickle, then the bytes of the tensors that are read.

    What the two say is kept in the cache, so that rows that are there need no network. Cost: some ranges of 64 kB.
    """

    def __init__(self, file: RemoteFile, name: str) -> None:
        self.file, self.name = file, name

    @staticmethod
    def is_archive(file: RemoteFile) -> bool:
        """Whether it is a zip archive, by its first bytes or as the cache knows."""
        return kept_header(file.folder) is not None or file.read(0, 4) == b"PK\x03\x04"

    @functools.cached_property
    def _places(self) -> dict[str, Place]:
        kept = kept_header(self.file.folder)
        if kept is not None:
            with contextlib.suppress(ValueError, TypeError, AttributeError):
                held = json.loads(kept[0])
                return {name: Place(**{**place, "shape": tuple(place["shape"])}) for name, place in held.items()}
        self.file.read(0, 4)  # which tells the size
        stream = io.BufferedReader(_Ranges(self.file), 1 << 16)
        places = read_places(stream, self.file.where)
        body = json.dumps({name: dataclasses.asdict(place) for name, place in places.items()}).encode()
        keep_header(self.file.folder, body, self.file.size, self.file.ranges.content)
        return places

    @functools.cached_property
    def header(self) -> Header:
        """Shapes and dtypes; positions are known when a tensor is fetched."""
        spans = {name: Span(place.shape, place.dtype, 0, place.nbytes) for name, place in self._places.items()}
        return Header(spans, {}, 0, 0, False)

    def open(self, name: str, source: str) -> Matrix:
        place, where = self._places[name], f"{self.file.where}: tensor {name!r}"
        check_readable(place.dtype, where)
        if not place.contiguous:
            raise RemoteError(f"{where} is stored with its rows out of order: pass --allow-full-download to read it")
        count, dim = as_rows(place.shape)
        item = ITEM_BYTES[place.dtype]
        info = MatrixInfo(source=source, name=name, count=count, dim=dim, dtype=place.dtype)
        kept = cached_tensor(self.file, name, STORED[place.dtype], place.shape, place.nbytes)

        def fetch(spans: list[Bytes], write: Write, commit: Commit) -> None:
            begin = self.file.read(place.member, place.member + LOCAL_HEADER)
            self.file.fetch(data_start(begin, place, self.file.where))(spans, write, commit)

        rows = RangedRows(kept, fetch, dim * item, count)
        matrix = RemoteMatrix(rows, functools.partial(decode_rows, dtype=place.dtype), info, item_bytes=item)
        matrix.identity = identity(self.file, place.member + place.offset, place.nbytes, place.dtype)
        return matrix


class _Ranges(io.RawIOBase):
    """A remote file as a stream that can seek."""

    def __init__(self, file: RemoteFile) -> None:
        self._file, self._at = file, 0
        if file.size is None:
            raise RemoteError(f"{file.where}: the server does not say how long the file is: its end cannot be read")
        self._size = file.size

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        self._at = max(0, offset + (0, self._at, self._size)[whence])
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, buffer: Any) -> int:
        stop = min(self._size, self._at + len(buffer))
        if stop <= self._at:
            return 0
        piece = self._file.read(self._at, stop)
        buffer[: len(piece)] = piece
        self._at = stop
        return len(piece)


def _check_allowed(repo: HubRepo, files: list[str], reading: Reading) -> None:
    if not files or reading.allow_full_download:
        return
    sizes = [repo.size(file) for file in files]
    known = [size for size in sizes if size is not None]
    cost = f"{sum(known) / 1e6:,.0f} MB" if len(known) == len(files) else "the whole of it"
    raise RemoteError(
        f"{repo.name} has its weights in {files[0].rpartition('/')[2]}, of which no part can be read alone, "
        f"so this would download {cost}: pass --allow-full-download to do that"
    )


class WholeShards(RemoteCheckpoint):
    """Sharded pickles: a shard is downloaded when a tensor in it is opened, and never to list shapes."""

    format = "pytorch"

    def __init__(self, spec: str, repo: HubRepo, folder: str, index: dict[str, str], reading: Reading) -> None:
        super().__init__(spec, [], index, repo, folder, reading.quick)
        self._reading, self._places, self._source, self._folder_name = reading, index, repo, folder
        self._open_shards: dict[str, Checkpoint] = {}

    def _shard(self, file: str) -> Checkpoint:
        if file not in self._open_shards:
            name = self._folder_name + file
            path = self._source.cached(name)
            if path is None:
                _check_allowed(self._source, [name], self._reading)
                path = self._source.download(name, self._reading.on_progress)
            self._open_shards[file] = open_path(self.spec, path, self._reading.allow_truncated)
        return self._open_shards[file]

    def _look(self, name: str) -> tuple[tuple[int, ...], str]:
        opened = self._open_shards.get(self._places[name])
        entry = opened.tensors().get(name) if opened else None
        return (entry.shape, entry.dtype) if entry else ((), "unknown")

    def holds(self, name: str) -> bool:
        return True  # to know better would be a download

    def entry(self, name: str) -> TensorEntry:
        return self._shard(self._places[super().entry(name).name]).entry(name)

    def open(self, name: str) -> Matrix:
        return self._shard(self._places[super().entry(name).name]).open(name)
