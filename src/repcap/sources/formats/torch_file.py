"""`.bin`, `.pt`, `.pth`, `.ckpt`: pickles read with weights_only=True, mapped, never run."""

from __future__ import annotations

import pickle
import re
import warnings
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from repcap.errors import SourceError, UnsafeFileError
from repcap.matrix import Matrix, Tokens
from repcap.sources.beside import Folder
from repcap.sources.checkpoint import Checkpoint, TensorEntry
from repcap.sources.formats.memory import entry_of, shares_storage, tensor_matrix
from repcap.sources.formats.safetensors_header import LFS_MAGIC, lfs_message
from repcap.sources.formats.shards import absent_tensor, check_regular, missing_shards, read_index, unreadable_shard

WRAPPER_KEYS = ("state_dict", "model_state_dict", "model_state", "model", "module", "ema", "params", "weights", "sae")
"""Keys under which trainers keep the weights beside optimiser state and the like."""

MAX_DEPTH = 6
MOST_ITEMS = 1 << 20
MAX_PICKLE = 1 << 28
"""Bytes of the pickle in a zip archive, which holds names and shapes alone."""
REFUSED = re.compile(r"(?:Unsupported (?:global: GLOBAL|class)|GLOBAL) ([\w.]+)")


def load_tensors(path: Path) -> dict[str, torch.Tensor]:
    """Tensors of a pickle by name, mapped from the file where its format allows that.

    Raises
    ------
    UnsafeFileError
        if the pickle names anything but tensors and plain containers: nothing of it is run.
    SourceError
        if the file is damaged or holds no tensors.
    """
    check_regular(path)
    with path.open("rb") as file:
        head = file.read(len(LFS_MAGIC))
    if head == LFS_MAGIC:
        raise SourceError(lfs_message(str(path)))
    found = flatten(_load(path))
    if not found:
        raise SourceError(f"{path} holds no tensors: give a state dict (torch.save(model.state_dict(), ...))")
    return found


def _load(path: Path) -> Any:
    with path.open("rb") as file:
        head = file.read(4)
    zipped = head[:2] == b"PK"
    if not zipped and head[:1] != b"\x80":
        raise SourceError(f"{path} is not a PyTorch file: it starts with {head!r}, neither a zip archive nor a pickle")
    if zipped:
        _check_archive(path)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # on pickle protocols: what matters comes as an error
            return torch.load(path, map_location="cpu", weights_only=True, mmap=zipped)
    except pickle.UnpicklingError as error:
        raise _refusal(path, error) from error
    except MemoryError:
        raise
    except (
        Exception
    ) as error:  # torch reports damage as RuntimeError, ValueError, KeyError, EOFError, AssertionError ...
        reason = (str(error).splitlines() or [type(error).__name__])[0][:120]
        raise SourceError(f"{path} is not a readable PyTorch file ({reason}): fetch it again") from error


def _check_archive(path: Path) -> None:
    """Refuse an archive that torch has not written: it stores its members as they are, so that they can be mapped."""
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
    except (zipfile.BadZipFile, NotImplementedError, ValueError, OSError) as error:
        raise SourceError(f"{path} is truncated (the directory at its end is missing): fetch it again") from error
    for member in members:
        if member.compress_type != zipfile.ZIP_STORED:
            raise SourceError(
                f"{path} is not a PyTorch file: {member.filename} in it is compressed, as torch never writes it; "
                "save it again with torch.save"
            )
        if member.filename.endswith("data.pkl") and member.file_size > MAX_PICKLE:
            raise SourceError(f"{path} is not a PyTorch file: its pickle has {member.file_size} bytes; fetch it again")


def _refusal(path: Path, error: pickle.UnpicklingError) -> SourceError:
    """What to say where torch refuses to unpickle: it runs nothing but the building of tensors."""
    named = REFUSED.search(str(error))
    what = f"asks for {named.group(1)} to be called" if named else "holds more than tensors"
    return UnsafeFileError(
        f"{path} is a pickle that {what}; repcap runs no code from files: use a safetensors copy, "
        "or save model.state_dict() alone"
    )


def flatten(value: Any) -> dict[str, torch.Tensor]:
    """Tensors of nested containers by dotted name; the weights' own wrapper key is taken off.

    A file that is one tensor gives it as `tensor`.
    """
    if isinstance(value, torch.Tensor):
        return {"tensor": value}
    if isinstance(value, Mapping):
        top_level = any(isinstance(item, torch.Tensor) and item.dim() == 2 for item in value.values())
        for key in WRAPPER_KEYS:
            inner = value.get(key)
            # `model` beside top-level matrices is an ordinary prefix, not a trainer's wrapper.
            if isinstance(inner, Mapping) and _has_tensors(inner) and not top_level:
                return flatten(inner)
    return dict(_walk(value))


def _has_tensors(value: Mapping[Any, Any]) -> bool:
    return next(_walk(value), None) is not None


