"""The header of a GGUF file, parsed by our own reader, with checks.

`gguf.GGUFReader` turns every element of every metadata array into Python objects: seconds for a large vocabulary. This
one walks over arrays and decodes them only when asked. Format: magic, version, counts, metadata, tensor infos, data.
"""

from __future__ import annotations

import dataclasses
import math
import struct
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from repcap.errors import SourceError
from repcap.sources.formats.safetensors_header import lfs_message

MAGIC = b"GGUF"
SCALARS: dict[int, str] = {
    0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d",
}  # fmt: skip
"""Value type -> struct code."""
STRING, ARRAY = 8, 9
MAX_DIMS = 4
DEFAULT_ALIGNMENT = 32
ALIGNMENTS = frozenset(1 << power for power in range(21))
MAX_HEADER = 1 << 28
"""Bytes up to the end of the tensor list. A vocabulary of 256k pieces with its merges takes 12 MB."""
MAX_ITEMS = 1 << 20
"""Tensors, pairs of metadata, or arrays in arrays."""


class IncompleteHeader(SourceError):
    """The bytes given end inside the header: give more of the file (`needed` at least)."""

    def __init__(self, where: str, needed: int) -> None:
        super().__init__(f"{where} is truncated inside its header (it needs at least {needed} bytes): fetch it again")
        self.needed = needed


@dataclasses.dataclass(frozen=True)
class ArrayRef:
    """A metadata array that has been walked over, not decoded."""

    kind: int
    count: int
    start: int


@dataclasses.dataclass(frozen=True)
class GgufTensor:
    """A tensor: logical shape (rows first), ggml type number, absolute byte range."""

    shape: tuple[int, ...]
    kind: int
    start: int
    stop: int


@dataclasses.dataclass(frozen=True)
class GgufHeader:
    metadata: dict[str, Any]
    """Scalars and strings as they are, arrays as ArrayRef."""
    tensors: dict[str, GgufTensor]
    end: int
    """Where the last tensor ends."""
    alignment: int
    length: int
    """Bytes up to the end of the tensor list."""


class Cursor:
    """A position in a buffer; every read is checked against its end."""

    def __init__(self, buffer: Any, where: str, position: int = 0) -> None:
        self.buffer, self.where, self.at, self.size = buffer, where, position, len(buffer)
        self.arrays = 0

    def move(self, count: int) -> int:
        """Step over `count` bytes and return where they began."""
        first = self.at
        if first + count > MAX_HEADER:
            raise SourceError(f"{self.where} has a damaged header (it goes beyond {MAX_HEADER} bytes): fetch it again")
        if count > self.size - first:
            raise IncompleteHeader(self.where, first + count)
        self.at = first + count
        return first

    def scalar(self, code: str) -> Any:
        return struct.unpack_from(code, self.buffer, self.move(struct.calcsize(code)))[0]

    def count(self) -> int:
        return int(self.scalar("<Q"))

    def text(self) -> str:
        length = self.count()
        first = self.move(length)
        return bytes(self.buffer[first : first + length]).decode("utf-8", errors="replace")

    def skip_strings(self, count: int) -> None:
        """Walk over `count` strings."""
        if count > MAX_HEADER // 8:
            self.move(8 * count)  # which says what is wrong
        unpack, at, last = struct.Struct("<Q").unpack_from, self.at, self.size - 8
        for _ in range(count):
            if at > last:
                raise IncompleteHeader(self.where, at + 8)
            at += 8 + unpack(self.buffer, at)[0]
        self.at = at
        self.move(0)

    def value(self, kind: int, depth: int = 0) -> Any:
        if kind in SCALARS:
            return self.scalar(SCALARS[kind])
        if kind == STRING:
            return self.text()
        if kind == ARRAY:
            return self._array(depth)
        raise SourceError(f"{self.where} has a damaged header (value type {kind}): fetch it again")

    def _array(self, depth: int) -> ArrayRef:
        kind, count = int(self.scalar("<I")), self.count()
        found = ArrayRef(kind, count, self.at)
        self.arrays += 1
        if kind in SCALARS:
            self.move(count * struct.calcsize(SCALARS[kind]))
        elif kind == STRING:
            self.skip_strings(count)
        elif kind == ARRAY and depth < 4 and self.arrays + count <= MAX_ITEMS:
            for _ in range(count):
                self._array(depth + 1)
        else:
            raise SourceError(f"{self.where} has a damaged header (array of type {kind}): fetch it again")
        return found


def read_array(buffer: Any, ref: ArrayRef, where: str) -> Iterator[Any]:
    """The elements of an array, one after another."""
    cursor = Cursor(buffer, where, ref.start)
    for _ in range(ref.count):
        yield cursor.value(ref.kind)


