"""Pickled weights on the Hub: they can only be had whole, so only where the caller allows it."""

from __future__ import annotations

import functools

from repcap.errors import RemoteError, SourceError
from repcap.matrix import Matrix
from repcap.sources.checkpoint import Checkpoint, TensorEntry
from repcap.sources.hub_repo import HubRepo
from repcap.sources.remote_checkpoint import CONFIGS, TOKENIZERS, LateEntry, Reading, RemoteCheckpoint
from repcap.sources.shards import parse_index


def open_pickles(text: str, repo: HubRepo, prefix: str, index: str | None, single: str, reading: Reading) -> Checkpoint:
    """Pickled weights of a repository.

    index: of sharded weights, or None for the one file `single`. Cost: the whole file; of sharded weights those files
    that hold the tensors asked for.

    Raises
    ------
    RemoteError
        unless `reading.allow_full_download`, or the file is in the cache already.
    """
    if index is None:
        path = repo.cached(prefix + single)
        if path is None:
            _refuse(repo, prefix + single, reading)
            path = repo.download(prefix + single, reading.on_progress)
        _bring_beside(repo, prefix)
        from repcap.sources.directory import open_path

        found = open_path(text, path, reading.allow_truncated)
        found.revision = repo.commit
        return found
    where = f"{repo.name}/{prefix}{index}"
    weight_map = parse_index(repo.download(prefix + index).read_bytes(), where)
    if not weight_map:
        raise SourceError(f"{where} names no tensor: the checkpoint is empty")
    return PickledShards(text, repo, prefix, weight_map, reading)


def _refuse(repo: HubRepo, file: str, reading: Reading) -> None:
    if not reading.allow_full_download:
        size = repo.size(file)
        cost = f"{size / 1e6:,.0f} MB" if size else "the whole file"
        raise RemoteError(
            f"{repo.name} has pickled weights only ({file}), of which no part can be read alone, "
            f"so this would download {cost}: pass --allow-full-download to do that"
        )


def _bring_beside(repo: HubRepo, prefix: str) -> None:
    """Configuration and tokenizer, into the directory where huggingface_hub puts the weights."""
    for names in (CONFIGS, TOKENIZERS):
        file = next((prefix + name for name in names if prefix + name in repo.files), None)
        if file is not None:
            repo.download(file)


class PickledShards(RemoteCheckpoint):
    """Sharded pickled weights: a shard is downloaded when a tensor in it is opened, and not to list shapes."""

    format = "pytorch"

    def __init__(self, spec: str, repo: HubRepo, prefix: str, index: dict[str, str], reading: Reading) -> None:
        super().__init__(spec, [], index, repo, prefix)
        self._reading = reading
        self._map = index
        self._repository = repo

    @functools.cached_property
    def _opened(self) -> dict[str, Checkpoint]:
        return {}

    def _shard(self, file: str) -> Checkpoint:
        if file not in self._opened:
            full = self._prefix + file
            path = self._repository.cached(full)
            if path is None:
                _refuse(self._repository, full, self._reading)
                path = self._repository.download(full, self._reading.on_progress)
            from repcap.sources.directory import open_path

            self._opened[file] = open_path(self.spec, path, self._reading.allow_truncated)
        return self._opened[file]

    def tensors(self) -> dict[str, TensorEntry]:
        return {name: LateEntry(name, file, self._look) for name, file in self._map.items()}

    def _look(self, name: str) -> tuple[tuple[int, ...], str]:
        opened = self._opened.get(self._map[name])
        entry = opened.tensors().get(name) if opened else None
        return (entry.shape, entry.dtype) if entry else ((), "unknown")

    def entry(self, name: str) -> TensorEntry:
        found = super().entry(name)
        return self._shard(self._map[found.name]).entry(found.name)

    def open(self, name: str) -> Matrix:
        return self._shard(self._map[self.entry(name).name]).open(name)