def _walk(value: Any) -> Iterator[tuple[str, torch.Tensor]]:
    """(dotted name, tensor) of nested containers.

    Raises
    ------
    SourceError
        if there are more than MOST_ITEMS things in them: a list of 300 times one list, six deep, takes 5 kB.
    """
    left = MOST_ITEMS

    def walk(item: Any, name: str, depth: int) -> Iterator[tuple[str, torch.Tensor]]:
        nonlocal left
        left -= 1
        if left < 0:
            raise SourceError(f"the pickle holds more than {MOST_ITEMS} things, one in the other: it is no state dict")
        if isinstance(item, torch.Tensor):
            yield name, item
            return
        pairs: Iterable[tuple[Any, Any]] = ()
        if depth < MAX_DEPTH and isinstance(item, Mapping):
            pairs = item.items()
        elif depth < MAX_DEPTH and isinstance(item, (list, tuple)):
            pairs = enumerate(item)
        for key, inner in pairs:
            yield from walk(inner, f"{name}.{key}" if name else str(key), depth + 1)

    return walk(value, "", 0)


class TorchCheckpoint(Checkpoint):
    """One pickle, or the shards of `pytorch_model.bin.index.json`. A missing shard matters only when it is wanted."""

    format = "pytorch"

    def __init__(self, spec: str, files: list[Path], index: dict[str, str] | None = None) -> None:
        self.spec, self._index = spec, index or {}
        self._folder = Folder(files[0].parent)
        self._broken: dict[str, SourceError] = {}
        self._own: tuple[str, ...] = ()
        self._named: dict[str, tuple[str, torch.Tensor]] = {}
        if index is None and (missing := missing_shards(files)):
            self.complete = False
            self.missing = f"{missing} of {missing + len(files)} shards are missing"
            self._own += (self.missing,)
        for file in files:
            self._add(file)

    @classmethod
    def from_index(cls, spec: str, index: Path) -> TorchCheckpoint:
        where = read_index(index)
        if not where:
            raise SourceError(f"{index} names no tensor: fetch it again")
        return cls(spec, [index.parent / name for name in sorted(set(where.values()))], where)

    def _add(self, file: Path) -> None:
        try:
            loaded = load_tensors(file)
        except UnsafeFileError:
            raise
        except (SourceError, OSError) as error:
            if not self._index:
                raise
            self._broken[file.name] = unreadable_shard(file, error)
            return
        for name, tensor in loaded.items():
            if name not in self._named or self._index.get(name) == file.name:
                self._named[name] = (file.name, tensor)

    @property
    def warnings(self) -> tuple[str, ...]:  # type: ignore[override]
        absent = [f"{name} cannot be read; tensors in it are listed from the index only" for name in self._broken]
        return (*self._own, *absent, *self._folder.warnings)

    def note(self, warning: str) -> None:
        self._own += (warning,)

    def tensors(self) -> dict[str, TensorEntry]:
        found = {name: entry_of(name, tensor, file) for name, (file, tensor) in self._named.items()}
        for name, file in self._index.items():
            if name not in found:
                found[name] = TensorEntry(name, (), "unknown", file)
        return found

    def holds(self, name: str) -> bool:
        return name in self._named or bool(self._broken)

    def facts(self, name: str) -> dict[str, Any]:
        return self._folder.facts(name)

    def config(self) -> dict[str, Any]:
        return self._folder.config

    def tokens(self) -> Tokens | None:
        return self._folder.tokens

    def same_storage(self, left: str, right: str) -> bool:
        if left not in self._named or right not in self._named:
            return False
        return shares_storage(self._named[left][1], self._named[right][1])

    def open(self, name: str) -> Matrix:
        entry = self.entry(name)
        if name not in self._named:
            raise absent_tensor(name, entry.file, self._broken)
        tensor = self._named[name][1]
        if _repeats(tensor):
            raise SourceError(
                f"{self.spec}: tensor {name!r} says more numbers than the file holds for it (strides "
                f"{tensor.stride()}): save it again after .contiguous()"
            )
        return tensor_matrix(tensor, name, self.spec)


def open_files(spec: str, files: Sequence[Path], allow_truncated: bool) -> TorchCheckpoint:
    """One file, shards, or an index of them. A truncated one cannot be read, whatever is allowed."""
    if files[0].suffix.lower() == ".json":
        return TorchCheckpoint.from_index(spec, files[0])
    return TorchCheckpoint(spec, list(files))


def _repeats(tensor: torch.Tensor) -> bool:
    """Whether a tensor has more elements than its storage: strides of 0 make petabytes of four bytes."""
    if tensor.layout != torch.strided or tensor.device.type == "meta" or tensor.is_nested:
        return False  # refused elsewhere
    return tensor.numel() * tensor.element_size() > tensor.untyped_storage().nbytes()
