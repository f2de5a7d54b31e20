"""Vectors on disk: .safetensors with what is known of them as metadata, written row by row; .npy can be read too."""

from __future__ import annotations

import json
import os
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
    raw.numpy().tofile(file)


def save(packing: Packing, path: str | os.PathLike[str]) -> None:
    """Write the vectors of `packing` with k, d, coherence, seed, steps, method and version as metadata."""
    record = packing.to_dict()
    plain = ("k", "d", "coherence", "lower_bound", "seed", "steps", "method", "repcap_version")
    metadata = {key: str(record[key]) for key in plain}
    metadata["repcap"] = json.dumps({**record, "path": None})
    write_tensors(path, {VECTORS: packing.vectors}, metadata)


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
    """The table of vectors in a .safetensors or .npy file, to be read by rows, and the metadata beside it.

    Of a .safetensors file the tensor `vectors` is taken, or the only 2-d tensor.

    Raises
    ------
    InputError
        if the file is missing, damaged, of another kind, or does not say which table is meant.
    """
    where = Path(path)
    if not where.is_file():
        raise InputError(f"no file {where}: give a .safetensors or .npy file of vectors")
    if where.suffix == ".npy":
        return _open_npy(where), {}
    if where.suffix != ".safetensors":
        raise InputError(
            f"{where}: vectors are read from .safetensors or .npy, not {where.suffix or 'a nameless kind'}"
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
