"""Scales of 8-bit weights, and packed formats that must not be measured as they lie in the file.

A scale for each row changes no cosine between rows, a scale for each block or column does: all are applied, in float32.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from repcap.errors import SourceError
from repcap.matrix import Matrix
from repcap.sources.checkpoint import Checkpoint, TensorEntry
from repcap.sources.formats.dtypes import EIGHT_BIT_FLOATS, is_integer

if TYPE_CHECKING:
    import torch

COMPANIONS = ("weight_scale_inv", "weight_scale", "scale_weight", "scale_inv", "scale", "SCB")
"""Names beside `weight` that hold its multipliers (`scale_inv` is the inverse of what the quantiser multiplied by)."""

PACKED_SUFFIXES: dict[str, str] = {
    ".qweight": "GPTQ or AWQ",
    ".weight_packed": "compressed-tensors",
    ".W_q": "HQQ",
    ".weight._data": "quanto",
    ".trellis": "EXL3",
    ".q_weight": "EXL2",
    "._weight_qdata": "torchao",
    ".weight_qdata": "torchao",
    ".codes": "AQLM",
}
"""A tensor of this ending is the packed weight of its module."""

PACKED_BESIDE: tuple[tuple[str, str], ...] = (
    (".weight.absmax", "bitsandbytes 4-bit"),
    (".weight_scale_2", "NVFP4"),
    (".scales", "MLX or another grouped format"),
    (".weight_zero_point", "asymmetric integers"),
)
"""An integer weight that has this beside it is packed, or needs more than a scale."""

COMMON_BLOCKS = (128, 64, 32, 16)


def packed_module(name: str) -> str | None:
    """`P.weight` for the packed tensor of module P, else None.

    >>> packed_module("lm_head.qweight"), packed_module("lm_head.weight")
    ('lm_head.weight', None)
    """
    for suffix in PACKED_SUFFIXES:
        if name.endswith(suffix):
            return name.removesuffix(suffix) + ".weight"
    return None


def refuse_packed(checkpoint: Checkpoint, entry: TensorEntry) -> None:
    """Raise SourceError where the stored elements are packed bits, not numbers of the matrix."""
    kind = next((what for suffix, what in PACKED_SUFFIXES.items() if entry.name.endswith(suffix)), None)
    if kind is None and is_integer(entry.dtype):
        module, tensors = entry.name.removesuffix(".weight"), checkpoint.tensors()
        kind = next((what for suffix, what in PACKED_BESIDE if module + suffix in tensors), None)
        if kind is None and _config_packs(checkpoint.config()) and scale_beside(checkpoint, entry) is None:
            kind = "quantised according to its config"
    if kind is not None:
        shape = " x ".join(map(str, entry.shape))
        raise SourceError(
            f"{checkpoint.spec}: {entry.name} is packed ({kind}, {entry.dtype} {shape}): its bytes are no directions; "
            "use an unquantised or a GGUF copy of the model"
        )


def _config_packs(config: Mapping[str, Any]) -> bool:
    return isinstance(config.get("quantization_config"), dict) or isinstance(config.get("quantization"), dict)


def scale_beside(checkpoint: Checkpoint, entry: TensorEntry) -> str | None:
    """The tensor that scales `entry`, by its name."""
    tensors = checkpoint.tensors()
    module = entry.name.removesuffix("weight") if entry.name.endswith("weight") else entry.name + "_"
    return next((module + suffix for suffix in COMPANIONS if module + suffix in tensors), None)


def apply_scales(checkpoint: Checkpoint, entry: TensorEntry, matrix: Matrix) -> Matrix:
    """`matrix` times the scales beside it, or `matrix` itself where it has none or needs none.

    Raises
    ------
    SourceError
        if the shapes of weight and scales do not say which scale belongs to which element.
    """
    if entry.dtype not in EIGHT_BIT_FLOATS and entry.dtype != "int8":
        return matrix
    name = scale_beside(checkpoint, entry)
    if name is None:
        block = _configured_block(checkpoint.config())
        if block and entry.dtype in EIGHT_BIT_FLOATS:
            raise SourceError(
                f"{checkpoint.spec}: {entry.name} is {entry.dtype}, its config speaks of scales for blocks of "
                f"{block[0]} x {block[1]}, and none is beside it: fetch the whole checkpoint"
            )
        return matrix
    if checkpoint.entry(name).elements > max(matrix.count, matrix.dim, matrix.count * matrix.dim // COMMON_BLOCKS[-1]):
        raise SourceError(_mismatch(matrix, name, checkpoint.entry(name).shape))
    scale = checkpoint.small(name)
    if checkpoint.entry(name).dtype == "uint8":  # exponents of the MX formats
        scale = (scale - 127.0).exp2()
    return ScaledMatrix(matrix, scale.float(), name, _configured_block(checkpoint.config()))


def _configured_block(config: Mapping[str, Any]) -> tuple[int, int] | None:
    quantisation = config.get("quantization_config")
    block = quantisation.get("weight_block_size") if isinstance(quantisation, dict) else None
    if isinstance(block, list) and len(block) == 2 and all(type(size) is int and size > 0 for size in block):
        return block[0], block[1]
    return None


def _mismatch(matrix: Matrix, scale_name: str, shape: Sequence[int]) -> str:
    found = " x ".join(map(str, shape))
    return (
        f"{matrix.info.source}: {scale_name} ({found}) does not say how it scales {matrix.info.name} "
        f"({matrix.count} x {matrix.dim}): give weight_block_size in the quantization_config of config.json"
    )


class ScaledMatrix(Matrix):
    """base times scale, in float32. Memory: one block, and its scales where they vary along a row.

    scale: one element; (n,) or (n, 1), by row; (1, d), by column; (a, b), by blocks of ceil(n/a) x ceil(d/b) or as the
    config says.
    """

    def __init__(
        self, base: Matrix, scale: torch.Tensor, scale_name: str, configured: tuple[int, int] | None = None
    ) -> None:
        self._base, self.scale_name = base, scale_name
        self.info, self.tokens, self.contiguous = base.info, base.tokens, base.contiguous
        if scale.dim() < 2:
            scale = scale.reshape(-1, 1) if scale.numel() in (1, base.count) else scale.reshape(1, -1)
        if scale.dim() != 2 or not scale.numel():
            raise SourceError(_mismatch(base, scale_name, scale.shape))
        rows, columns = _block_size(base.count, scale.shape[0]), _block_size(base.dim, scale.shape[1])
        if configured and [-(-base.count // configured[0]), -(-base.dim // configured[1])] == list(scale.shape):
            rows, columns = min(configured[0], base.count), min(configured[1], base.dim)
        if rows is None or columns is None:
            raise SourceError(_mismatch(base, scale_name, scale.shape))
        self._scale, self._rows, self._columns = scale, rows, columns

    def read(self, start: int, stop: int) -> torch.Tensor:
        return self._times(self._base.read(start, stop), np.arange(start, stop))

    def take(self, indices: Sequence[int]) -> torch.Tensor:
        return self._times(self._base.take(indices), np.asarray(indices, dtype=np.int64))

    def prefetch(self, spans: Sequence[tuple[int, int]]) -> None:
        self._base.prefetch(spans)

    def _times(self, block: torch.Tensor, rows: np.ndarray) -> torch.Tensor:
        self.bytes_read = self._base.bytes_read
        scale = self._scale[rows // self._rows]
        if scale.shape[1] > 1:
            scale = scale.repeat_interleave(self._columns, dim=1)[:, : self.dim]
        return block.float() * scale

    def close(self) -> None:
        self._base.close()


def _block_size(length: int, scales: int) -> int | None:
    """Elements that share one of `scales` scales along an axis of `length`; None where that is not certain.

    >>> _block_size(256, 1), _block_size(256, 256), _block_size(576, 5), _block_size(7, 3)
    (256, 1, 128, None)
    """
    if scales in (1, length):
        return -(-length // scales)
    fitting = [size for size in COMMON_BLOCKS if -(-length // size) == scales]
    if fitting:
        return fitting[0]
    return length // scales if length % scales == 0 else None
