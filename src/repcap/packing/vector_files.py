"""Vectors on disk, written and read row by row: .safetensors with what is known of them as metadata, .npy, and .txt.

A .txt file holds plain numbers and nothing else, one vector a line, as tables of packings are kept. Read, it may also
have one number a line, if its name says the shape as those tables do: pack.D.K.txt.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open

from repcap.errors import InputError
from repcap.files import atomic_path
from repcap.matrix import Matrix, MatrixInfo, ProgressFn, TensorMatrix
from repcap.packing.packed import Packing
from repcap.text import jsonable

VECTORS = "vectors"
"""Name of the tensor in a file of ours."""

CODES = {torch.float32: "F32", torch.float64: "F64", torch.float16: "F16", torch.bfloat16: "BF16"}
WRITE_ROWS = 4096


class Stored(Matrix):
    """The rows of a matrix as a file of `dtype` holds them: rounded, which moves a cosine by two of its units."""

    def __init__(self, matrix: Matrix, dtype: torch.dtype) -> None:
        self._matrix, self._dtype = matrix, dtype
        self.info = matrix.info

    def read(self, start: int, stop: int) -> torch.Tensor:
        return self._matrix.read(start, stop).to(self._dtype)


def write_tensors(
    path: str | os.PathLike[str],
    tensors: Mapping[str, Matrix | torch.Tensor],
    metadata: Mapping[str, str],
    dtype: torch.dtype | None = None,
    on_progress: ProgressFn | None = None,
) -> None:
    """Write tables (k, d) to one .safetensors file, atomically, `WRITE_ROWS` rows at a time.

    Memory: one block of rows, however long the tables are. dtype: that of a `Matrix` on disk (default float32);
    tensors keep their own.
    """
    header: dict[str, Any] = {"__metadata__": dict(metadata)}
    end = 0
    kinds: dict[str, torch.dtype] = {}
    for name, table in tensors.items():
        count, dim = (table.count, table.dim) if isinstance(table, Matrix) else table.shape
        kinds[name] = (dtype or torch.float32) if isinstance(table, Matrix) else table.dtype
        size = count * dim * kinds[name].itemsize
        header[name] = {"dtype": CODES[kinds[name]], "shape": [count, dim], "data_offsets": [end, end + size]}
        end += size
    encoded = json.dumps(header).encode()
    encoded += b" " * (-len(encoded) % 8)
    total = sum(table.count if isinstance(table, Matrix) else table.shape[0] for table in tensors.values())
    done = 0
    with atomic_path(path) as temporary, temporary.open("wb") as file:
        file.write(len(encoded).to_bytes(8, "little") + encoded)
        for name, table in tensors.items():
            matrix = table if isinstance(table, Matrix) else TensorMatrix(table)
            for _, block in matrix.blocks(WRITE_ROWS):
                _write_block(file, block.to(kinds[name]))
                done += block.shape[0]
                if on_progress is not None:
                    on_progress(done, total)


def _write_block(file: IO[bytes], block: torch.Tensor) -> None:
    raw = block.contiguous().view(torch.uint8) if block.numel() else block
    file.write(raw.numpy().data)  # not tofile, whose errors do not say that the disk is full


def _write_safetensors(
    path: Path, vectors: Matrix, metadata: Mapping[str, str], dtype: torch.dtype, on_progress: ProgressFn | None
) -> None:
    write_tensors(path, {VECTORS: vectors}, metadata, dtype, on_progress)


def _write_npy(
    path: Path, vectors: Matrix, metadata: Mapping[str, str], dtype: torch.dtype, on_progress: ProgressFn | None
) -> None:
    kind = np.dtype(str(dtype).removeprefix("torch."))
    described = {
        "descr": np.lib.format.dtype_to_descr(kind),
        "fortran_order": False,
        "shape": (vectors.count, vectors.dim),
    }
    with atomic_path(path) as temporary, temporary.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, described)
        for start, block in vectors.blocks(WRITE_ROWS):
            _write_block(file, block.to(dtype))
            if on_progress is not None:
                on_progress(start + block.shape[0], vectors.count)


def _write_txt(
    path: Path, vectors: Matrix, metadata: Mapping[str, str], dtype: torch.dtype, on_progress: ProgressFn | None
) -> None:
    digits = "%.17g" if dtype == torch.float64 else "%.9g"  # what brings every number back
    with atomic_path(path) as temporary, temporary.open("w", encoding="ascii") as file:
        for start, block in vectors.blocks(WRITE_ROWS):
            np.savetxt(file, block.to(dtype).double().numpy(), fmt=digits)
            if on_progress is not None:
                on_progress(start + block.shape[0], vectors.count)


FORMATS = {".safetensors": _write_safetensors, ".npy": _write_npy, ".txt": _write_txt}
"""Ending of a file of vectors -> what writes it. Only .safetensors keeps the metadata."""

BYTES = {".safetensors": 1.0, ".npy": 1.0, ".txt": 3.1}
"""Bytes on disk for each byte in memory, at most (a float64 takes up to 25 characters)."""


def vectors_ending(path: str | os.PathLike[str]) -> str:
    """The ending of a file that vectors can be written to.

    Raises
    ------
    InputError
        for any other.
    """
    ending = Path(path).suffix
    if ending not in FORMATS:
        raise InputError(f"{path}: vectors are written as {', '.join(FORMATS)}; give one of these endings")
    return ending


def write_vectors(
    path: str | os.PathLike[str],
    vectors: Matrix,
    metadata: Mapping[str, str],
    dtype: torch.dtype,
    on_progress: ProgressFn | None = None,
) -> None:
    """Write a table (k, d) as `dtype` in the format that the ending of `path` names, atomically and by blocks of rows.

    Raises
    ------
    InputError
        for an ending that is not in `FORMATS`.
    """
    FORMATS[vectors_ending(path)](Path(path), vectors, metadata, dtype, on_progress)


def save(packing: Packing, path: str | os.PathLike[str]) -> None:
    """Write the vectors of `packing`, with k, d, coherence, seed, steps, method and version where there is metadata."""
    record = packing.to_dict()
    plain = ("k", "d", "coherence", "lower_bound", "seed", "steps", "method", "repcap_version")
    metadata = {key: str(record[key]) for key in plain}
    metadata["repcap"] = json.dumps(jsonable({**record, "path": None}))
    write_vectors(path, TensorMatrix(packing.vectors), metadata, packing.vectors.dtype)


class _SafetensorsMatrix(Matrix):
    """One 2-d tensor of a .safetensors file, read by rows."""

    def __init__(self, path: Path, name: str, handle: Any) -> None:
        self._slice = handle.get_slice(name)
        count, dim = self._slice.get_shape()
        self.info = MatrixInfo(str(path), name, count, dim, str(self._slice.get_dtype()))

    def read(self, start: int, stop: int) -> torch.Tensor:
        block: torch.Tensor = self._slice[start:stop]
        self.bytes_read += block.numel() * block.element_size()
        return block


def open_vectors(path: str | os.PathLike[str]) -> tuple[Matrix, dict[str, str]]:
    """The table of vectors in a .safetensors, .npy or .txt file, to be read by rows, and the metadata beside it.

    Of a .safetensors file the tensor `vectors` is taken, or the only 2-d tensor.

    Raises
    ------
    InputError
        if the file is missing, damaged, of another kind, or does not say which table is meant.
    """
    where = Path(path)
    if not where.is_file():
        raise InputError(f"no file {where}: give a {', '.join(FORMATS)} file of vectors")
    if where.suffix == ".npy":
        return _open_npy(where), {}
    if where.suffix == ".txt":
        return _read_txt(where), {}
    if where.suffix != ".safetensors":
        raise InputError(
            f"{where}: vectors are read from {', '.join(FORMATS)}, not {where.suffix or 'a nameless kind'}"
        )
    try:
        handle = safe_open(str(where), framework="pt")
        shapes = {name: handle.get_slice(name).get_shape() for name in handle.keys()}  # noqa: SIM118 - no dict
        metadata = dict(handle.metadata() or {})
    except (SafetensorError, OSError) as error:
        raise InputError(f"{where} is not a whole .safetensors file: {error}") from error
    tables = [name for name, shape in shapes.items() if len(shape) == 2]
    name = VECTORS if VECTORS in tables else tables[0] if len(tables) == 1 else None
    if name is None:
        listed = ", ".join(f"{name} {shapes[name]}" for name in sorted(shapes)[:8]) or "no tensors"
        raise InputError(f"{where} has no tensor `vectors` and not exactly one table; it holds {listed}")
    return _SafetensorsMatrix(where, name, handle), metadata


def _open_npy(path: Path) -> Matrix:
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, OSError, EOFError) as error:
        raise InputError(f"{path} is not a plain .npy array: {error}") from error
    if array.ndim != 2 or array.dtype.kind not in "fiu":
        raise InputError(f"{path}: vectors must form a (k, d) table of real numbers, got {array.dtype} {array.shape}")

    class NpyMatrix(Matrix):
        info = MatrixInfo(str(path), "array", array.shape[0], array.shape[1], str(array.dtype))

        def read(self, start: int, stop: int) -> torch.Tensor:
            block = np.asarray(array[start:stop])
            self.bytes_read += block.nbytes
            kind = block.dtype if block.dtype.kind == "f" and block.dtype.itemsize in (2, 4) else np.float64
            return torch.from_numpy(np.array(block, dtype=kind))

    return NpyMatrix()


_SHAPE = re.compile(r"pack\.(\d+)\.(\d+)")


def _read_txt(path: Path) -> Matrix:
    """All of it, float64: tables of packings are small."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # an empty file is a warning to numpy
            table = np.loadtxt(path, ndmin=2, comments="#")
    except (ValueError, OSError, UserWarning) as error:
        raise InputError(f"{path} is no table of plain numbers: {str(error).splitlines()[0]}") from error
    shape = _SHAPE.fullmatch(path.stem)
    if table.shape[1] == 1 and shape is not None:
        d, k = int(shape[1]), int(shape[2])
        if k * d != table.size:
            raise InputError(f"{path} holds {table.size} numbers; its name says {k} vectors of R^{d}")
        table = table.reshape(k, d)
    info = MatrixInfo(str(path), "text", table.shape[0], table.shape[1], "float64")
    return TensorMatrix(torch.from_numpy(table), info)


def check_room(path: str | os.PathLike[str], count: int, dim: int, dtype: torch.dtype) -> None:
    """Raise InputError unless a table (count, dim) of `dtype` fits where `path` lies."""
    parent = Path(path).absolute().parent
    if not parent.is_dir():
        raise InputError(f"{path}: no directory {parent}; make it first")
    size, free = count * dim * dtype.itemsize * BYTES[vectors_ending(path)], shutil.disk_usage(parent).free
    if size > free:
        raise InputError(
            f"the vectors take {size / 1e9:.3g} GB, {parent} has {free / 1e9:.3g} GB free: give K D for the first K"
        )
