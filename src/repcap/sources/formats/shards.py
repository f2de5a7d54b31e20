"""Index files of sharded checkpoints: `*.index.json` with a `weight_map` {tensor: file}."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path, PureWindowsPath

from repcap.errors import SourceError, UnsafeFileError
from repcap.plain_json import parse_json
from repcap.sources.beside import MAX_JSON
from repcap.text import legible

SHARD_NAME = re.compile(r"-\d{5}-of-(?!00001\b)(\d{5})\.")
"""One of several shards: alone it proves nothing about what the model lacks."""


def read_index(path: Path) -> dict[str, str]:
    """Tensor -> shard of a local index; see `parse_index`."""
    if path.stat().st_size > MAX_JSON:
        raise SourceError(f"{path} is too large for an index ({path.stat().st_size} bytes): fetch it again")
    return parse_index(path.read_bytes(), str(path))


def parse_index(body: bytes, where: str) -> dict[str, str]:
    """The `weight_map` of an index, checked.

    Raises
    ------
    SourceError
        if it is no JSON object with a weight_map of strings.
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
        if not is_inside(file):
            raise UnsafeFileError(
                f"{where} places tensor {name!r} in {file!r}, outside its own directory: do not use this checkpoint"
            )
    return found


def missing_shards(files: Sequence[Path]) -> int:
    """How many shards are lacking, as the names `...-00001-of-00003...` of those that are here say; 0 without such."""
    match = SHARD_NAME.search(files[0].name)
    return max(0, int(match.group(1)) - len(files)) if match else 0


def unreadable_shard(file: Path, error: Exception) -> SourceError:
    """What to say when a tensor of this shard is asked for."""
    if isinstance(error, SourceError):
        return error
    if isinstance(error, FileNotFoundError):
        return SourceError(f"{file} is missing: the index names it; fetch that shard")
    reason = getattr(error, "strerror", None) or str(error)
    return SourceError(f"{file} cannot be read: {reason.lower()}")


def check_regular(path: Path) -> None:
    """Raise SourceError for a pipe, a device or a directory where a file should be: reading it could wait for ever."""
    if path.is_symlink() and not path.exists():
        raise SourceError(f"{path} is a link to {path.readlink()}, which is not there: fetch the file again")
    if path.exists() and not path.is_file():
        raise SourceError(f"{path} is no regular file: give the weights themselves")


def is_inside(file: str) -> bool:
    """Whether a shard's name is a plain file name, on any operating system."""
    windows = PureWindowsPath(file)
    return bool(file) and len(windows.parts) == 1 and not windows.drive and file not in (".", "..") and "\0" not in file


def absent_tensor(name: str, file: str, broken: Mapping[str, SourceError]) -> SourceError:
    """Why a tensor that the index names cannot be read."""
    return broken.get(file) or SourceError(
        f"the index places tensor {name!r} in {file}, but neither it nor another shard holds it: measure another "
        "tensor, or take the checkpoint from elsewhere"
    )
