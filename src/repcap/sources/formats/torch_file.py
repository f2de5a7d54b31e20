"""`.bin`, `.pt`, `.pth`, `.ckpt`: pickles that are never run. Archives are read tensor by tensor, here or far away."""

from __future__ import annotations

import dataclasses
import functools
import io
import json
import math
import pickle
import re
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from repcap.errors import SourceError, VectorsError
from repcap.matrix import Matrix
from repcap.sources.formats.dtypes import ITEM_BYTES
from repcap.sources.formats.memory import entry_of, tensor_matrix
from repcap.sources.formats.safetensors_header import LFS_MAGIC, Span, lfs_message
from repcap.sources.formats.sharded import ShardedCheckpoint, open_shards
from repcap.sources.formats.stored_rows import turned
from repcap.sources.formats.torch_zip import (
    LOCAL_HEADER,
    Place,
    data_shift,
    flatten,
    no_tensors,
    read_places,
    refusal,
    unreadable,
)
from repcap.sources.stored_files import DiskFile, Files, StoredFile

REFUSED = re.compile(r"(?:Unsupported (?:global: GLOBAL|class)|GLOBAL) ([\w.]+)")
ZIP = b"PK"


class OldPickle(Exception):
    """A file of before PyTorch 1.6, of which no part can be read alone."""


class TorchShard:
    """One PyTorch file: its directory and its pickle, then the bytes of the tensors that are read.

    A file of before PyTorch 1.6 is no archive: it is loaded whole. Cost of the header: some reads of 64 kB.
    """

    notes: tuple[str, ...] = ()

    def __init__(self, file: StoredFile) -> None:
        self.file, self.name = file, file.name

    @functools.cached_property
    def _held(self) -> Mapping[str, Place] | Mapping[str, torch.Tensor]:
        try:
            return self.file.header(self._read, _parse)
        except OldPickle:
            return load_tensors(self.file.whole("no part of a file of this old kind can be read alone"))

    def _read(self) -> bytes:
        """The places as JSON, which is what is kept of a file that is far away."""
        head = self.file.read(0, len(LFS_MAGIC))  # which tells the size, too
        if head == LFS_MAGIC:
            raise SourceError(lfs_message(self.file.where))
        if head[:1] == b"\x80":
            raise OldPickle
        if head[:2] != ZIP:
            raise SourceError(
                f"{self.file.where} is not a PyTorch file: it starts with {head[:4]!r}, neither a zip archive nor a "
                "pickle"
            )
        stream = io.BufferedReader(_Stream(self.file), 1 << 16)
        places = read_places(stream, self.file.where, self.file.again)
        return json.dumps({name: dataclasses.astuple(place) for name, place in places.items()}).encode()

    @functools.cached_property
    def spans(self) -> Mapping[str, Span]:
        held: Mapping[str, Any] = self._held
        return {name: _span(name, held, number) for number, (name, held) in enumerate(held.items())}

    def open(self, name: str, source: str) -> Matrix:
        held = self._held[name]
        if isinstance(held, torch.Tensor):
            if _repeats(held):
                raise _too_little(source, name, held.stride())
            return tensor_matrix(held, name, source)
        return self._open(held, name, source)

    def _open(self, place: Place, name: str, source: str) -> Matrix:
        file, where = self.file, f"{source}: tensor {name!r}"
        if place.odd == "quantised":
            raise SourceError(f"{where} is packed by a quantiser: dequantise it first, or load the model unquantised")
        if place.odd:
            raise VectorsError(f"{where} is {place.odd}: give a dense tensor (.to_dense())")
        item = ITEM_BYTES.get(place.dtype, 1)
        if math.prod(place.shape) * item > place.held:
            raise _too_little(source, name, place.strides)
        if place.member < 0 or (place.offset + place.extent) * item > place.held:
            raise SourceError(f"{file.where}: tensor {name!r} is not where the file says: {file.again}")
        start = place.member + place.offset * item

        def open_span(shape: tuple[int, ...]) -> Matrix:
            return file.open_span(Span(shape, place.dtype, start, start), name, source, shift)

        def shift() -> int:
            return data_shift(file.read(place.member, place.member + LOCAL_HEADER), file.where, file.again)

        if place.contiguous:
            return open_span(place.shape)
        if place.dim() == 2 and place.strides == (1, place.shape[0]):
            return turned(open_span(place.shape[::-1]))
        # A part of rows, say: what lies between its elements is read, too, and all of it is held.
        with open_span((place.extent,)) as flat:
            whole = torch.as_strided(flat.read(0, 1)[0], place.shape, place.strides)
        return tensor_matrix(whole, name, source)


