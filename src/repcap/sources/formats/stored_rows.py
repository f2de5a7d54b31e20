"""Rows of fixed byte length in a file, and matrices over them. One block at a time is in memory, never the tensor."""

from __future__ import annotations

import dataclasses
import os
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from repcap.errors import InputError, SourceError
from repcap.matrix import Matrix, MatrixInfo, Tokens
from repcap.sources import formats
from repcap.sources.formats.dtypes import to_real

if TYPE_CHECKING:
    import torch

Decode = Callable[[np.ndarray], "torch.Tensor"]
"""Bytes of m rows, (m, row_bytes) uint8 -> (m, d) floating tensor."""


class FileRows:
    """`count` rows of `row_bytes` bytes from byte `offset` of a file on.

    Reads with positioned reads, not a memory map: a file that shrinks meanwhile gives an error, not a SIGBUS.
    Threads may share one. Memory: the rows of one call.
    """

    far = False
    """Whether rows come over the network."""

    def __init__(self, path: str | os.PathLike[str], offset: int, row_bytes: int, count: int) -> None:
        self.path, self.offset, self.row_bytes, self.count = Path(path), offset, row_bytes, count
        self._file = self.path.open("rb", buffering=0)
        self._lock = threading.Lock()

    def have(self, spans: Sequence[tuple[int, int]]) -> None:
        """Fetch the rows start..stop-1 of each span that are not here yet, all spans at once."""

    def read(self, start: int, stop: int) -> np.ndarray:
        """Rows start..stop-1, shape (stop - start, row_bytes), uint8, writable."""
        out = np.empty((stop - start, self.row_bytes), dtype=np.uint8)
        self._fill(_view(out), self.offset + start * self.row_bytes)
        return out

    def columns(self, first: int, last: int) -> np.ndarray:
        """Bytes first..last-1 of every row, shape (count, last - first), uint8, writable."""
        out = np.empty((self.count, last - first), dtype=np.uint8)
        for row in range(self.count):
            self._fill(_view(out[row]), self.offset + row * self.row_bytes + first)
        return out

    def _fill(self, view: memoryview, position: int) -> None:
        done = 0
        while done < len(view):
            got = self._read_into(view[done:], position + done)
            if not got:
                raise SourceError(
                    f"{self.path} ends at byte {position + done}, in the middle of the matrix: fetch it again"
                )
            done += got

    def _read_into(self, view: memoryview, position: int) -> int:
        if hasattr(os, "preadv"):
            return os.preadv(self._file.fileno(), [view], position)
        with self._lock:  # Windows and some macOS builds
            self._file.seek(position)
            return self._file.readinto(view) or 0

    def close(self) -> None:
        self._file.close()


def _view(array: np.ndarray) -> memoryview:
    """The bytes of a contiguous array (cast refuses empty ones, which need no reading)."""
    view = memoryview(array)  # type: ignore[arg-type] # numpy arrays are buffers; Python 3.12 is the first to type it
    return view.cast("B") if array.size else memoryview(b"")


