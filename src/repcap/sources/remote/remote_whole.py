"""Weights of which no part can be read alone (pickles, npz): whole files, and only where the caller allows it."""

from __future__ import annotations

from collections.abc import Sequence

from repcap.errors import RemoteError
from repcap.matrix import Matrix
from repcap.sources.checkpoint import Checkpoint, TensorEntry
from repcap.sources.local_files import open_path
from repcap.sources.remote.hub_repo import HubRepo
from repcap.sources.remote.remote_checkpoint import CONFIGS, TOKENIZERS, Reading, RemoteCheckpoint, read_hub_index


def open_hub(text: str, repo: HubRepo, folder: str, files: Sequence[str], reading: Reading) -> Checkpoint:
    """Files that are downloaded whole, with what lies beside them. Cost: all of them; of an index, those that are read.

    Raises
    ------
    RemoteError
        unless `reading.allow_full_download`, or they are in the cache already.
    """
    names = [folder + file for file in files]
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
