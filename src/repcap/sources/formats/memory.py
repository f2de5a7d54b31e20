"""Tensors that are in memory (or mapped by torch): rows are handed out as floats, nothing is copied beforehand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from repcap.errors import SourceError, VectorsError
from repcap.matrix import Matrix, MatrixInfo, TensorMatrix
from repcap.sources.checkpoint import Checkpoint, TensorEntry, as_rows
from repcap.sources.formats.dtypes import check_readable, to_real


def from_bytes(raw: np.ndarray, dtype: str) -> torch.Tensor:
    """Bytes of rows, shape (m, row_bytes) uint8, as a tensor (m, row_bytes / item) of the canonical `dtype`.

    The tensor shares the buffer. Little-endian, as every format here stores it.
    """
    kind: torch.dtype = getattr(torch, dtype)
    if not raw.size:  # which torch does not view
        return torch.empty((len(raw), raw.shape[1] // kind.itemsize), dtype=kind)
    return torch.from_numpy(raw).view(kind)


class MemoryMatrix(TensorMatrix):
    """Rows of a tensor in memory, as floats: fp8 in float32, integers exactly."""

    def read(self, start: int, stop: int) -> torch.Tensor:
        return to_real(super().read(start, stop))

    def take(self, indices: Sequence[int]) -> torch.Tensor:
        return to_real(super().take(indices))

    def columns(self, first: int, last: int) -> torch.Tensor:
        """Columns first..last-1 of all rows, shape (n, last - first)."""
        block = self._tensor[:, first:last]
        self.bytes_read += block.numel() * block.element_size()
        return to_real(block.to("cpu"))


def dtype_name(tensor: torch.Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def entry_of(name: str, tensor: torch.Tensor, file: str = "") -> TensorEntry:
    shape = () if tensor.is_nested else tuple(tensor.shape)  # a nested tensor has no shape to ask for
    return TensorEntry(name, shape, dtype_name(tensor), file)


def tensor_matrix(tensor: torch.Tensor, name: str, source: str) -> Matrix:
    """A matrix over `tensor`, laid out by `as_rows`.

    Raises
    ------
    VectorsError
        if it is sparse, nested, complex or boolean.
    SourceError
        if its values are not here: on the meta device, sharded over processes, or packed by a quantiser.
    """
    where = f"{source}: tensor {name!r}" if source != name else name
    if tensor.layout != torch.strided or tensor.is_nested:
        raise VectorsError(
            f"{where} is {'nested' if tensor.is_nested else 'sparse'}: give a dense tensor (.to_dense())"
        )
    if tensor.device.type == "meta":
        raise SourceError(f"{where} is on the meta device and has no values: load the weights first")
    if hasattr(tensor, "full_tensor"):
        raise SourceError(f"{where} is sharded over processes (DTensor): gather it first (.full_tensor())")
    if tensor.is_quantized or getattr(tensor, "quant_state", None) is not None:
        raise SourceError(f"{where} is packed by a quantiser: dequantise it first, or load the model unquantised")
    dtype = dtype_name(tensor)
    check_readable(dtype, where)
    count, dim = as_rows(tuple(tensor.shape))
    info = MatrixInfo(source=source, name=name, count=count, dim=dim, dtype=dtype)
    return MemoryMatrix(tensor.detach().reshape(count, dim), info)


class TensorsCheckpoint(Checkpoint):
    """Named tensors in memory."""

    format = "tensor"

    def __init__(
        self, spec: str, tensors: Mapping[str, torch.Tensor], config: Mapping[str, Any] | None = None, file: str = ""
    ) -> None:
        self.spec, self._named, self._config, self._file = spec, dict(tensors), dict(config or {}), file

    def tensors(self) -> dict[str, TensorEntry]:
        return {name: entry_of(name, tensor, self._file) for name, tensor in self._named.items()}

    def config(self) -> dict[str, Any]:
        return self._config

    def same_storage(self, left: str, right: str) -> bool:
        return shares_storage(self._named[left], self._named[right])

    def open(self, name: str) -> Matrix:
        self.entry(name)
        return tensor_matrix(self._named[name], name, self.spec)


def shares_storage(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Whether two tensors are the same view of one piece of memory."""
    if a is b:
        return True
    if a.device.type == "meta" or not a.numel():
        return False
    try:
        same = a.data_ptr() == b.data_ptr() and a.device == b.device
    except (RuntimeError, NotImplementedError):  # subclasses without storage
        return False
    return same and a.shape == b.shape and a.stride() == b.stride() and a.dtype == b.dtype
