"""The number formats of GGUF: names, sizes of blocks, and how bytes become numbers."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from gguf import quants
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType

from repcap.errors import SourceError
from repcap.sources import formats
from repcap.sources.formats.dtypes import to_real

if TYPE_CHECKING:
    import torch

PLAIN = {
    "F64": "float64",
    "F32": "float32",
    "F16": "float16",
    "BF16": "bfloat16",
    "I8": "int8",
    "I16": "int16",
    "I32": "int32",
    "I64": "int64",
}
"""ggml types that are no quantisation -> canonical dtype."""


@functools.cache
def block_sizes() -> dict[int, tuple[int, int]]:
    """ggml type number -> (elements, bytes) a block."""
    return {int(kind): size for kind, size in GGML_QUANT_SIZES.items()}


def type_name(kind: int) -> str:
    """Canonical dtype, or the quantisation's name, of a ggml type number."""
    try:
        name = str(GGMLQuantizationType(kind).name)
    except ValueError:
        return f"ggml type {kind}"
    return PLAIN.get(name, name)


def decoder(kind: int, dtype: str, where: str) -> Callable[[np.ndarray], torch.Tensor]:
    """Bytes of rows -> floating rows, for one ggml type.

    kind: its number. dtype: its name, as `type_name` gives it. where: for the message. What it returns takes uint8
    (rows, bytes of a row) and gives (rows, elements), float32 where the type is a quantisation.

    Raises
    ------
    SourceError
        if `gguf` cannot dequantise it.
    """
    if dtype in PLAIN.values():
        return functools.partial(_plain, dtype=dtype)
    if kind not in block_sizes() or not _can_dequantise(kind):
        raise SourceError(f"{where} is {dtype}, which the gguf package cannot dequantise; convert it to Q8_0 or F16")
    quantisation = GGMLQuantizationType(kind)

    def decode(raw: np.ndarray) -> torch.Tensor:
        with np.errstate(all="ignore"):  # a damaged scale gives inf or nan, which is then counted as such a row
            numbers = np.ascontiguousarray(quants.dequantize(raw, quantisation), dtype=np.float32)
        return formats.from_bytes(numbers.view(np.uint8), "float32")

    return decode


@functools.cache
def _can_dequantise(kind: int) -> bool:
    """Whether `gguf` can: it is asked for one block of zeros."""
    try:
        quants.dequantize(np.zeros((1, block_sizes()[kind][1]), dtype=np.uint8), GGMLQuantizationType(kind))
    except (NotImplementedError, ValueError, KeyError):
        return False
    return True


def _plain(raw: np.ndarray, dtype: str) -> torch.Tensor:
    return to_real(formats.from_bytes(raw, dtype))