class EncodedMatrix(Matrix):
    """A matrix over `FileRows`: bytes in, floating rows out.

    decode: (m, row_bytes) uint8 -> (m, d) tensor. Memory: one block in stored and in decoded form. `bytes_read` counts
    stored bytes handed out, wherever they came from. Rows that are far away come each once: `read` fetches what it is
    asked for, `prefetch` many blocks at a time, several requests at once.
    """

    MERGE_BYTES = 1 << 14
    """Scattered rows nearer than this come in one request."""

    def __init__(
        self, rows: FileRows, decode: Decode, info: MatrixInfo, tokens: Tokens | None = None, item_bytes: int = 0
    ) -> None:
        self._rows, self._decode, self._item_bytes = rows, decode, item_bytes
        self.info, self.tokens, self.contiguous = info, tokens, rows.far

    def prefetch(self, spans: Sequence[tuple[int, int]]) -> None:
        self._rows.have(spans)

    def read(self, start: int, stop: int) -> torch.Tensor:
        check_span(start, stop, self.count, self.info.name)
        raw = self._rows.read(start, stop)
        self.bytes_read += raw.nbytes
        return self._decode(raw)

    def take(self, indices: Sequence[int]) -> torch.Tensor:
        """Scattered rows, one positioned read for each run of neighbours."""
        wanted = np.asarray(indices, dtype=np.int64)
        if wanted.size == 0:
            return self._decode(np.zeros((1, self._rows.row_bytes), dtype=np.uint8))[:0]
        if wanted.min() < 0 or wanted.max() >= self.count:
            raise InputError(f"row {int(wanted.max())} is outside 0..{self.count - 1} of {self.info.name}")
        if self._rows.far:
            self._rows.have(_runs(np.unique(wanted).tolist(), self.MERGE_BYTES // max(1, self._rows.row_bytes)))
        out = np.empty((wanted.size, self._rows.row_bytes), dtype=np.uint8)
        cuts = np.flatnonzero(np.diff(wanted) != 1) + 1
        for run in np.split(np.arange(wanted.size), cuts):
            first = int(wanted[run[0]])
            out[run[0] : run[-1] + 1] = self._rows.read(first, first + run.size)
        self.bytes_read += out.nbytes
        return self._decode(out)

    def columns(self, first: int, last: int) -> torch.Tensor | None:
        """Columns first..last-1 of all rows, shape (n, last - first); None where elements are not byte-aligned."""
        if not self._item_bytes:
            return None
        raw = self._rows.columns(first * self._item_bytes, last * self._item_bytes)
        self.bytes_read += raw.nbytes
        return self._decode(raw)

    def close(self) -> None:
        self._rows.close()


def _runs(indices: Sequence[int], slack: int) -> list[tuple[int, int]]:
    """Sorted row numbers as spans; gaps of up to `slack` rows are bridged."""
    runs: list[tuple[int, int]] = []
    for index in indices:
        if runs and index - runs[-1][1] <= slack:
            runs[-1] = (runs[-1][0], index + 1)
        else:
            runs.append((index, index + 1))
    return runs


class TransposedMatrix(Matrix):
    """The transpose of a matrix, for weights that keep one vector a column (`nn.Linear` decoders, (d, k)).

    Memory: one block of rows (columns of the base), plus one block of the base's rows where it cannot seek in a row.
    Cost where it cannot: every call reads the whole base once.
    """

    BASE_ELEMENTS = 1 << 24
    """Elements of the base that are held at once (64 MB in float32)."""

    def __init__(self, base: Matrix, info: MatrixInfo) -> None:
        self._base = base
        self.info, self.tokens, self.contiguous = info, base.tokens, base.contiguous

    def read(self, start: int, stop: int) -> torch.Tensor:
        check_span(start, stop, self.count, self.info.name)
        columns = getattr(self._base, "columns", None)
        block: torch.Tensor | None = columns(start, stop) if columns else None
        if block is not None:
            self.bytes_read = self._base.bytes_read
            return block.T.contiguous()
        return self._gather(slice(start, stop), stop - start)

    def take(self, indices: Sequence[int]) -> torch.Tensor:
        return self._gather([int(index) for index in indices], len(indices))

    def prefetch(self, spans: Sequence[tuple[int, int]]) -> None:
        """Every row of the transpose needs every row of the base."""
        if spans:
            self._base.prefetch([(0, self._base.count)])

    def _gather(self, which: slice | list[int], size: int) -> torch.Tensor:
        out: torch.Tensor | None = None  # (size, d)
        for first, block in self._base.blocks(max(1, self.BASE_ELEMENTS // self._base.dim)):
            if out is None:
                out = block.new_empty((size, self.dim))
            out[:, first : first + len(block)] = block[:, which].T
        self.bytes_read = self._base.bytes_read
        if out is None:
            raise InputError(f"{self.info.name} has no columns")
        return out

    def close(self) -> None:
        self._base.close()


def turned(base: Matrix) -> TransposedMatrix:
    """The transpose of `base` under the same name."""
    return TransposedMatrix(base, dataclasses.replace(base.info, count=base.dim, dim=base.count))


def check_span(start: int, stop: int, count: int, where: str) -> None:
    """Raise InputError unless 0 <= start < stop <= count."""
    if not 0 <= start < stop <= count:
        raise InputError(f"rows {start}..{stop} are outside 0..{count} of {where}")


def decode_rows(raw: np.ndarray, dtype: str) -> torch.Tensor:
    """Bytes of rows as floating numbers."""
    return to_real(formats.from_bytes(raw, dtype))


class KeptMatrix(EncodedMatrix):
    """Rows that are decoded once and kept in float32, as a measurement reads them two to six times.

    Memory: 4 n d bytes as rows are read; a block that is handed out is a copy.
    """

    def __init__(self, rows: FileRows, decode: Decode, info: MatrixInfo, item_bytes: int = 0) -> None:
        super().__init__(rows, decode, info, item_bytes=item_bytes)
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
