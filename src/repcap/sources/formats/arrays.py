"""NumPy: `.npy` and `.npz` files, read row by row from where they lie, and arrays in memory."""

from __future__ import annotations

import functools
import math
import os
import shutil
import tempfile
import weakref
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
import torch
from numpy.lib import format as npy

from repcap.errors import SourceError, UnsafeFileError, VectorsError
from repcap.matrix import Matrix, MatrixInfo
from repcap.sources.beside import Folder
from repcap.sources.checkpoint import Checkpoint, TensorEntry, as_rows
from repcap.sources.formats.dtypes import check_readable, to_real
from repcap.sources.formats.stored_rows import EncodedMatrix, FileRows, TransposedMatrix
from repcap.sources.formats.torch_zip import LOCAL_HEADER, data_shift
from repcap.sources.stored_files import DiskFile, Files

CHUNK = 4 << 20
MAX_NPY_HEADER = 1 << 16
"""Bytes; numpy itself believes no more than 10000 of them."""


class NpyHeader:
    """Shape, dtype, order and data position of one `.npy` stream, checked."""

    def __init__(self, stream: IO[bytes], where: str) -> None:
        try:
            version = npy.read_magic(stream)
            readers = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
            # Version 3 is version 2 in UTF-8, for structured field names only.
            self.shape, self.fortran, self.dtype = readers[version](_HeaderOnly(stream))
        except Exception as error:  # numpy's readers let through whatever Python's own parsers raise
            raise SourceError(f"{where} is not a readable .npy file ({_first_line(error)}): save it again") from error
        self.offset = stream.tell()
        if self.dtype.hasobject:
            raise UnsafeFileError(
                f"{where} holds pickled Python objects, which could run code: save a plain float array instead"
            )
        if any(isinstance(size, bool) or size < 0 for size in self.shape):
            raise SourceError(f"{where} is not a readable .npy file (shape {self.shape}): save it again")

    @property
    def bytes(self) -> int:
        return math.prod(self.shape) * int(self.dtype.itemsize)


class _HeaderOnly:
    """A stream that refuses to read more than a header has: a zip member of 2 MB may unpack to 4 GB of one."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream

    def read(self, size: int = -1, /) -> bytes:
        if not 0 <= size <= MAX_NPY_HEADER:
            raise ValueError(f"a header of {size} bytes")
        return self._stream.read(size)


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:120]


def numpy_name(dtype: np.dtype[Any]) -> str:
    """Canonical dtype of a numpy dtype; others keep numpy's own name."""
    return {"longdouble": "float128"}.get(dtype.name, dtype.name)


def decode_numpy(block: np.ndarray) -> torch.Tensor:
    """A numpy block of any readable dtype and byte order as a floating tensor of its own memory."""
    if block.dtype.name == "bfloat16":  # ml_dtypes
        return torch.from_numpy(np.array(block).view(np.uint16)).view(torch.bfloat16)
    if block.dtype.name.startswith("float8"):
        return to_real(torch.from_numpy(np.array(block).view(np.uint8)).view(getattr(torch, block.dtype.name)))
    native = np.array(block, dtype=block.dtype.newbyteorder("="), order="C")  # a copy: torch wants it writable
    return to_real(torch.from_numpy(native))


def check_numpy(dtype: np.dtype[Any], where: str) -> None:
    """Raise VectorsError or SourceError where elements of this dtype are no real numbers."""
    if dtype.fields is not None or dtype.kind not in "fiubcV":
        raise VectorsError(f"{where} holds {dtype}, no numbers: give an array of floats, one vector a row")
    if dtype.kind == "V" and numpy_name(dtype) not in ("bfloat16", "float8_e4m3fn", "float8_e5m2"):
        raise VectorsError(f"{where} holds {dtype}, no numbers: give an array of floats, one vector a row")
    check_readable(numpy_name(dtype), where)