def parse_gguf(buffer: Any, file_size: int, where: str, sizes: dict[int, tuple[int, int]]) -> GgufHeader:
    """Check and parse a GGUF header.

    Parameters
    ----------
    buffer : bytes-like
        the file, or its beginning (IncompleteHeader says when that is too little).
    file_size : int
        size of the whole file.
    where : str
        name of the file for messages.
    sizes : dict
        ggml type -> (elements, bytes) a block. A tensor of an unknown type is listed with an empty byte range.

    Raises
    ------
    SourceError
        if this is no GGUF file, or of a version or byte order that is not read, or its header contradicts itself.
    """
    cursor = Cursor(buffer, where)
    _check_magic(cursor)
    tensor_count, pair_count = cursor.count(), cursor.count()
    # A pair takes 13 bytes and a tensor 24 at least: more than the file can hold is damage, not a reason to loop.
    if tensor_count * 24 + pair_count * 13 > file_size or max(tensor_count, pair_count) > MAX_ITEMS:
        raise SourceError(f"{where} has a damaged header ({tensor_count} tensors, {pair_count} pairs): fetch it again")
    metadata: dict[str, Any] = {}
    for _ in range(pair_count):
        key = cursor.text()
        if key in metadata:
            raise SourceError(f"{where} has a damaged header ({key!r} occurs twice): fetch it again")
        metadata[key] = cursor.value(int(cursor.scalar("<I")))
    infos = [_tensor_info(cursor) for _ in range(tensor_count)]
    alignment = metadata.get("general.alignment", DEFAULT_ALIGNMENT)
    if type(alignment) is not int or alignment not in ALIGNMENTS:
        raise SourceError(f"{where} has a damaged header (alignment {alignment}): fetch it again")
    base = -(-cursor.at // alignment) * alignment
    tensors: dict[str, GgufTensor] = {}
    for name, shape, kind, offset in infos:
        if name in tensors:
            raise SourceError(f"{where} has a damaged header (tensor {name!r} occurs twice): fetch it again")
        if offset % alignment:
            raise SourceError(
                f"{where} has a damaged header (tensor {name!r} lies at {offset}, no multiple of its alignment "
                f"{alignment}): fetch it again"
            )
        tensors[name] = _place(name, shape, kind, base + offset, sizes, where)
    _check_overlaps(tensors, where)
    return GgufHeader(metadata, tensors, max((t.stop for t in tensors.values()), default=base), alignment, cursor.at)


def _check_overlaps(tensors: dict[str, GgufTensor], where: str) -> None:
    """Two truths in one file: the bytes of one tensor are another's, too."""
    placed = sorted(tensors.items(), key=lambda item: (item[1].start, item[1].stop))
    for (left, before), (right, after) in pairwise(placed):
        if before.stop > after.start and after.stop > after.start:
            raise SourceError(f"{where}: tensors {left!r} and {right!r} overlap: the file is damaged or hostile")


def _check_magic(cursor: Cursor) -> None:
    where = cursor.where
    head = bytes(cursor.buffer[:24])
    if head.startswith(b"version https://git"):
        raise SourceError(lfs_message(where))
    if head[:4] != MAGIC:
        raise SourceError(f"{where} is not a GGUF file: it starts with {head[:4]!r}, not b'GGUF'")
    cursor.move(4)
    version = int(cursor.scalar("<I"))
    if version not in (2, 3):
        order = " (big-endian)" if version and version % (1 << 16) == 0 else ""
        raise SourceError(f"{where} is GGUF version {version}{order}; repcap reads versions 2 and 3, little-endian")


def _tensor_info(cursor: Cursor) -> tuple[str, tuple[int, ...], int, int]:
    name = cursor.text()
    dims = int(cursor.scalar("<I"))
    if dims > MAX_DIMS:
        raise SourceError(f"{cursor.where} has a damaged header (tensor {name!r} of {dims} dimensions): fetch it again")
    shape = tuple(reversed([cursor.count() for _ in range(dims)]))
    return name, shape, int(cursor.scalar("<I")), cursor.count()


def _place(
    name: str, shape: tuple[int, ...], kind: int, start: int, sizes: dict[int, tuple[int, int]], where: str
) -> GgufTensor:
    if kind not in sizes:
        return GgufTensor(shape, kind, start, start)
    elements, size = sizes[kind]
    columns = shape[-1] if shape else 1
    if columns % elements:
        raise SourceError(
            f"{where}: tensor {name!r} has rows of {columns} elements, not whole blocks of {elements}: "
            "fetch the file again"
        )
    return GgufTensor(shape, kind, start, start + math.prod(shape) // elements * size)
