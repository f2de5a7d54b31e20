"""What a PyTorch file holds and where, from its directory and its pickle alone: no storage is read.

A file of torch.save is a zip archive of stored members: `data.pkl`, which names the tensors, and one member a storage.
The pickle is read by Python's own unpickler of Python code (a memo index of four billion costs it nothing), which may
build containers and descriptions of tensors, and nothing else.
"""

from __future__ import annotations

import collections
import dataclasses
import io
import math
import pickle
import zipfile
from typing import IO, Any

import torch

from repcap.errors import SourceError, UnsafeFileError
from repcap.sources.formats.memory import dtype_name
from repcap.sources.formats.torch_file import MAX_PICKLE, flatten

LOCAL_HEADER = 30
"""Fixed part of a member's header; its name and extra fields follow."""
MOST_ELEMENTS = 1 << 48
STORAGES = {
    "DoubleStorage": torch.float64,
    "FloatStorage": torch.float32,
    "HalfStorage": torch.float16,
    "BFloat16Storage": torch.bfloat16,
    "LongStorage": torch.int64,
    "IntStorage": torch.int32,
    "ShortStorage": torch.int16,
    "CharStorage": torch.int8,
    "ByteStorage": torch.uint8,
    "BoolStorage": torch.bool,
}


@dataclasses.dataclass(frozen=True)
class Place:
    """A tensor in an archive. member: where the header of its storage begins. offset: bytes into the storage."""

    shape: tuple[int, ...]
    dtype: str
    member: int
    offset: int
    nbytes: int
    contiguous: bool


def read_places(file: IO[bytes], where: str) -> dict[str, Place]:
    """Every tensor of an archive by name. Cost: the directory at its end, and the pickle.

    Raises
    ------
    SourceError
        if it is no archive of torch.save, or damaged.
    UnsafeFileError
        if its pickle asks for anything but tensors and plain containers.
    """
    try:
        with zipfile.ZipFile(file) as archive:
            members = {member.filename: member for member in archive.infolist()}
            name = next((name for name in members if name.endswith("/data.pkl")), None)
            if name is None or members[name].file_size > MAX_PICKLE:
                raise SourceError(f"{where} is not a PyTorch file: it has no data.pkl of a usual size; fetch it again")
            found = _Unpickler(archive.read(name), where).load()
    except SourceError:
        raise
    except Exception as error:  # zipfile and pickle let through whatever a damaged file makes of them
        reason = (str(error).splitlines() or [type(error).__name__])[0][:120]
        raise SourceError(f"{where} is not a readable PyTorch file ({reason}): fetch it again") from error
    top = name.removesuffix("data.pkl")
    tensors = flatten(found)
    if not tensors:
        raise SourceError(f"{where} holds no tensors: give a state dict (torch.save(model.state_dict(), ...))")
    return {key: _place(key, tensor, members, top, where) for key, tensor in tensors.items()}


def _place(key: str, tensor: torch.Tensor, members: dict[str, zipfile.ZipInfo], top: str, where: str) -> Place:
    storage, offset, stride = tensor.place  # type: ignore[attr-defined]
    member = members.get(f"{top}data/{storage}")
    item = tensor.element_size()
    nbytes = tensor.numel() * item
    if member is None or member.compress_type != zipfile.ZIP_STORED or offset * item + nbytes > member.file_size:
        raise SourceError(f"{where}: tensor {key!r} is not where the file says: fetch it again")
    return Place(
        shape=tuple(tensor.shape),
        dtype=dtype_name(tensor),
        member=member.header_offset,
        offset=offset * item,
        nbytes=nbytes,
        contiguous=stride == tensor.stride() or tensor.numel() <= 1,
    )


def data_start(header: bytes, place: Place, where: str) -> int:
    """Byte of the archive at which a tensor begins, from the `LOCAL_HEADER` bytes at `place.member`."""
    if header[:4] != b"PK\x03\x04" or len(header) < LOCAL_HEADER:
        raise SourceError(f"{where} is not a readable PyTorch file (a member is not where it says): fetch it again")
    names = int.from_bytes(header[26:28], "little") + int.from_bytes(header[28:30], "little")
    return place.member + LOCAL_HEADER + names + place.offset


class _Storage:
    """A storage by its key."""

    def __init__(self, kind: Any, key: str) -> None:
        self.kind, self.key = kind, key


def _rebuild(storage: Any, offset: Any, size: Any, stride: Any, *_: Any) -> torch.Tensor:
    """A tensor without memory, in place of torch's own function of this name."""
    numbers = [offset, *size, *stride]
    if not isinstance(storage, _Storage) or not all(type(n) is int and 0 <= n <= MOST_ELEMENTS for n in numbers):
        raise ValueError("a tensor of impossible numbers")
    if math.prod(size) > MOST_ELEMENTS or len(size) != len(stride):
        raise ValueError("a tensor of impossible size")
    tensor = torch.empty(tuple(size), dtype=storage.kind, device="meta")
    tensor.place = (storage.key, offset, tuple(stride))  # type: ignore[attr-defined]
    return tensor


_ALLOWED: dict[tuple[str, str], Any] = {
    ("collections", "OrderedDict"): collections.OrderedDict,
    ("torch._utils", "_rebuild_tensor_v2"): _rebuild,
    ("torch._utils", "_rebuild_parameter"): lambda data, *_: data,
    ("torch", "Size"): tuple,
    **{("torch", name): dtype for name, dtype in STORAGES.items()},
}


class _Unpickler(pickle._Unpickler):  # the one that is written in Python
    def __init__(self, body: bytes, where: str) -> None:
        super().__init__(io.BytesIO(body), encoding="utf-8")
        self._where = where

    def find_class(self, module: str, name: str) -> Any:
        found = _ALLOWED.get((module, name))
        if found is None:
            raise UnsafeFileError(
                f"{self._where} is a pickle that asks for {module}.{name} to be called; repcap runs no code from "
                "files: use a safetensors copy, or save model.state_dict() alone"
            )
        return found

    def persistent_load(self, pid: Any) -> _Storage:
        if not isinstance(pid, tuple) or len(pid) < 3 or pid[0] != "storage" or not isinstance(pid[1], torch.dtype):
            raise ValueError("a storage of an unknown kind")
        return _Storage(pid[1], str(pid[2]))
