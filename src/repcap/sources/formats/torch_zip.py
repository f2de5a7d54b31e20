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
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import IO, Any, ClassVar

import torch

from repcap.errors import SourceError, UnsafeFileError

LOCAL_HEADER = 30
"""Fixed part of a member's header; its name and extra fields follow."""
MOST_ELEMENTS = 1 << 48
STORAGES = {
    "DoubleStorage": "float64",
    "FloatStorage": "float32",
    "HalfStorage": "float16",
    "BFloat16Storage": "bfloat16",
    "LongStorage": "int64",
    "IntStorage": "int32",
    "ShortStorage": "int16",
    "CharStorage": "int8",
    "ByteStorage": "uint8",
    "BoolStorage": "bool",
    "ComplexFloatStorage": "complex64",
    "ComplexDoubleStorage": "complex128",
}
"""Those of other dtypes are untyped; the tensor then says its dtype."""
QUANTISED = ("QInt8Storage", "QUInt8Storage", "QInt32Storage", "QUInt4x2Storage", "QUInt2x4Storage")
WRAPPER_KEYS = ("state_dict", "model_state_dict", "model_state", "model", "module", "ema", "params", "weights", "sae")
"""Keys under which trainers keep the weights beside optimiser state and the like."""

MAX_DEPTH = 6
MOST_ITEMS = 1 << 20
MAX_PICKLE = 1 << 28
"""Bytes of the pickle in a zip archive, which holds names and shapes alone."""


@dataclasses.dataclass(frozen=True)
class Place:
    """A tensor in an archive."""

    shape: tuple[int, ...]
    dtype: str
    strides: tuple[int, ...]
    """In elements."""
    key: str
    """Of its storage."""
    offset: int
    """Elements into the storage."""
    odd: str = ""
    """What it is instead of a plain tensor: `sparse`, `nested`, `quantised`."""
    member: int = -1
    """Where the header of its storage begins; -1 where there is no such storage."""
    held: int = 0
    """Bytes of the storage."""

    def dim(self) -> int:
        return len(self.shape)

    @property
    def contiguous(self) -> bool:
        """Whether its elements lie one behind the other."""
        steps = [math.prod(self.shape[place + 1 :]) for place in range(len(self.shape))]
        pairs = zip(self.shape, self.strides, steps, strict=True)
        return not math.prod(self.shape) or all(size == 1 or stride == step for size, stride, step in pairs)

    @property
    def extent(self) -> int:
        """Elements of the storage from its first to its last."""
        if not math.prod(self.shape):
            return 0
        return 1 + sum((size - 1) * stride for size, stride in zip(self.shape, self.strides, strict=True))


LEAVES = (torch.Tensor, Place)


