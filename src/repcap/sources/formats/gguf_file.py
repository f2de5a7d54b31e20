"""GGUF: rows are whole quantisation blocks, so any rows can be read and dequantised on their own."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from gguf import quants
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType

from repcap.errors import SourceError
from repcap.matrix import Matrix, MatrixInfo, Tokens
from repcap.sources import formats
from repcap.sources.beside import Beside
from repcap.sources.checkpoint import Checkpoint, TensorEntry, as_rows
from repcap.sources.formats.gguf_header import (
    MAX_HEADER,
    STRING,
    ArrayRef,
    GgufHeader,
    IncompleteHeader,
    parse_gguf,
    read_array,
)
from repcap.sources.formats.stored_rows import decode_rows
from repcap.sources.stored_files import Files, StoredFile
from repcap.sources.tokens import Coding, VocabTokens, guess_coding

if TYPE_CHECKING:
    import torch

TOKENS = "tokenizer.ggml.tokens"
FIRST_BYTES = 1 << 19
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
        return functools.partial(decode_rows, dtype=dtype)
    if kind not in block_sizes() or not _can_dequantise(kind):
        raise SourceError(f"{where} is {dtype}, which the gguf package cannot dequantise; convert it to Q8_0 or F16")
    quantisation = GGMLQuantizationType(kind)

    def decode(raw: np.ndarray) -> torch.Tensor:
        if not raw.size:  # rows of no elements, which gguf cannot shape
            return formats.from_bytes(raw.reshape(len(raw), 0), "float32")
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


class GgufPart:
    """One GGUF file. Cost of the header (some MB for a large vocabulary): reads that double.

    It is read, not mapped: a file that another process cuts short meanwhile is then a truncated file, and no death by
    SIGBUS.
    """

    def __init__(self, file: StoredFile, allow_truncated: bool = False) -> None:
        self.file, self.name = file, file.name
        self.notes: tuple[str, ...] = ()
        self.header = self._header()
        size, end = file.size or 0, self.header.end
        if end > size:
            message = f"{file.where} is truncated: {size} bytes of {end}"
            if not allow_truncated:
                raise SourceError(
                    f"{message}; {file.again}, or pass --allow-truncated to read the tensors that are whole"
                )
            self.notes = (message,)
        elif size - end > self.header.alignment:  # padding goes up to a multiple of it
            self.notes = (f"{file.name} has {size - end} bytes after its last tensor",)

    def _header(self) -> GgufHeader:
        parsed: list[GgufHeader] = []

        def read() -> bytes:
            body, header = self._read()
            parsed.append(header)
            return body

        def parse(body: bytes) -> GgufHeader:
            return parsed[0] if parsed else parse_gguf(body, self.file.size or 0, self.file.where, block_sizes())

        return self.file.header(read, parse)

    def _read(self) -> tuple[bytes, GgufHeader]:
        file, body, wanted = self.file, self.file.read(0, 24), FIRST_BYTES  # they tell the size, too
        size = file.size
        if size is None:
            raise SourceError(f"{file.where}: the server does not say how long the file is: its end cannot be read")
        if size < 24:
            raise SourceError(f"{file.where} is not a GGUF file: only {size} bytes long; {file.again}")
        while True:
            wanted = min(wanted, size)
            body += file.read(len(body), wanted) if wanted > len(body) else b""
            try:
                return body, parse_gguf(body, size, file.where, block_sizes())
            except IncompleteHeader as short:
                if len(body) < wanted or len(body) >= size or short.needed > min(size, MAX_HEADER):
                    raise
                wanted = max(2 * len(body), short.needed)

    def array(self, ref: ArrayRef) -> list[Any]:
        """The elements of an array of the metadata."""
        body = self.file.header(lambda: self._read()[0], lambda kept: kept)
        return list(read_array(body, ref, self.file.where))

    def open(self, name: str, source: str) -> Matrix:
        """Rows of one tensor, dequantised block by block to float32; plain floats as stored."""
        tensor = self.header.tensors[name]
        count, dim = as_rows(tensor.shape)
        dtype = type_name(tensor.kind)
        decode = decoder(tensor.kind, dtype, f"{self.file.where}: tensor {name!r}")
        elements, size = block_sizes()[tensor.kind]
        info = MatrixInfo(source=source, name=name, count=count, dim=dim, dtype=dtype)
        keep = elements > 1 and 0 < 4 * count * dim <= KEPT_BYTES
        # What is kept of a far tensor is its blocks as they are: bytes, with the type beside them.
        return self.file.matrix(
            info,
            tensor.start,
            dim // elements * size,
            decode,
            size if elements == 1 else 0,
            keep,
            dtype="U8",
            ggml_type=dtype,
            logical_shape=f"{count} x {dim}",
        )


class GgufCheckpoint(Checkpoint):
    """A GGUF file, with the other parts of a split model where they lie beside it.

    lacking: names of parts that do not. own: place of the part that was asked for among `parts`.
    """

    format = "gguf"

    def __init__(self, spec: str, parts: Sequence[GgufPart], lacking: Sequence[str], beside: Beside) -> None:
        self.spec, self.parts, self.beside = spec, parts, beside
        self.remote = any(part.file.path is None for part in parts)
        for part in parts:
            self.own_warnings += part.notes
        if lacking:
            total = len(lacking) + len(parts)
            self._incomplete(f"{len(lacking)} of {total} parts are missing, the first {lacking[0]}")
        else:
            self._check_parts()
        with_tokens = [part for part in parts if TOKENS in part.header.metadata]
        self._told = (with_tokens or list(parts))[0]

    def _incomplete(self, why: str) -> None:
        self.complete, self.missing = False, why
        self.note(why)

    def _check_parts(self) -> None:
        """Whether all parts are here, by the file's own count of them and of their tensors."""
        metadata = self.parts[0].header.metadata
        parts, tensors = (metadata.get(f"split.{what}") for what in ("count", "tensors.count"))
        here, held = len(self.parts), sum(len(part.header.tensors) for part in self.parts)
        if type(parts) is int and parts > here:
            own = metadata.get("split.no")
            which = f"part {own + 1}" if here == 1 and type(own) is int else f"{here} parts"
            self._incomplete(f"{which} of {parts} by its own metadata (split.count): the others are missing")
        elif type(tensors) is int and tensors > held:
            self._incomplete(
                f"{held} of {tensors} tensors by its own metadata (split.tensors.count): parts are missing"
            )

    def tensors(self) -> dict[str, TensorEntry]:
        return self._entries

    @functools.cached_property
    def _entries(self) -> dict[str, TensorEntry]:
        found: dict[str, TensorEntry] = {}
        for part in self.parts:
            for name, tensor in part.header.tensors.items():
                if name in found:
                    raise SourceError(
                        f"{self.spec}: {name!r} is in {found[name].file} and in {part.name}: fetch it again"
                    )
                found[name] = TensorEntry(name, tensor.shape, type_name(tensor.kind), part.name)
        return found

    def config(self) -> dict[str, Any]:
        """Scalar metadata, and `model_type`, `vocab_size`, `hidden_size` as Hub configurations call them."""
        metadata = self._told.header.metadata
        found = {key: value for key, value in metadata.items() if not isinstance(value, ArrayRef)}
        architecture = found.get("general.architecture")
        names = {"vocab_size": f"{architecture}.vocab_size", "hidden_size": f"{architecture}.embedding_length"}
        extra = {name: found[key] for name, key in names.items() if key in found}
        return found | extra | ({"model_type": architecture} if architecture else {})

    @functools.cached_property
    def _tokens(self) -> Tokens | None:
        metadata = self._told.header.metadata
        ref = metadata.get(TOKENS)
        if not isinstance(ref, ArrayRef) or ref.kind != STRING:
            return self.beside.tokens
        pieces = self._told.array(ref)
        coding = CODINGS.get(str(metadata.get("tokenizer.ggml.model"))) or guess_coding(pieces)
        return VocabTokens(pieces, coding, "GGUF metadata")

    def tokens(self) -> Tokens | None:
        return self._tokens

    def open(self, name: str) -> Matrix:
        self.entry(name)
        return next(part for part in self.parts if name in part.header.tensors).open(name, self.spec)


def split_names(file: str) -> list[str]:
    """Names of all parts of a split model, the one that is asked for first; that alone where it is not split."""
    match = SPLIT.match(file)
    if not match:
        return [file]
    stem, own, total = match.groups()
    others = [f"{stem}-{part:05d}-of-{total}.gguf" for part in range(1, int(total) + 1) if part != int(own)]
    return [file, *others]


def open_files(files: Files) -> GgufCheckpoint:
    """One file, with the other parts of its model that lie beside it."""
    names = split_names(files.names[0])
    here = files.here if len(names) > 1 else names
    parts = [GgufPart(files.find(name), files.allow_truncated) for name in names if name in here]
    return GgufCheckpoint(files.spec, parts, [name for name in names if name not in here], files.beside)