def open_rows(path: Path, start: int, header: NpyHeader, info_name: str, source: str, where: str) -> Matrix:
    """Rows of an array whose data begins at byte `start` of `path`; `where` names it in messages."""
    check_numpy(header.dtype, where)
    count, dim = as_rows(header.shape)
    if start + header.bytes > path.stat().st_size:
        raise SourceError(
            f"{where} is truncated: its data would end at byte {start + header.bytes}, the file has "
            f"{path.stat().st_size}; fetch or save it again"
        )
    item = int(header.dtype.itemsize)
    turned = header.fortran and len(header.shape) == 2
    stored = (dim, count) if turned else (count, dim)
    info = MatrixInfo(source=source, name=info_name, count=stored[0], dim=stored[1], dtype=numpy_name(header.dtype))
    rows = FileRows(path, start, stored[1] * item, stored[0])
    matrix = EncodedMatrix(rows, functools.partial(_decode, dtype=header.dtype), info, item_bytes=item)
    if not turned:
        return matrix
    return TransposedMatrix(matrix, MatrixInfo(source, info_name, count, dim, info.dtype))


def _decode(raw: np.ndarray, dtype: np.dtype[Any]) -> torch.Tensor:
    return decode_numpy(raw.view(dtype))


class NpyCheckpoint(Checkpoint):
    """One `.npy` file: one array, named `array`."""

    format = "npy"

    def __init__(self, spec: str, path: Path) -> None:
        self.spec, self.path, self.beside = spec, path, Folder(path.parent)
        with path.open("rb") as stream:
            self._header = NpyHeader(stream, str(path))

    def tensors(self) -> dict[str, TensorEntry]:
        header = self._header
        return {"array": TensorEntry("array", header.shape, numpy_name(header.dtype), self.path.name)}

    def open(self, name: str) -> Matrix:
        self.entry(name)
        return open_rows(self.path, self._header.offset, self._header, name, self.spec, str(self.path))


class NpzCheckpoint(Checkpoint):
    """One `.npz` archive. Stored members are read in place; a compressed one is unpacked to a temporary file."""

    format = "npz"

    def __init__(self, spec: str, path: Path) -> None:
        self.spec, self.path, self.beside = spec, path, Folder(path.parent)
        self._members: dict[str, tuple[zipfile.ZipInfo, NpyHeader]] = {}
        try:
            with zipfile.ZipFile(path) as archive:
                for member in archive.infolist():
                    if member.filename.endswith(".npy"):
                        with archive.open(member) as stream:
                            header = NpyHeader(stream, f"{path}: {member.filename}")
                        name = member.filename.removesuffix(".npy")
                        if name in self._members:
                            raise ValueError(f"{name!r} occurs twice")
                        self._members[name] = (member, header)
        except (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, EOFError, ValueError) as error:
            raise SourceError(f"{path} is not a readable .npz file ({_first_line(error)}): save it again") from error
        if not self._members:
            raise SourceError(f"{path} holds no arrays")

    def tensors(self) -> dict[str, TensorEntry]:
        return {
            name: TensorEntry(name, header.shape, numpy_name(header.dtype), self.path.name)
            for name, (_, header) in self._members.items()
        }

    def open(self, name: str) -> Matrix:
        self.entry(name)
        member, header = self._members[name]
        if member.compress_type != zipfile.ZIP_STORED:
            return self._unpacked(member, header, name)
        local = DiskFile(self.path).read(member.header_offset, member.header_offset + LOCAL_HEADER)
        start = member.header_offset + data_shift(local, str(self.path), "save it again") + header.offset
        return open_rows(self.path, start, header, name, self.spec, f"{self.path}: array {name!r}")

    def _unpacked(self, member: zipfile.ZipInfo, header: NpyHeader, name: str) -> Matrix:
        """Unpack a compressed member to a temporary file, never more than its header promises."""
        where = f"{self.path}: array {name!r}"
        check_numpy(header.dtype, where)
        needed, free = header.offset + header.bytes, shutil.disk_usage(tempfile.gettempdir()).free
        if needed > member.file_size:
            raise SourceError(
                f"{where} is truncated: its data would end at byte {needed}, the archive holds {member.file_size}; "
                "save it again"
            )
        if needed > free:
            raise SourceError(
                f"{where} is compressed, and {tempfile.gettempdir()} has {free / 1e6:,.0f} MB free of the "
                f"{needed / 1e6:,.0f} MB that it unpacks to: set TMPDIR to a larger disk, or save it with numpy.savez"
            )
        handle, place = tempfile.mkstemp(prefix="repcap-", suffix=".npy")
        path = Path(place)
        try:
            with os.fdopen(handle, "wb") as out, zipfile.ZipFile(self.path) as archive, archive.open(member) as stream:
                left = needed
                while left > 0 and (chunk := stream.read(min(CHUNK, left))):
                    out.write(chunk)
                    left -= len(chunk)
            return _Temporary(open_rows(path, header.offset, header, name, self.spec, where), path)
        except BaseException as error:
            path.unlink(missing_ok=True)
            if isinstance(error, (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, OSError)):
                raise SourceError(f"{where} cannot be unpacked ({_first_line(error)}): save it again") from error
            raise


