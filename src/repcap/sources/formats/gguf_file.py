"""GGUF: rows are whole quantisation blocks, so any rows can be read and dequantised on their own."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from gguf import quants
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType

from repcap.errors import SourceError
from repcap.matrix import Matrix, MatrixInfo
from repcap.sources import formats
from repcap.sources.checkpoint import Checkpoint, TensorEntry, as_rows
from repcap.sources.formats.dtypes import to_real
from repcap.sources.formats.gguf_header import (
    MAX_HEADER,
    ArrayRef,
    GgufHeader,
    IncompleteHeader,
    parse_gguf,
    read_array,
)
from repcap.sources.formats.stored_rows import Decode, EncodedMatrix, FileRows
from repcap.sources.tokens import Coding, VocabTokens, find_tokens, guess_coding

if TYPE_CHECKING:
    import torch

FIRST_BYTES = 1 << 20
KEPT_BYTES = 1 << 30
"""A quantised matrix of no more than this in float32 is dequantised once."""

CODINGS: dict[str, Coding] = {"gpt2": "bytelevel", "llama": "metaspace", "t5": "metaspace", "bert": "metaspace"}
"""tokenizer.ggml.model -> how the pieces are spelt."""

SPLIT = re.compile(r"^(.*)-(\d{5})-of-(\d{5})\.gguf$", re.IGNORECASE)


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


def read_gguf_header(path: Path) -> GgufHeader:
    """The checked header of a local file.

    Its beginning is read in pieces that double, not mapped: a file that another process cuts short meanwhile is then a
    truncated file, and no death by SIGBUS.
    """
    size = path.stat().st_size
    if size < 24:
        raise SourceError(f"{path} is not a GGUF file: only {size} bytes long; fetch it again")
    with path.open("rb") as file:
        body, wanted = b"", FIRST_BYTES
        while True:
            body += file.read(min(wanted, size) - len(body))
            try:
                return parse_gguf(body, size, str(path), block_sizes())
            except IncompleteHeader as short:
                if len(body) < wanted or short.needed > min(size, MAX_HEADER):
                    raise
                wanted = max(2 * len(body), short.needed)


class GgufCheckpoint(Checkpoint):
    """A GGUF file, with the other parts of a split model where they lie beside it."""

    format = "gguf"

    def __init__(self, spec: str, path: str | os.PathLike[str], allow_truncated: bool = False) -> None:
        self.spec = spec
        self.path = Path(path)
        self._allow_truncated = allow_truncated
        first = self._header(self.path)
        self._headers = {self.path: first}
        for sibling in self._siblings():
            self._headers[sibling] = self._header(sibling)
        if self.complete:
            self._check_parts()
        self._metadata, self._metadata_path = first.metadata, self.path
        for path_, header in self._headers.items():
            if "tokenizer.ggml.tokens" in header.metadata:
                self._metadata, self._metadata_path = header.metadata, path_
                break

    def _check_parts(self) -> None:
        """Whether all parts are here, by the file's own count of them and of their tensors."""
        first = next(iter(self._headers.values()))
        parts, tensors = (first.metadata.get(f"split.{what}") for what in ("count", "tensors.count"))
        here, held = len(self._headers), sum(len(header.tensors) for header in self._headers.values())
        lacking = ""
        if type(parts) is int and parts > here:
            own = first.metadata.get("split.no")
            which = f"part {own + 1}" if here == 1 and type(own) is int else f"{here} parts"
            lacking = f"{which} of {parts} by its own metadata (split.count): the others are missing"
        elif type(tensors) is int and tensors > held:
            lacking = f"{held} of {tensors} tensors by its own metadata (split.tensors.count): parts are missing"
        if lacking:
            self.complete, self.missing = False, lacking
            self.note(lacking)

    def _note_extra(self, path: Path, header: GgufHeader, size: int) -> None:
        """Remark on bytes after the last tensor: padding goes up to a multiple of the alignment."""
        extra = size - header.end
        if extra > header.alignment:
            self.note(f"{path.name} has {extra} bytes after its last tensor")

    def _header(self, path: Path) -> GgufHeader:
        header = read_gguf_header(path)
        size = path.stat().st_size
        if header.end > size:
            message = f"{path} is truncated: {size} bytes of {header.end}"
            if not self._allow_truncated:
                raise SourceError(
                    f"{message}; fetch it again, or pass --allow-truncated to read the tensors that are whole"
                )
            self.note(message)
        self._note_extra(path, header, size)
        return header

    def _siblings(self) -> list[Path]:
        match = SPLIT.match(self.path.name)
        if not match:
            return []
        stem, own, total = match.groups()
        names = [f"{stem}-{part:05d}-of-{total}.gguf" for part in range(1, int(total) + 1) if part != int(own)]
        here = {item.name for item in self.path.parent.iterdir()}
        missing = [name for name in names if name not in here]
        if missing:
            self.complete = False
            self.missing = f"{len(missing)} of {int(total)} parts are missing, the first {missing[0]}"
            self.note(self.missing)
        return [self.path.parent / name for name in names if name in here]

    def tensors(self) -> dict[str, TensorEntry]:
        return self._entries

    @functools.cached_property
    def _entries(self) -> dict[str, TensorEntry]:
        return {
            name: TensorEntry(name, tensor.shape, type_name(tensor.kind), path.name)
            for path, header in self._headers.items()
            for name, tensor in header.tensors.items()
        }

    def config(self) -> dict[str, Any]:
        """Scalar metadata, and `model_type`, `vocab_size`, `hidden_size` as Hub configurations call them."""
        found = {key: value for key, value in self._metadata.items() if not isinstance(value, ArrayRef)}
        architecture = found.get("general.architecture")
        names = {"vocab_size": f"{architecture}.vocab_size", "hidden_size": f"{architecture}.embedding_length"}
        extra = {name: found[key] for name, key in names.items() if key in found}
        return found | extra | ({"model_type": architecture} if architecture else {})

    @functools.cached_property
    def _tokens(self) -> VocabTokens | None:
        ref = self._metadata.get("tokenizer.ggml.tokens")
        if not isinstance(ref, ArrayRef) or ref.kind != 8:
            found, warnings = find_tokens(self.path.parent)
            self.warnings += warnings
            return found
        with self._metadata_path.open("rb") as file:
            body = file.read(self._headers[self._metadata_path].length)
        pieces = list(read_array(body, ref, str(self.path)))
        coding = CODINGS.get(str(self._metadata.get("tokenizer.ggml.model"))) or guess_coding(pieces)
        return VocabTokens(pieces, coding, "GGUF metadata")

    def tokens(self) -> VocabTokens | None:
        return self._tokens

    def open(self, name: str) -> Matrix:
        entry = self.entry(name)
        path = next(path for path, header in self._headers.items() if name in header.tensors)
        return open_gguf_tensor(path, self._headers[path], entry, self.spec)


