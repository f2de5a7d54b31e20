"""Checkpoints on the Hub and at plain addresses: nothing but the bytes that are needed."""

from __future__ import annotations

from typing import Any

from repcap.errors import SourceError
from repcap.matrix import ProgressFn
from repcap.sources.checkpoint import Checkpoint
from repcap.sources.hub_files import Choice, choose_files, kind_of
from repcap.sources.remote.hub_environment import check_environment
from repcap.sources.remote.hub_repo import HubRepo
from repcap.sources.remote.remote_checkpoint import Reading, RemoteCheckpoint, hub_shard, read_hub_index
from repcap.sources.spec import Spec, parse_spec


def open_remote(
    spec: Spec,
    *,
    allow_truncated: bool = False,
    allow_full_download: bool = False,
    rows: int | None = None,
    on_progress: ProgressFn | None = None,
) -> Checkpoint:
    """The checkpoint behind a spec of scheme `hub` or `url`, opened by its index and headers alone.

    Parameters
    ----------
    spec : Spec
        of `parse_spec`.
    allow_truncated : bool
        read a truncated file where the wanted tensor is whole.
    allow_full_download : bool
        download whole files where ranges cannot be had (pickled weights, a server that ignores ranges).
    rows : int, optional
        how many rows will be read, if only some. Only rows that are read are fetched, with or without it; with it, a
        tokenizer is used only if it is in the cache already.
    on_progress : callable, optional
        called with (bytes done, bytes in all) of each transfer.

    Raises
    ------
    RemoteError
        if the Hub or the server refuses, fails or lies; one line that says what to do.
    SourceError
        if there is no checkpoint, or one file of several has to be named.
    InputError
        if an environment variable of huggingface_hub makes no sense.
    """
    check_environment()
    reading = Reading(allow_truncated, allow_full_download, on_progress, rows is not None)
    text = spec.text if spec.tensor is None else spec.text.rpartition("::")[0]
    if spec.scheme == "url":
        from repcap.sources.remote.url import open_url

        return open_url(text, spec.location, reading)
    repo = HubRepo.resolve(spec.location, spec.revision)
    folder, choice = _choose(repo, spec.folder)
    return _open(text, repo, folder, choice, reading)


def open_hub(name: str, *, revision: str | None = None, **options: Any) -> Checkpoint:
    """The checkpoint `org/name` of the Hub at a revision; options as in `open_remote`."""
    return open_remote(parse_spec(f"hf://{name}@{revision}" if revision else f"hf://{name}"), **options)


def _choose(repo: HubRepo, inside: str) -> tuple[str, Choice]:
    """(folder, ending in `/` or empty; files in it) of what stands behind the name of the repository."""
    if inside in repo.files:
        folder, _, name = inside.rpartition("/")
        choice = kind_of(name)
        if choice is None:
            raise SourceError(f"{repo.name}/{inside} is no file of weights: name a .safetensors, .gguf or .bin file")
        return f"{folder}/" if folder else "", choice
    prefix = f"{inside}/" if inside else ""
    below = [file.removeprefix(prefix) for file in repo.files if file.startswith(prefix)]
    if not below:
        raise SourceError(f"{repo.name} has no folder or file {inside!r} at {repo.commit[:12]}")
    where = f"{repo.name}/{inside}" if inside else repo.name
    folders = sorted({name.partition("/")[0] for name in below if "/" in name})
    return prefix, choose_files([name for name in below if "/" not in name], where, folders)


def _open(text: str, repo: HubRepo, folder: str, choice: Choice, reading: Reading) -> Checkpoint:
    names = [folder + name for name in choice.names]
    if choice.kind == "gguf":
        from repcap.sources.remote.remote_gguf import open_gguf

        return open_gguf(text, repo, names[0], reading)
    if choice.kind in ("whole", "whole index"):
        from repcap.sources.remote.remote_whole import open_whole, open_whole_shards

        opener = open_whole if choice.kind == "whole" else open_whole_shards
        return opener(text, repo, folder, names, reading)
    index = read_hub_index(repo, names[0]) if choice.kind == "index" else None
    files = names if index is None else [folder + file for file in sorted(set(index.values()))]
    shards = [hub_shard(repo, file, reading) for file in files]
    return RemoteCheckpoint(text, shards, index, repo, folder, reading.quick)