def open_files(files: Files) -> Checkpoint:
    """One array, or an archive of them."""
    return (NpyCheckpoint if files.path.suffix.lower() == ".npy" else NpzCheckpoint)(files.spec, files.path)


class _Temporary(Matrix):
    """A matrix over a temporary file, which goes when the matrix is closed or forgotten."""

    def __init__(self, base: Matrix, path: Path) -> None:
        self._base, self.info = base, base.info
        self._remove = weakref.finalize(self, _discard, base, path)

    def read(self, start: int, stop: int) -> torch.Tensor:
        block = self._base.read(start, stop)
        self.bytes_read = self._base.bytes_read
        return block

    def take(self, indices: Sequence[int]) -> torch.Tensor:
        block = self._base.take(indices)
        self.bytes_read = self._base.bytes_read
        return block

    def columns(self, first: int, last: int) -> torch.Tensor | None:
        columns = getattr(self._base, "columns", None)
        block: torch.Tensor | None = columns(first, last) if columns else None
        self.bytes_read = self._base.bytes_read
        return block

    def close(self) -> None:
        self._remove()


def _discard(base: Matrix, path: Path) -> None:
    base.close()
    path.unlink(missing_ok=True)


class ArrayCheckpoint(Checkpoint):
    """A numpy array in memory (a memmap stays one)."""

    format = "array"

    def __init__(self, array: np.ndarray) -> None:
        self.spec, self._array = "array", array

    def tensors(self) -> dict[str, TensorEntry]:
        return {"array": TensorEntry("array", self._array.shape, numpy_name(self._array.dtype), "")}

    def open(self, name: str) -> Matrix:
        self.entry(name)
        check_numpy(self._array.dtype, "array")
        count, dim = as_rows(self._array.shape)
        info = MatrixInfo("array", name, count, dim, numpy_name(self._array.dtype))
        return ArrayMatrix(self._array.reshape(count, dim), info)


class ArrayMatrix(Matrix):
    """Rows of a numpy array. Memory: one block."""

    def __init__(self, array: np.ndarray, info: MatrixInfo) -> None:
        self._array, self.info = array, info

    def _give(self, block: np.ndarray) -> torch.Tensor:
        self.bytes_read += block.nbytes
        return decode_numpy(block)

    def read(self, start: int, stop: int) -> torch.Tensor:
        return self._give(self._array[start:stop])

    def take(self, indices: Sequence[int]) -> torch.Tensor:
        return self._give(self._array[np.asarray(indices, dtype=np.int64)])

    def columns(self, first: int, last: int) -> torch.Tensor:
        return self._give(self._array[:, first:last])
