"""A local path: which kind of file, or which files of a directory make up the checkpoint."""

from __future__ import annotations

from pathlib import Path

from repcap.errors import SourceError
from repcap.sources.checkpoint import Checkpoint
from repcap.sources.gguf_file import GgufCheckpoint
from repcap.sources.safetensors_file import SafetensorsCheckpoint


def open_path(spec: str, path: Path, allow_truncated: bool = False) -> Checkpoint:
    """The checkpoint at a local path."""
    if path.is_dir():
        return _open_directory(spec, path, allow_truncated)
    name = path.name.lower()
    if name.endswith(".gguf"):
        return GgufCheckpoint(spec, path, allow_truncated)
    if name.endswith(".safetensors"):
        return SafetensorsCheckpoint(spec, [path], None, allow_truncated)
    raise SourceError(f"{path}: not a kind of file that repcap reads")


def _open_directory(spec: str, path: Path, allow_truncated: bool) -> Checkpoint:
    index = path / "model.safetensors.index.json"
    if index.is_file():
        return SafetensorsCheckpoint.from_index(spec, index, allow_truncated)
    single = path / "model.safetensors"
    if single.is_file():
        return SafetensorsCheckpoint(spec, [single], None, allow_truncated)
    raise SourceError(f"{path}: no checkpoint in this directory")
