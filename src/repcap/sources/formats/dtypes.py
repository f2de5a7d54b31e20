"""Names and sizes of element types. One canonical name (torch's) for each, whatever the file format calls it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from repcap.errors import SourceError, VectorsError

if TYPE_CHECKING:
    import torch

ITEM_BYTES: dict[str, int] = {
    "float64": 8,
    "float32": 4,
    "float16": 2,
    "bfloat16": 2,
    "float8_e4m3fn": 1,
    "float8_e5m2": 1,
    "float8_e4m3fnuz": 1,
    "float8_e5m2fnuz": 1,
    "float8_e8m0fnu": 1,
    "int64": 8,
    "int32": 4,
    "int16": 2,
    "int8": 1,
    "uint64": 8,
    "uint32": 4,
    "uint16": 2,
    "uint8": 1,
    "bool": 1,
    "complex64": 8,
    "complex128": 16,
}
"""Canonical dtype -> bytes an element."""

SAFETENSORS: dict[str, str] = {
    "F64": "float64",
    "F32": "float32",
    "F16": "float16",
    "BF16": "bfloat16",
    "F8_E4M3": "float8_e4m3fn",
    "F8_E5M2": "float8_e5m2",
    "F8_E4M3FNUZ": "float8_e4m3fnuz",
    "F8_E5M2FNUZ": "float8_e5m2fnuz",
    "F8_E8M0": "float8_e8m0fnu",
    "I64": "int64",
    "I32": "int32",
    "I16": "int16",
    "I8": "int8",
    "U64": "uint64",
    "U32": "uint32",
    "U16": "uint16",
    "U8": "uint8",
    "BOOL": "bool",
    "C64": "complex64",
    "C128": "complex128",
}
"""dtype in a safetensors header -> canonical dtype. Sub-byte types (F4, F6_...) are left out: they are packed."""

PLAIN_FLOATS = frozenset({"float64", "float32", "float16", "bfloat16"})
"""Handed out as stored; geometry converts them."""

EIGHT_BIT_FLOATS = frozenset(name for name in ITEM_BYTES if name.startswith("float8"))
"""Handed out as float32, with their scales applied."""

EXACT_IN_FLOAT32 = frozenset({"int8", "uint8", "int16", "uint16"})
EXACT_IN_FLOAT64 = frozenset({"int32", "uint32", "int64", "uint64"})


def is_integer(dtype: str) -> bool:
    return dtype in EXACT_IN_FLOAT32 or dtype in EXACT_IN_FLOAT64


def check_readable(dtype: str, where: str) -> None:
    """Raise where elements of this dtype are no real numbers.

    Raises
    ------
    VectorsError
        for complex and boolean elements.
    SourceError
        for a dtype that is not known (packed sub-byte formats among them).
    """
    if dtype.startswith("complex"):
        raise VectorsError(
            f"{where} is complex ({dtype}): cosines are defined for real rows; give real and imaginary parts"
        )
    if dtype == "bool":
        raise VectorsError(f"{where} is boolean: it holds no directions; pick another tensor (see repcap inspect)")
    if dtype not in ITEM_BYTES:
        raise SourceError(f"{where} has dtype {dtype}, which repcap cannot decode; convert it to a float dtype")


def to_real(block: torch.Tensor) -> torch.Tensor:
    """A block as floating numbers: float64/32/16 and bfloat16 as they are, fp8 in float32, integers exactly.

    Integers of up to 16 bits fit float32; wider ones are given in float64 (exact up to 2^53).
    """
    name = str(block.dtype).removeprefix("torch.")
    if name in PLAIN_FLOATS:
        return block
    return block.double() if name in EXACT_IN_FLOAT64 else block.float()