def _parse(body: bytes) -> dict[str, Place]:
    held: dict[str, list[Any]] = json.loads(body)
    return {
        name: Place(tuple(shape), dtype, tuple(strides), *rest) for name, (shape, dtype, strides, *rest) in held.items()
    }


def _span(name: str, held: Place | torch.Tensor, number: int) -> Span:
    """Shape, dtype, and what tells two pieces of memory apart."""
    if isinstance(held, torch.Tensor):
        entry = entry_of(name, held)
        plain = held.layout == torch.strided and not held.is_nested
        start = held.data_ptr() if plain else -1 - number
        return Span(entry.shape, entry.dtype, start, start, tuple(held.stride()) if plain else None)
    start = held.member + held.offset * ITEM_BYTES.get(held.dtype, 1) if held.member >= 0 else -1 - number
    return Span(held.shape, held.dtype, start, start, held.strides)


def _too_little(source: str, name: str, strides: Sequence[int]) -> SourceError:
    return SourceError(
        f"{source}: tensor {name!r} says more numbers than the file holds for it (strides {tuple(strides)}): "
        "save it again after .contiguous()"
    )


class _Stream(io.RawIOBase):
    """A stored file as a stream that can seek."""

    def __init__(self, file: StoredFile) -> None:
        self._file, self._at = file, 0
        if file.size is None:
            raise SourceError(f"{file.where}: the server does not say how long the file is: its end cannot be read")
        self._size = file.size

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        self._at = max(0, offset + (0, self._at, self._size)[whence])
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, buffer: Any) -> int:
        stop = min(self._size, self._at + len(buffer))
        if stop <= self._at:
            return 0
        piece = self._file.read(self._at, stop)
        buffer[: len(piece)] = piece
        self._at += len(piece)
        return len(piece)


def load_tensors(path: Path) -> dict[str, torch.Tensor]:
    """Tensors of an old pickle by name, in memory.

    Raises
    ------
    UnsafeFileError
        if the pickle names anything but tensors and plain containers: nothing of it is run.
    SourceError
        if the file is damaged or holds no tensors.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # on pickle protocols: what matters comes as an error
            found = flatten(torch.load(path, map_location="cpu", weights_only=True))
    except pickle.UnpicklingError as error:
        named = REFUSED.search(str(error))
        # torch leaves out the last character of a line, also where that is not its end.
        if named and path.read_bytes()[:-1].endswith(named.group(1).rpartition(".")[2].encode()):
            raise unreadable(str(path), EOFError("it ends in the middle of a name"), DiskFile.again) from error
        what = f"asks for {named.group(1)} to be called" if named else "holds more than tensors"
        raise refusal(str(path), what) from error
    except (MemoryError, SourceError):
        raise
    # torch reports damage as RuntimeError, ValueError, KeyError, EOFError, AssertionError ...
    except Exception as error:
        raise unreadable(str(path), error, DiskFile.again) from error
    if not found:
        raise SourceError(no_tensors(str(path)))
    return found


def open_files(files: Files) -> ShardedCheckpoint:
    """One file, shards, or an index of them. A truncated one cannot be read, whatever is allowed."""
    return open_shards("pytorch", files, TorchShard)


def _repeats(tensor: torch.Tensor) -> bool:
    """Whether a tensor has more elements than its storage: strides of 0 make petabytes of four bytes."""
    if tensor.layout != torch.strided or tensor.device.type == "meta" or tensor.is_nested:
        return False  # refused elsewhere
    return tensor.numel() * tensor.element_size() > tensor.untyped_storage().nbytes()
