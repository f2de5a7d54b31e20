"""ONNX: the initialisers of a graph, read from where they lie. The graph is walked over, never loaded.

An `.onnx` file is one message of protobuf: fields of (number, kind, value), where a message in a message is a run of
bytes. Only the lengths on the way to the initialisers are read, so neither the onnx package nor the other weights are
needed. Exporters keep the name of an embedding that is gathered from; matrices that are multiplied with are often
renamed (`onnx::MatMul_2319`) and turned, so a missing unembedding proves nothing.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from repcap.errors import SourceError
from repcap.matrix import Matrix
from repcap.sources.beside import Folder
from repcap.sources.checkpoint import Checkpoint, TensorEntry
from repcap.sources.formats.dtypes import ITEM_BYTES
from repcap.sources.formats.safetensors_header import Span
from repcap.sources.formats.sharded import is_inside
from repcap.sources.stored_files import DiskFile, Files, check_regular

GRAPH, INITIALIZER = 7, 5
"""Fields of ModelProto and GraphProto."""
DIMS, DATA_TYPE, FLOAT_DATA, NAME, RAW_DATA, EXTERNAL, LOCATION = 1, 2, 4, 8, 9, 13, 14
"""Fields of TensorProto."""
TYPES = {
    1: "float32", 2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 6: "int32", 7: "int64", 9: "bool", 10: "float16",
    11: "float64", 12: "uint32", 13: "uint64", 14: "complex64", 15: "complex128", 16: "bfloat16", 17: "float8_e4m3fn",
    18: "float8_e4m3fnuz", 19: "float8_e5m2", 20: "float8_e5m2fnuz",
}  # fmt: skip
"""Element type of ONNX -> canonical dtype."""
VARINT, EIGHT, BYTES, FOUR = 0, 1, 2, 5
"""Kinds of a field."""
MOST_FIELDS = 1 << 22
LONGEST_TEXT = 1 << 16


@dataclasses.dataclass(frozen=True)
class _Initialiser:
    shape: tuple[int, ...]
    dtype: str
    file: str
    """Beside the graph, or its own."""
    start: int
    stop: int


class OnnxCheckpoint(Checkpoint):
    """The initialisers of one graph, with data in the file or in files beside it."""

    format = "onnx"
    renames = True
    missing = "an ONNX graph may have its matrices under other names"

    def __init__(self, spec: str, path: Path) -> None:
        check_regular(path)
        self.spec, self.path, self.beside = spec, path, Folder(path.parent)
        with path.open("rb") as file:
            self._found = _Walk(file, path).initialisers()
        if not self._found:
            raise SourceError(f"{path} holds no weights (no initialiser in its graph)")

    def tensors(self) -> dict[str, TensorEntry]:
        return self._entries

    @functools.cached_property
    def _entries(self) -> dict[str, TensorEntry]:
        return {name: TensorEntry(name, item.shape, item.dtype, item.file) for name, item in self._found.items()}

    def open(self, name: str) -> Matrix:
        self.entry(name)
        item = self._found[name]
        if item.start < 0:
            raise SourceError(f"{self.path}: tensor {name!r} is stored number by number: export it with raw data")
        file = self.path.parent / item.file
        check_regular(file)
        if not file.is_file():
            raise SourceError(f"{file} is missing: {self.path.name} keeps {name!r} there; fetch that file")
        size = math.prod(item.shape) * ITEM_BYTES.get(item.dtype, 0)
        if item.dtype in ITEM_BYTES and size > item.stop - item.start:
            raise SourceError(
                f"{self.path}: tensor {name!r} of shape {list(item.shape)} needs {size} bytes, the file gives "
                f"{item.stop - item.start}: export it again"
            )
        return DiskFile(file).open_span(Span(item.shape, item.dtype, item.start, item.start + size), name, self.spec)


def open_files(files: Files) -> OnnxCheckpoint:
    """One graph."""
    return OnnxCheckpoint(files.spec, files.path)


class _Walk:
    """Goes over a file of protobuf. Memory: one name at a time."""

    def __init__(self, file: IO[bytes], path: Path) -> None:
        self._file, self._path, self._left = file, path, MOST_FIELDS
        self._size = path.stat().st_size

    def initialisers(self) -> dict[str, _Initialiser]:
        found: dict[str, _Initialiser] = {}
        for field, kind, start, stop in self._fields(0, self._size):
            if (field, kind) != (GRAPH, BYTES):
                continue
            for inner, inner_kind, first, last in self._fields(start, stop):
                if (inner, inner_kind) == (INITIALIZER, BYTES):
                    name, item = self._tensor(first, last)
                    if name in found:
                        raise self._damaged(f"{name!r} occurs twice")
                    found[name] = item
        return found

    def _tensor(self, start: int, stop: int) -> tuple[str, _Initialiser]:
        dims: list[int] = []
        name, kind_number, external = "", 0, dict[str, str]()
        data = (self._path.name, -1, -1)
        for field, kind, a, b in self._fields(start, stop):
            if field == DIMS:
                dims += [a] if kind == VARINT else self._varints(a, b)
            elif field == DATA_TYPE and kind == VARINT:
                kind_number = a
            elif field == NAME and kind == BYTES:
                name = self._text(a, b)
            elif kind == BYTES and (field == RAW_DATA or (field == FLOAT_DATA and b > a)):
                data = (self._path.name, a, b)
            elif field == EXTERNAL and kind == BYTES:
                key, value = self._pair(a, b)
                external[key] = value
        if any(size < 0 or size > 1 << 48 for size in dims) or len(dims) > 16:
            raise self._damaged(f"tensor {name!r} has an impossible shape")
        dtype = TYPES.get(kind_number, f"ONNX type {kind_number}")
        if "location" in external:
            data = self._external(name, external)
        return name, _Initialiser(tuple(dims), dtype, *data)

    def _external(self, name: str, held: dict[str, str]) -> tuple[str, int, int]:
        file = held["location"]
        if not is_inside(file):
            raise SourceError(f"{self._path} places tensor {name!r} in {file!r}, outside its own directory: refused")
        numbers = [held.get("offset", "0"), held.get("length", "")]
        if not all(number.isdecimal() and len(number) < 19 for number in numbers if number):
            raise self._damaged(f"tensor {name!r} has an offset or length that is no number")
        start = int(numbers[0] or 0)
        return file, start, start + int(numbers[1]) if numbers[1] else 1 << 62

    def _pair(self, start: int, stop: int) -> tuple[str, str]:
        texts = {field: self._text(a, b) for field, kind, a, b in self._fields(start, stop) if kind == BYTES}
        return texts.get(1, ""), texts.get(2, "")

    def _text(self, start: int, stop: int) -> str:
        if stop - start > LONGEST_TEXT:
            raise self._damaged(f"a name of {stop - start} bytes")
        self._file.seek(start)
        return self._file.read(stop - start).decode("utf-8", "backslashreplace")

    def _varints(self, start: int, stop: int) -> list[int]:
        found, at = [], start
        while at < stop:
            value, at = self._varint(at, stop)
            found.append(value)
            if len(found) > 16:
                raise self._damaged("a shape of more than 16 dimensions")
        return found

    def _fields(self, start: int, stop: int) -> Iterator[tuple[int, int, int, int]]:
        """(number, kind, value, 0), or for runs of bytes (number, kind, first, last)."""
        at = start
        while at < stop:
            self._left -= 1
            if self._left < 0:
                raise self._damaged(f"more than {MOST_FIELDS} fields")
            tag, at = self._varint(at, stop)
            field, kind = tag >> 3, tag & 7
            if kind == VARINT:
                value, at = self._varint(at, stop)
                yield field, kind, value, 0
            elif kind == BYTES:
                length, at = self._varint(at, stop)
                if length > stop - at:
                    raise self._damaged(f"it is truncated at byte {at}")
                yield field, kind, at, at + length
                at += length
            elif kind in (EIGHT, FOUR):
                at += 8 if kind == EIGHT else 4
            else:
                raise self._damaged(f"a field of kind {kind}")

    def _varint(self, at: int, stop: int) -> tuple[int, int]:
        self._file.seek(at)
        body = self._file.read(min(10, stop - at))
        value = 0
        for place, byte in enumerate(body):
            value |= (byte & 0x7F) << (7 * place)
            if byte < 0x80:
                return value, at + place + 1
        raise self._damaged("it ends in the middle of a number")

    def _damaged(self, why: str) -> SourceError:
        return SourceError(f"{self._path} is no readable ONNX file ({why}): export or fetch it again")