def read_places(file: IO[bytes], where: str, again: str = "fetch it again") -> dict[str, Place]:
    """Every tensor of an archive by name. Cost: the directory at its end, and the pickle.

    again: what to do about a damaged file, for the message.

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
            name = _check(members, where, again)
            order = members.get(name.removesuffix("data.pkl") + "byteorder")
            if order is not None and order.file_size < 16 and archive.read(order) == b"big":
                raise SourceError(f"{where} was saved on a big-endian machine: save it again on this one")
            found = _Unpickler(archive.read(name), where).load()
    except SourceError:
        raise
    except zipfile.BadZipFile as error:
        raise SourceError(f"{where} is truncated (the directory at its end is missing): {again}") from error
    except Exception as error:  # zipfile and pickle let through whatever a damaged file makes of them
        raise unreadable(where, error, again) from error
    top = name.removesuffix("data.pkl")
    tensors = flatten(found)
    if not tensors:
        raise SourceError(no_tensors(where))
    return {key: _placed(tensor, members.get(f"{top}data/{tensor.key}")) for key, tensor in tensors.items()}


def unreadable(where: str, error: BaseException, again: str) -> SourceError:
    """What to say of a file that a library cannot make sense of."""
    reason = (str(error).splitlines() or [type(error).__name__])[0][:120]
    return SourceError(f"{where} is not a readable PyTorch file ({reason}): {again}")


def no_tensors(where: str) -> str:
    return f"{where} holds no tensors: give a state dict (torch.save(model.state_dict(), ...))"


def _check(members: Mapping[str, zipfile.ZipInfo], where: str, again: str) -> str:
    """The name of the pickle. Refuses an archive that torch has not written: it stores its members as they are."""
    for member in members.values():
        if member.compress_type != zipfile.ZIP_STORED:
            raise SourceError(
                f"{where} is not a PyTorch file: {member.filename} in it is compressed, as torch never writes it; "
                "save it again with torch.save"
            )
    name = next((name for name in members if name.endswith("/data.pkl")), None)
    if name is None or members[name].file_size > MAX_PICKLE:
        raise SourceError(f"{where} is not a PyTorch file: it has no data.pkl of a usual size; {again}")
    return name


def _placed(tensor: Place, member: zipfile.ZipInfo | None) -> Place:
    if member is None:
        return tensor
    return dataclasses.replace(tensor, member=member.header_offset, held=member.file_size)


def data_shift(header: bytes, where: str, again: str) -> int:
    """Bytes from the header of a member, of which `header` is the fixed part, to its data."""
    if header[:4] != b"PK\x03\x04" or len(header) < LOCAL_HEADER:
        raise SourceError(f"{where} is not a readable archive (a member is not where it says): {again}")
    return LOCAL_HEADER + int.from_bytes(header[26:28], "little") + int.from_bytes(header[28:30], "little")


def flatten(value: Any) -> dict[str, Any]:
    """Tensors (or Places) of nested containers by dotted name; the weights' own wrapper key is taken off.

    A file that is one tensor gives it as `tensor`.
    """
    if isinstance(value, LEAVES):
        return {"tensor": value}
    if isinstance(value, Mapping):
        top_level = any(isinstance(item, LEAVES) and item.dim() == 2 for item in value.values())
        for key in WRAPPER_KEYS:
            inner = value.get(key)
            # `model` beside top-level matrices is an ordinary prefix, not a trainer's wrapper.
            if isinstance(inner, Mapping) and _has_tensors(inner) and not top_level:
                return flatten(inner)
    return dict(_walk(value))


def _has_tensors(value: Mapping[Any, Any]) -> bool:
    return next(_walk(value), None) is not None


def _walk(value: Any) -> Iterator[tuple[str, Any]]:
    """(dotted name, tensor) of nested containers.

    Raises
    ------
    SourceError
        if there are more than MOST_ITEMS things in them: a list of 300 times one list, six deep, takes 5 kB.
    """
    left = MOST_ITEMS

    def walk(item: Any, name: str, depth: int) -> Iterator[tuple[str, Any]]:
        nonlocal left
        left -= 1
        if left < 0:
            raise SourceError(f"the pickle holds more than {MOST_ITEMS} things, one in the other: it is no state dict")
        if isinstance(item, LEAVES):
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


# The pickle


class _Storage:
    """A storage by its key."""

    def __init__(self, kind: str, key: str) -> None:
        self.kind, self.key = kind, key


def _rebuild(storage: Any, offset: Any, size: Any, stride: Any, *rest: Any) -> Place:
    """A description, in place of torch's own function of this name."""
    numbers = [offset, *size, *stride]
    if not isinstance(storage, _Storage) or not all(type(n) is int and 0 <= n <= MOST_ELEMENTS for n in numbers):
        raise ValueError("a tensor of impossible numbers")
    if len(size) != len(stride):
        raise ValueError("a tensor of impossible shape")
    odd = "quantised" if storage.kind in QUANTISED else ""
    return Place(tuple(size), storage.kind, tuple(stride), storage.key, offset, odd)


