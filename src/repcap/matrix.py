"""The one thing that passes from sources to geometry: a matrix that is read in blocks of rows.

A source never hands out the whole matrix. It hands out a `Matrix`, whose `read(start, stop)` gives those rows as a
torch tensor on the cpu, in the stored precision where torch has it (float64, float32, float16, bfloat16) or
dequantised to float32 (GGUF blocks, fp8 with its scales). Geometry knows only this.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import torch

ProgressFn = Callable[[int, int], None]
"""Called with (done, total) as work goes on; the library never prints."""

HEARD: ContextVar[list[tuple[str, str]] | None] = ContextVar("repcap_heard", default=None)
"""(source, warning) of every matrix that is opened while a verb runs (`repcap.options.verb`)."""


def stages(report: ProgressFn | None, *weights: float) -> list[ProgressFn]:
    """One function of (done, total) a stage of the work; `report` is told how much of the whole is done, in percent.

    weights: what each stage costs beside the others. What was left out counts as done when a later stage reports.

    >>> first, second = stages(lambda *at: print(*at), 1, 3)
    >>> first(1, 2); second(0, 5); second(5, 5)
    12 100
    25 100
    100 100
    """

    def stage(before: float, weight: float) -> ProgressFn:
        def told(done: int, total: int) -> None:
            if report is not None:
                report(int(100.0 * (before + weight * done / max(total, 1)) / sum(weights) + 1e-9), 100)

        return told

    return [stage(sum(weights[:at]), weight) for at, weight in enumerate(weights)]


class Tokens(Protocol):
    """Row index -> token text."""

    @property
    def count(self) -> int:
        """Number of ids that the tokenizer knows: rows at or beyond it are padding."""

    def text(self, index: int) -> str | None:
        """Text of the token with this id as a reader would write it, or None beyond the tokenizer."""


def titled(name: str, source: str) -> str:
    """`name of source`, or the name alone where the two are the same."""
    return name if name == source else f"{name} of {source}"


@dataclasses.dataclass(frozen=True)
class MatrixInfo:
    """What is known of a matrix before a row is read."""

    source: str
    """The source as the user gave it."""
    name: str
    """Tensor name in the source, or the role where it has none."""
    count: int
    """Rows, n."""
    dim: int
    """Columns, d."""
    dtype: str
    """Stored dtype: `float32`, `bfloat16`, `float8_e4m3fn`, `Q8_0` ..."""
    role: str = "matrix"
    """`embedding`, `unembedding`, `decoder` (SAE dictionary) or `matrix`."""
    tied: bool | None = None
    """Whether embedding and unembedding share one matrix; None where that is not known."""
    evidence: str = ""
    """What decided role and tying, in words."""
    revision: str | None = None
    """Commit of the source on the Hub, or None."""
    warnings: tuple[str, ...] = ()
    """What the user should know about the file: config and tensors disagree, truncated, ..."""

    @property
    def title(self) -> str:
        """For messages: `name of source`, or the name alone where the two are the same."""
        return titled(self.name, self.source)

    def to_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)


class Matrix(ABC):
    """Rows that are read in blocks. Subclasses implement `read`, and `take` where they can do better."""

    info: MatrixInfo
    tokens: Tokens | None = None
    bytes_read: int = 0
    """Bytes taken from disk or network so far, in the stored encoding."""
    identity: str | None = None
    """Two matrices of one identity hold the same bytes; None where that is not known without reading them."""
    contiguous: bool = False
    """True where scattered rows are dear (a remote file): samples should then be taken in blocks."""

    @property
    def count(self) -> int:
        return self.info.count

    @property
    def dim(self) -> int:
        return self.info.dim

    @abstractmethod
    def read(self, start: int, stop: int) -> torch.Tensor:
        """Rows start..stop-1, shape (stop - start, d), on the cpu, floating dtype. 0 <= start < stop <= n."""

    def prefetch(self, spans: Sequence[tuple[int, int]]) -> None:  # noqa: B027 - local rows need no fetching
        """Say which rows start..stop-1 will be read, so that a remote matrix can fetch them all at once."""

    def take(self, indices: Sequence[int]) -> torch.Tensor:
        """The rows with these indices, in their order, shape (len(indices), d)."""
        out: torch.Tensor | None = None
        for place, index in enumerate(indices):
            row = self.read(int(index), int(index) + 1)
            if out is None:
                out = row.new_empty((len(indices), self.dim))
            out[place] = row[0]
        return self.read(0, 1)[:0] if out is None else out

    def blocks(self, rows: int, start: int = 0, stop: int | None = None) -> Iterator[tuple[int, torch.Tensor]]:
        """Yield (first row, block) over start..stop-1 without a gap; the last block may be shorter."""
        end = self.count if stop is None else stop
        for first in range(start, end, rows):
            yield first, self.read(first, min(first + rows, end))

    def close(self) -> None:  # noqa: B027 - a matrix in memory has nothing to release
        """Release files and maps. Reading afterwards is an error."""

    def __enter__(self) -> Matrix:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


class TensorMatrix(Matrix):
    """A matrix over a tensor that is in memory already; nothing is copied.

    tensor: shape (n, d), floating dtype, any device (blocks are moved to the cpu as they are read).
    """

    contiguous = False

    def __init__(self, tensor: torch.Tensor, info: MatrixInfo | None = None, tokens: Tokens | None = None) -> None:
        self._tensor = tensor.detach()
        n, d = tensor.shape
        dtype = str(tensor.dtype).removeprefix("torch.")
        self.info = info or MatrixInfo(source="tensor", name="matrix", count=n, dim=d, dtype=dtype)
        self.tokens = tokens

    def read(self, start: int, stop: int) -> torch.Tensor:
        block = self._tensor[start:stop]
        self.bytes_read += block.numel() * block.element_size()
        return block.to("cpu")

    def take(self, indices: Sequence[int]) -> torch.Tensor:
        chosen = self._tensor[[int(index) for index in indices]]
        self.bytes_read += chosen.numel() * chosen.element_size()
        return chosen.to("cpu")