def open_files(spec: str, files: Sequence[Path], allow_truncated: bool) -> GgufCheckpoint:
    """One file, which finds the other parts of its model itself."""
    return GgufCheckpoint(spec, files[0], allow_truncated)


def open_gguf_tensor(path: Path, header: GgufHeader, entry: TensorEntry, source: str) -> Matrix:
    """Rows of one tensor, dequantised block by block to float32; plain floats as stored."""
    tensor = header.tensors[entry.name]
    where = f"{path}: tensor {entry.name!r}"
    count, dim = as_rows(entry.shape)
    decode = decoder(tensor.kind, entry.dtype, where)
    if tensor.stop > path.stat().st_size:
        raise SourceError(f"{where} lies beyond the end of the truncated file: fetch the file again")
    elements, size = block_sizes()[tensor.kind]
    info = MatrixInfo(source=source, name=entry.name, count=count, dim=dim, dtype=entry.dtype)
    rows = FileRows(path, tensor.start, dim // elements * size, count)
    if elements > 1 and count * dim * 4 <= KEPT_BYTES:
        return KeptMatrix(rows, decode, info)
    return EncodedMatrix(rows, decode, info, item_bytes=size if elements == 1 else 0)


class KeptMatrix(EncodedMatrix):
    """Rows that are dequantised once and kept in float32, as a measurement reads them two to six times.

    Memory: 4 n d bytes as rows are read, KEPT_BYTES at most; a block that is handed out is a copy.
    """

    def __init__(self, rows: FileRows, decode: Decode, info: MatrixInfo) -> None:
        super().__init__(rows, decode, info)
        self._kept = np.empty((info.count, info.dim), dtype=np.float32)  # pages are taken as they are written
        self._known = np.zeros(info.count, dtype=bool)

    def read(self, start: int, stop: int) -> torch.Tensor:
        if 0 <= start < stop <= self.count and self._known[start:stop].all():
            return formats.from_bytes(self._kept[start:stop].copy().view(np.uint8), "float32")
        block = super().read(start, stop)
        self._kept[start:stop] = block.numpy()
        self._known[start:stop] = True
        return block

    def close(self) -> None:
        super().close()
        self._kept, self._known = self._kept[:0], np.zeros(self.count, dtype=bool)
