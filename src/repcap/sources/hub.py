"""Checkpoints on the Hub and at plain addresses: which files matter, and nothing but the bytes that are needed."""

from __future__ import annotations

import fnmatch
from typing import Any

from repcap.errors import RemoteError, SourceError
from repcap.matrix import ProgressFn
from repcap.sources.checkpoint import Checkpoint
from repcap.sources.hub_repo import HubRepo
from repcap.sources.remote_checkpoint import Reading, RemoteCheckpoint, hub_shard
from repcap.sources.shards import parse_index
from repcap.sources.spec import Spec, parse_spec

INDEXES = ("model.safetensors.index.json", "consolidated.safetensors.index.json", "*.safetensors.index.json")
SINGLES = ("model.safetensors", "consolidated.safetensors", "*.safetensors")
PICKLES = ("pytorch_model.bin", "model.bin", "*.bin", "consolidated*.pth", "*.pth", "*.pt")
PICKLE_INDEXES = ("pytorch_model.bin.index.json", "*.bin.index.json")
"""What a checkpoint's files are called, the likeliest first."""


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
    """
    reading = Reading(allow_truncated, allow_full_download, on_progress, rows is not None)
    if spec.scheme == "url":
        from repcap.sources.url import open_url

        return open_url(_without_tensor(spec), spec.location, reading)
    return open_repository(_without_tensor(spec), spec, reading)


def open_hub(name: str, *, revision: str | None = None, **options: Any) -> Checkpoint:
    """The checkpoint `org/name` of the Hub at a revision; options as in `open_remote`."""
    return open_remote(parse_spec(f"hf://{name}@{revision}" if revision else f"hf://{name}"), **options)


def open_repository(text: str, spec: Spec, reading: Reading) -> Checkpoint:
    """Resolve the revision, choose the files, and open them."""
    repo = HubRepo.resolve(spec.location, spec.revision)
    if spec.folder in repo.files:
        return _open_file(text, repo, spec.folder, reading)
    prefix = f"{spec.folder}/" if spec.folder else ""
    here = tuple(file.removeprefix(prefix) for file in repo.files if file.startswith(prefix))
    here = tuple(file for file in here if "/" not in file)
    if not here:
        raise SourceError(f"{repo.name} has no folder or file {spec.folder!r} at {repo.commit[:12]}")
    index = _pick(INDEXES, here)
    if index is not None:
        return _sharded(text, repo, prefix, index, reading)
    single = _pick(SINGLES, here)
    if single is not None:
        return _open_file(text, repo, prefix + single, reading)
    return _other_formats(text, repo, prefix, here, reading)


def _other_formats(text: str, repo: HubRepo, prefix: str, here: tuple[str, ...], reading: Reading) -> Checkpoint:
    if _pick(PICKLES, here) is not None:
        from repcap.sources.remote_pickle import open_pickles

        return open_pickles(text, repo, prefix, _pick(PICKLE_INDEXES, here), _pick(PICKLES, here) or "", reading)
    ggufs = [file for file in here if file.lower().endswith(".gguf")]
    first = [file for file in ggufs if "-of-" not in file or "-00001-of-" in file]
    if len(first) == 1:
        return _open_file(text, repo, prefix + first[0], reading)
    if first:
        listed = ", ".join(first[:6]) + (" ..." if len(first) > 6 else "")
        raise SourceError(
            f"{repo.name} has {len(first)} GGUF files ({listed}): name one, hf://{repo.name}/{prefix}{first[0]}"
        )
    listed = ", ".join(here[:8]) + (" ..." if len(here) > 8 else "")
    raise SourceError(f"{repo.name} holds no weights that repcap reads at {repo.commit[:12]}; its files: {listed}")


def _open_file(text: str, repo: HubRepo, file: str, reading: Reading) -> Checkpoint:
    """One file of a repository as a checkpoint of its own."""
    lower = file.lower()
    prefix = file.rpartition("/")[0]
    if lower.endswith(".safetensors.index.json"):
        return _sharded(text, repo, f"{prefix}/" if prefix else "", file.rpartition("/")[2], reading)
    if lower.endswith(".safetensors"):
        folder = f"{prefix}/" if prefix else ""
        return RemoteCheckpoint(text, [hub_shard(repo, file, reading)], None, repo, folder, reading.quick)
    if lower.endswith(".gguf"):
        from repcap.sources.remote_gguf import open_gguf

        return open_gguf(text, repo, file, reading)
    if fnmatch.fnmatch(lower, "*.bin") or lower.endswith((".pt", ".pth")):
        from repcap.sources.remote_pickle import open_pickles

        return open_pickles(text, repo, f"{prefix}/" if prefix else "", None, file.rpartition("/")[2], reading)
    raise SourceError(f"{repo.name}/{file} is no file of weights: name a .safetensors, .gguf or .bin file")


def _sharded(text: str, repo: HubRepo, prefix: str, index: str, reading: Reading) -> Checkpoint:
    where = f"{repo.name}/{prefix}{index}"
    weight_map = parse_index(repo.download(prefix + index).read_bytes(), where)
    if not weight_map:
        raise SourceError(f"{where} names no tensor: the checkpoint is empty")
    shards = [hub_shard(repo, prefix + file, reading) for file in sorted(set(weight_map.values()))]
    return RemoteCheckpoint(text, shards, weight_map, repo, prefix, reading.quick)


def _pick(patterns: tuple[str, ...], files: tuple[str, ...]) -> str | None:
    """The first file that the first fitting pattern means.

    A pattern with a star must mean one file: `model.fp16.safetensors` beside `model.int8.safetensors` is a choice
    that is not ours.
    """
    for pattern in patterns:
        hits = fnmatch.filter(files, pattern)
        if len(hits) == 1:
            return hits[0]
        if hits and pattern.endswith((".safetensors", ".index.json")):
            raise RemoteError(f"several files could be meant ({', '.join(hits[:6])}): name one, hf://org/name/FILE")
    return None


def _without_tensor(spec: Spec) -> str:
    return spec.text if spec.tensor is None else spec.text.rpartition("::")[0]
