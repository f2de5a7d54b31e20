"""A local path: which kind of file, or which files of a directory make up the checkpoint."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from repcap.errors import SourceError
from repcap.sources.checkpoint import Checkpoint
from repcap.sources.formats.arrays import NpyCheckpoint, NpzCheckpoint
from repcap.sources.formats.gguf_file import SPLIT, GgufCheckpoint
from repcap.sources.formats.safetensors_file import SafetensorsCheckpoint
from repcap.sources.formats.safetensors_header import LFS_MAGIC, lfs_message
from repcap.sources.formats.shards import check_regular

PICKLES = (".bin", ".pt", ".pth", ".ckpt")
KINDS = ".safetensors, .gguf, .bin, .pt, .pth, .ckpt, .npy, .npz, a *.index.json, or a directory of such"
NUMBERED = re.compile(r"^consolidated\.([0-9]{1,9})\.pth$")
NOT_WEIGHTS = re.compile(r"^(optimizer|scheduler|training_args|rng_state|random_states|tokenizer)")


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
    name = path.name.lower()
    if name.endswith(".index.json"):
        return _open_index(spec, path, allow_truncated)
    if name.endswith(".gguf"):
        return GgufCheckpoint(spec, path, allow_truncated)
    if name.endswith(".safetensors"):
        return SafetensorsCheckpoint(spec, [path], None, allow_truncated)
    if name.endswith(PICKLES):
        return _torch(spec, [path])
    if name.endswith(".npy"):
        return NpyCheckpoint(spec, path)
    if name.endswith(".npz"):
        return NpzCheckpoint(spec, path)
    raise SourceError(f"{path} is no kind of file that repcap reads: {KINDS}")


def _torch(spec: str, files: list[Path], consolidated: bool = False) -> Checkpoint:
    """A checkpoint of pickles; torch is imported only for these."""
    if consolidated and len(files) > 1:
        from repcap.sources.formats.consolidated import ConsolidatedCheckpoint

        return ConsolidatedCheckpoint(spec, files)
    from repcap.sources.formats.torch_file import TorchCheckpoint

    found = TorchCheckpoint(spec, files)
    others = [item.name for item in files[0].parent.glob("consolidated.*.pth") if NUMBERED.match(item.name)]
    if not consolidated and NUMBERED.match(files[0].name) and len(others) > 1:
        found.complete = False
        found.note(f"{files[0].name} is one of {len(others)} tensor-parallel parts: give the directory to join them")
    return found


def _open_index(spec: str, path: Path, allow_truncated: bool) -> Checkpoint:
    if ".safetensors" in path.name:
        return SafetensorsCheckpoint.from_index(spec, path, allow_truncated)
    from repcap.sources.formats.torch_file import TorchCheckpoint

    return TorchCheckpoint.from_index(spec, path)


def _open_directory(spec: str, path: Path, allow_truncated: bool) -> Checkpoint:
    """The first kind that the directory holds: safetensors, pickles, GGUF, consolidated, arrays."""
    names = sorted(item.name for item in path.iterdir() if item.is_file())
    finders: tuple[Callable[[str, Path, list[str], bool], Checkpoint | None], ...] = (
        _safetensors,
        _pickles,
        _gguf,
        _consolidated,
        _rest,
    )
    for find in finders:
        found = find(spec, path, names, allow_truncated)
        if found is not None:
            return found
    below = sorted(item.name for item in path.iterdir() if item.is_dir() and not item.name.startswith("."))
    hint = f"; its directories: {', '.join(below[:6])}" if below else ""
    raise SourceError(f"{path} holds no checkpoint ({KINDS}){hint}")


def _one(path: Path, names: list[str], what: str) -> Path:
    """The only file of its kind."""
    if len(names) > 1:
        raise SourceError(f"{path} holds several {what} files ({', '.join(names[:6])}): name the one that you mean")
    return path / names[0]


def _safetensors(spec: str, path: Path, names: list[str], allow_truncated: bool) -> Checkpoint | None:
    kept = [name for name in names if name.endswith(".safetensors") and not NOT_WEIGHTS.match(name)]
    indexes = [name for name in names if name.endswith(".safetensors.index.json")]
    for index in ("model.safetensors.index.json", *indexes):
        if index in names:
            return SafetensorsCheckpoint.from_index(spec, path / index, allow_truncated)
    for single in ("model.safetensors", "consolidated.safetensors"):
        if single in kept:
            return SafetensorsCheckpoint(spec, [path / single], None, allow_truncated)
    if not kept:
        return None
    shards = [name for name in kept if re.search(r"-\d{5}-of-\d{5}\.safetensors$", name)]
    if shards:  # no index: the headers say all that it would
        return SafetensorsCheckpoint(spec, [path / name for name in shards], None, allow_truncated)
    return SafetensorsCheckpoint(spec, [_one(path, kept, ".safetensors")], None, allow_truncated)


def _pickles(spec: str, path: Path, names: list[str], allow_truncated: bool) -> Checkpoint | None:
    if "pytorch_model.bin.index.json" in names:
        return _open_index(spec, path / "pytorch_model.bin.index.json", allow_truncated)
    kept = [name for name in names if re.match(r"^pytorch_model.*\.bin$", name)]
    return _torch(spec, [path / name for name in kept]) if kept else None


def _gguf(spec: str, path: Path, names: list[str], allow_truncated: bool) -> Checkpoint | None:
    kept = [name for name in names if name.endswith(".gguf") and not name.startswith("mmproj")]
    if not kept:
        return None
    splits = [match.groups() for name in kept if (match := SPLIT.match(name))]
    if len(splits) == len(kept) and len({(stem, total) for stem, _, total in splits}) == 1:
        return GgufCheckpoint(spec, path / kept[0], allow_truncated)  # finds the other parts itself
    return GgufCheckpoint(spec, _one(path, kept, ".gguf"), allow_truncated)


def _consolidated(spec: str, path: Path, names: list[str], allow_truncated: bool) -> Checkpoint | None:
    kept = [name for name in names if NUMBERED.match(name)] or [name for name in names if name == "consolidated.pth"]
    return _torch(spec, [path / name for name in kept], consolidated=True) if kept else None


def _rest(spec: str, path: Path, names: list[str], allow_truncated: bool) -> Checkpoint | None:
    """A directory with a single other weight file, as SAE releases have."""
    kept = [name for name in names if name.endswith((*PICKLES, ".npz", ".npy")) and not NOT_WEIGHTS.match(name)]
    return open_path(spec, _one(path, kept, "weight"), allow_truncated) if kept else None