def _rebuild_typed(
    storage: Any, offset: Any, size: Any, stride: Any, grad: Any, hooks: Any, dtype: Any, *_: Any
) -> Place:
    if not isinstance(dtype, torch.dtype):
        raise ValueError("a tensor of no dtype")
    return dataclasses.replace(_rebuild(storage, offset, size, stride), dtype=str(dtype).removeprefix("torch."))


def _rebuild_sparse(layout: Any, data: Any) -> Place:
    size, values = next((part for part in data if isinstance(part, tuple)), ()), data[1]
    if not isinstance(values, Place) or not all(type(n) is int and 0 <= n <= MOST_ELEMENTS for n in size):
        raise ValueError("a sparse tensor of impossible numbers")
    return Place(size, values.dtype, (0,) * len(size), "", 0, "sparse")


def _rebuild_nested(buffer: Any, *_: Any) -> Place:
    return Place((), buffer.dtype, (), "", 0, "nested")


def _rebuild_from(function: Any, kind: Any, arguments: Any, state: Any) -> Any:
    """A tensor with attributes, which are left out."""
    return function(*arguments)


def _first(data: Any, *_: Any) -> Any:
    return data


_UTILS: dict[str, Callable[..., Any]] = {
    "_rebuild_tensor": _rebuild,
    "_rebuild_tensor_v2": _rebuild,
    "_rebuild_tensor_v3": _rebuild_typed,
    "_rebuild_qtensor": _rebuild,
    "_rebuild_sparse_tensor": _rebuild_sparse,
    "_rebuild_nested_tensor": _rebuild_nested,
    "_rebuild_parameter": _first,
    "_rebuild_parameter_with_state": _first,
}
_ALLOWED: dict[tuple[str, str], Any] = {
    ("collections", "OrderedDict"): collections.OrderedDict,
    ("torch._tensor", "_rebuild_from_type_v2"): _rebuild_from,
    ("torch.nn.parameter", "Parameter"): "Parameter",
    ("torch", "Tensor"): "Tensor",
    ("torch", "Size"): tuple,
    ("torch", "device"): str,
    ("torch.serialization", "_get_layout"): str,
    ("torch.storage", "UntypedStorage"): "uint8",
    **{("torch._utils", name): function for name, function in _UTILS.items()},
    **{("torch", name): dtype for name, dtype in STORAGES.items()},
    **{("torch", name): name for name in QUANTISED},
}


class _Unpickler(pickle._Unpickler):  # the one that is written in Python
    def __init__(self, body: bytes, where: str) -> None:
        super().__init__(io.BytesIO(body), encoding="utf-8")
        self._where = where

    def find_class(self, module: str, name: str) -> Any:
        found = _ALLOWED.get((module, name))
        if found is None and module == "torch" and isinstance(getattr(torch, name, None), (torch.dtype, torch.qscheme)):
            found = getattr(torch, name)
        if found is None:
            raise refusal(self._where, f"asks for {module}.{name} to be called")
        return found

    def persistent_load(self, pid: Any) -> _Storage:
        kinds = (*STORAGES.values(), *QUANTISED)
        if not isinstance(pid, tuple) or len(pid) < 3 or pid[0] != "storage" or pid[1] not in kinds:
            raise ValueError("a storage of an unknown kind")
        return _Storage(pid[1], str(pid[2]))

    def _no_state(self) -> None:
        """State of an object (`_metadata` of a state dict) is left out: it could change what we have lent."""
        self.stack.pop()  # type: ignore[attr-defined]

    dispatch: ClassVar[dict[int, Any]] = {**pickle._Unpickler.dispatch, pickle.BUILD[0]: _no_state}
    del dispatch[pickle.BYTEARRAY8[0]]  # takes the memory that it names; torch writes none


def refusal(where: str, what: str) -> UnsafeFileError:
    """What to say of a pickle that wants more than the building of tensors."""
    return UnsafeFileError(
        f"{where} is a pickle that {what}; repcap runs no code from files: use a safetensors copy, "
        "or save model.state_dict() alone"
    )
