"""Checkpoints on the Hub and at plain addresses: nothing but the bytes that are needed."""

from __future__ import annotations

from collections.abc import Sequence

from repcap.errors import RemoteError, SourceError
from repcap.matrix import ProgressFn
from repcap.sources.beside import CONFIGS
from repcap.sources.checkpoint import Checkpoint
from repcap.sources.choose_files import Choice, choose_files, named_file, note_others
from repcap.sources.formats import kinds
from repcap.sources.local_files import open_path
from repcap.sources.remote.hub_files import TOKENIZERS, HubFiles, Reading
from repcap.sources.remote.hub_repo import HubRepo
from repcap.sources.remote.url import open_url
from repcap.sources.spec import Spec


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
    reading = Reading(allow_truncated, allow_full_download, on_progress, rows is not None)
    text = spec.text if spec.tensor is None else spec.text.rpartition("::")[0]
    if spec.scheme == "url":
        return open_url(text, spec.location, reading)
    repo = HubRepo.resolve(spec.location, spec.revision)
    folder, choice = _choose(repo, spec.folder)
    if choice.format.ranged:
        found: Checkpoint = choice.format.open_files(HubFiles(text, repo, folder, choice.names, reading))
    else:
        found = _open_whole(text, repo, folder, choice.names, reading)
    found.revision = repo.commit
    note_others(found, choice)
    return found


def _open_whole(text: str, repo: HubRepo, folder: str, files: Sequence[str], reading: Reading) -> Checkpoint:
    """Files of which no part is read alone, with what lies beside them.

    Raises
    ------
    RemoteError
        unless `reading.allow_full_download`, or they are in the cache already.
    """
    names = [folder + file for file in files]
    absent = [name for name in names if repo.cached(name) is None]
    if absent and not reading.allow_full_download:
        sizes = [repo.size(name) for name in absent]
        known = [size for size in sizes if size is not None]
        cost = f"{sum(known) / 1e6:,.0f} MB" if len(known) == len(absent) else "the whole of it"
        raise RemoteError(
            f"{repo.name} has its weights in {absent[0].rpartition('/')[2]}, of which no part can be read alone, "
            f"so this would download {cost}: pass --allow-full-download to do that"
        )
    paths = [repo.cached(name) or repo.download(name, reading.on_progress) for name in names]
    for beside in (*CONFIGS, *TOKENIZERS):
        if folder + beside in repo.files:
            repo.small(folder + beside)
    return open_path(text, paths[0] if len(paths) == 1 else paths[0].parent, reading.allow_truncated)


def _choose(repo: HubRepo, inside: str) -> tuple[str, Choice]:
    """(folder, ending in `/` or empty; files in it) of what stands behind the name of the repository."""
    if inside in repo.files:
        folder, _, name = inside.rpartition("/")
        choice = named_file(name)
        if choice is None:
            raise SourceError(f"{repo.name}/{inside} is no file of weights: {kinds()}")
        return f"{folder}/" if folder else "", choice
    prefix = f"{inside}/" if inside else ""
    below = [file.removeprefix(prefix) for file in repo.files if file.startswith(prefix)]
    if not below:
        raise SourceError(f"{repo.name} has no folder or file {inside!r} at {repo.commit[:12]}")
    revision = f"@{repo.revision}" if repo.revision else ""
    where = f"hf://{repo.name}{revision}/{inside}".rstrip("/")
    folders = sorted({name.partition("/")[0] for name in below if "/" in name})
    return prefix, choose_files([name for name in below if "/" not in name], where, folders)
