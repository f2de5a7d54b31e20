"""A local path: a file of weights, or a directory of them."""

from __future__ import annotations

from pathlib import Path

from repcap.errors import SourceError
from repcap.sources import formats
from repcap.sources.checkpoint import Checkpoint
from repcap.sources.choose_files import choose_files, named_file, note_others
from repcap.sources.formats.safetensors_header import LFS_MAGIC, lfs_message
from repcap.sources.stored_files import DiskFiles, check_regular


def open_path(spec: str, path: Path, allow_truncated: bool = False) -> Checkpoint:
    """The checkpoint at a local path.

    Raises
    ------
    SourceError
        if it is no kind of file that is read, or a directory without a checkpoint or with several.
    """
    if path.is_dir():
        return _open_directory(spec, path, allow_truncated)
    check_regular(path)
    with path.open("rb") as file:
        if file.read(len(LFS_MAGIC)) == LFS_MAGIC:
            raise SourceError(lfs_message(str(path)))
    choice = named_file(path.name)
    if choice is None:
        raise SourceError(f"{path} is no kind of file that repcap reads: {formats.kinds()}")
    found: Checkpoint = choice.format.open_files(DiskFiles(spec, path.parent, choice.names, allow_truncated))
    return found


def _open_directory(spec: str, path: Path, allow_truncated: bool) -> Checkpoint:
    items = sorted(path.iterdir())
    folders = [item.name for item in items if item.is_dir() and not item.name.startswith(".")]
    choice = choose_files([item.name for item in items if not item.is_dir()], str(path), folders)
    found: Checkpoint = choice.format.open_files(DiskFiles(spec, path, choice.names, allow_truncated))
    note_others(found, choice)
    return found
