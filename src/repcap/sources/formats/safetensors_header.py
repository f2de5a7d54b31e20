"""The header of a safetensors file, from bytes: used for local files and for ranges of remote ones alike.

Layout: 8 bytes little-endian header length N, N bytes of JSON {name: {dtype, shape, data_offsets}}, then the data.
Everything is checked before it is believed.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from typing import Any

from repcap.errors import SourceError
from repcap.plain_json import parse_json
from repcap.sources.formats.dtypes import ITEM_BYTES, SAFETENSORS

PREFIX = 8
MAX_HEADER = 100_000_000
LFS_MAGIC = b"version https://git-lfs"


@dataclasses.dataclass(frozen=True)
class Span:
    """A tensor of a safetensors file: its shape, canonical dtype, and absolute byte range [start, stop)."""

    shape: tuple[int, ...]
    dtype: str
    start: int
    stop: int
    strides: tuple[int, ...] | None = None
    """In elements, where the rows do not lie one behind the other (PyTorch files)."""


@dataclasses.dataclass(frozen=True)
class Header:
    """A checked header. `end` is where the file should end; `truncated` says that it ends before."""

    tensors: dict[str, Span]
    metadata: dict[str, str]
    data_start: int
    end: int
    truncated: bool


def header_length(head: bytes, file_size: int | None, where: str) -> int:
    """Bytes of the JSON header, from the file's first 8 bytes (give more of the file where it is at hand).

    Raises
    ------
    SourceError
        if this is no safetensors file: a git-lfs pointer, a web page, too short, or an impossible length.
    """
    if head[:PREFIX] == LFS_MAGIC[:PREFIX]:
        raise SourceError(lfs_message(where))
    length = int.from_bytes(head[:PREFIX], "little")
    # A header of 60 bytes, or of 316, begins with the byte `<`, too: the length tells it from a web page.
    if head[:1] == b"<" and (len(head) < PREFIX or length > MAX_HEADER):
        raise SourceError(f"{where} is a web page, not a safetensors file: download the file itself")
    if len(head) < PREFIX:
        raise SourceError(f"{where} is not a safetensors file: only {len(head)} bytes long; fetch it again")
    if not 2 <= length <= MAX_HEADER:
        raise SourceError(
            f"{where} is not a safetensors file: its first 8 bytes give a header of {length} bytes, "
            f"2 to {MAX_HEADER} are allowed"
        )
    if file_size is not None and PREFIX + length > file_size:
        raise SourceError(
            f"{where} is truncated inside its header: {file_size} bytes, the header alone needs {PREFIX + length}; "
            "fetch it again"
        )
    return length


def parse_header(body: bytes, file_size: int | None, where: str, allow_truncated: bool = False) -> Header:
    """Check and parse the JSON header.

    Parameters
    ----------
    body : bytes
        the header's JSON, exactly header_length bytes.
    file_size : int, optional
        size of the whole file; offsets are checked against it. None leaves that check out.
    where : str
        name of the file for messages.
    allow_truncated : bool
        accept a file that ends before its last tensor does (`Header.truncated` then says so).

    Raises
    ------
    SourceError
        if the JSON is broken, or a dtype, shape and offsets do not agree, or tensors overlap, or lie outside the file.
    """
    entries, metadata = _entries(body, where)
    data_start = PREFIX + len(body)
    tensors = {name: _span(name, value, data_start, where) for name, value in entries.items()}
    _check_overlap(tensors, where)
    end = max((span.stop for span in tensors.values()), default=data_start)
    truncated = file_size is not None and end > file_size
    if truncated and not allow_truncated:
        raise SourceError(
            f"{where} is truncated: {file_size} bytes of {end}; fetch it again, or pass --allow-truncated "
            "to read the tensors that are whole"
        )
    return Header(tensors, metadata, data_start, end, truncated)


def lfs_message(where: str) -> str:
    """What to say of a git-lfs pointer that stands where the file should be."""
    return (
        f"{where} is a git-lfs pointer, not the file itself: run `git lfs pull` in its repository, or download the file"
    )


def _reject_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name occurs twice")
    return found


def _entries(body: bytes, where: str) -> tuple[dict[str, Any], dict[str, str]]:
    try:
        parsed = parse_json(body, _reject_duplicates)
    except ValueError as error:
        raise SourceError(f"{where} has a damaged header ({error}): fetch it again") from error
    if not isinstance(parsed, dict):
        raise SourceError(f"{where} has a damaged header (not a JSON object): fetch it again")
    metadata = parsed.pop("__metadata__", None) or {}
    if not isinstance(metadata, dict):
        raise SourceError(f"{where} has a damaged header (__metadata__ is no object): fetch it again")
    return parsed, {str(key): str(value) for key, value in metadata.items()}


def _naturals(value: Any) -> list[int] | None:
    """`value` if it is a list of integers >= 0, else None."""
    if isinstance(value, list) and all(type(item) is int and item >= 0 for item in value):
        return value
    return None


def _span(name: str, value: Any, data_start: int, where: str) -> Span:
    what = f"{where}: tensor {name!r}"
    if not isinstance(value, dict):
        raise SourceError(f"{what} has a damaged header entry (no object): fetch the file again")
    stored, shape, offsets = value.get("dtype"), _naturals(value.get("shape")), _naturals(value.get("data_offsets"))
    if not isinstance(stored, str) or shape is None or offsets is None or len(offsets) != 2:
        raise SourceError(f"{what} has a damaged header entry (dtype, shape or data_offsets): fetch the file again")
    first, last = offsets
    if first > last:
        raise SourceError(f"{what} ends before it starts (data_offsets {first}, {last}): fetch the file again")
    dtype = SAFETENSORS.get(stored, stored)
    if dtype in ITEM_BYTES and math.prod(shape) * ITEM_BYTES[dtype] != last - first:
        raise SourceError(
            f"{what} contradicts itself: {stored} of shape {shape} needs {math.prod(shape) * ITEM_BYTES[dtype]} bytes, "
            f"data_offsets give {last - first}; fetch the file again"
        )
    return Span(tuple(shape), dtype, data_start + first, data_start + last)


def _check_overlap(tensors: dict[str, Span], where: str) -> None:
    ordered = sorted((item for item in tensors.items() if item[1].stop > item[1].start), key=lambda item: item[1].start)
    for (left, a), (right, b) in itertools.pairwise(ordered):
        if b.start < a.stop:
            raise SourceError(f"{where}: tensors {left!r} and {right!r} overlap: the file is damaged or hostile")
