"""The interface that every kind of checkpoint shares: directories, single files, modules in memory, the Hub."""

from __future__ import annotations

import dataclasses
import math
from abc import ABC, abstractmethod
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from repcap.errors import MatrixNotFound
from repcap.matrix import Matrix, Tokens
from repcap.sources.beside import Beside

if TYPE_CHECKING:
    import torch


@dataclasses.dataclass(frozen=True)
class TensorEntry:
    """One tensor as the header describes it. Nothing has been read yet."""

    name: str
    """Name in the file, untouched."""
    shape: tuple[int, ...]
    """Logical shape, row-major (GGUF's reversed dims are turned round already)."""
    dtype: str
    """Canonical dtype (torch's name), or the quantisation's own name: `Q8_0`, `MXFP4` ..."""
    file: str
    """File that holds it, relative to the source; empty for a tensor in memory."""

    @property
    def is_matrix(self) -> bool:
        return len(self.shape) == 2 and min(self.shape) > 0

    @property
    def size(self) -> str:
        """The shape, for messages: `48 x 3 x 16`, `(0,)`."""
        return " x ".join(map(str, self.shape)) if len(self.shape) > 1 else str(self.shape)

    @property
    def elements(self) -> int:
        return math.prod(self.shape)


class Checkpoint(ABC):
    """Named tensors, a configuration and a tokenizer. `sources.select` needs nothing else.

    A checkpoint is opened by reading headers only, so it costs kilobytes whatever its size.
    """

    spec: str
    """The source as the user gave it."""
    format: str = "unknown"
    """`safetensors`, `gguf`, `pytorch`, `consolidated`, `npy`, `npz`, `module`, `tensor`."""
    revision: str | None = None
    """Commit on the Hub, or None."""
    complete: bool = True
    """False where this is known to be a part of a checkpoint: a missing tensor then proves nothing."""
    missing: str = "only a part of the checkpoint is here"
    """Why it is not complete."""
    renames: bool = False
    """True where the format gives matrices other names: one that is not found may be there, as `missing` says."""
    files: Collection[str] = ()
    """Those that an index names."""
    remote: bool = False
    """True where reading costs network: values are then compared in samples only."""
    beside: Beside = Beside()
    """What lies beside the weights."""
    own_warnings: tuple[str, ...] = ()

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the user should know about the files themselves (truncated, shard missing, index wrong)."""
        return (*self.own_warnings, *self.beside.warnings)

    @abstractmethod
    def tensors(self) -> dict[str, TensorEntry]:
        """Every tensor by its name, from headers only."""

    def config(self) -> dict[str, Any]:
        """The model's configuration (`config.json`, `params.json`, GGUF metadata), {} where there is none."""
        return self.beside.config

    def tokens(self) -> Tokens | None:
        """The tokenizer's id -> text, or None where there is none."""
        return self.beside.tokens

    @abstractmethod
    def open(self, name: str) -> Matrix:
        """The tensor `name` as rows, role `matrix`, in its stored values: fp8 without scales, integers as floats.

        A scalar or a vector is one row; matrices in a tensor of more dimensions stand one below the other. Companion
        scales are applied by `sources.select`, not here.

        Raises
        ------
        MatrixNotFound
            if there is no such tensor.
        SourceError
            if its bytes cannot be read (missing shard, truncated file, dtype that cannot be decoded).
        VectorsError
            if it is complex or boolean.
        """

    def note(self, warning: str) -> None:
        """Add a warning about the files."""
        self.own_warnings += (warning,)

    def declared(self) -> tuple[str | None, str | None]:
        """(embedding, unembedding) where the source itself says which tensors they are; (None, None) else."""
        return None, None

    def same_storage(self, left: str, right: str) -> bool:
        """Whether two tensors are one piece of memory (modules, torch files)."""
        return False

    def small(self, name: str) -> torch.Tensor:
        """A whole small tensor (scales), in its own shape, in float32 or wider."""
        entry = self.entry(name)
        flat = TensorEntry(entry.name, as_rows(entry.shape), entry.dtype, entry.file)
        with self.open(name) as matrix:
            return matrix.read(0, flat.shape[0]).reshape(entry.shape)

    def holds(self, name: str) -> bool:
        """False where an index names a tensor, and every file was looked into and does not hold it."""
        return True

    @property
    def adapter(self) -> bool:
        """Whether every file is one of an adapter, which holds only what was trained."""
        return all(entry.file.startswith("adapter_") for entry in self.tensors().values())

    def facts(self, name: str) -> dict[str, Any]:
        """A small JSON object beside the weights (`adapter_config.json`), {} where there is none."""
        return self.beside.facts(name)

    def entry(self, name: str) -> TensorEntry:
        """The header entry of `name`; MatrixNotFound where there is none."""
        found = self.tensors().get(name)
        if found is None:
            raise MatrixNotFound(f"{self.spec} holds no tensor {name!r}; see repcap inspect {self.spec}")
        return found


def as_rows(shape: tuple[int, ...]) -> tuple[int, int]:
    """(rows, columns) of a tensor of this shape; scalars and vectors are one row, further dimensions are rows, too.

    >>> as_rows((3, 4)), as_rows((4,)), as_rows((2, 3, 4))
    ((3, 4), (1, 4), (6, 4))
    """
    if len(shape) < 2:
        return 1, shape[0] if shape else 1
    return math.prod(shape[:-1]), shape[-1]
