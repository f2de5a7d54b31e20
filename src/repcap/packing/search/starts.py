"""Where a search starts: random directions, an explicit set, or a file of vectors."""

from __future__ import annotations

import torch

from repcap.constructions.build import best_lines
from repcap.errors import InputError
from repcap.packing.coherence import unit_rows
from repcap.packing.vector_files import open_vectors

CONSTRUCTED_ENTRIES = 1 << 28
"""k d up to which a construction is made in memory (2 GB of float64)."""


def random_start(k: int, d: int, generator: torch.Generator) -> torch.Tensor:
    """k random directions (k, d), float32, the same on every device."""
    return torch.nn.functional.normalize(torch.randn(k, d, generator=generator), dim=1)


def generator_for(seed: int, restart: int) -> torch.Generator:
    """The random numbers of one restart."""
    return torch.Generator().manual_seed((seed * 1_000_003 + restart) % (1 << 63))


def constructed(k: int, d: int) -> tuple[torch.Tensor, str] | None:
    """Vectors and name of the best explicit set, or None where none is built (or it would not fit into memory)."""
    if k * d > CONSTRUCTED_ENTRIES:
        return None
    lines = best_lines(k, d)
    return None if lines is None else (lines.read(0, k), lines.name)


def start_from(init: str, k: int, d: int) -> torch.Tensor | None:
    """The rows (k, d) that `init` names: `random` (None), `construction`, or the path of a file of vectors.

    Raises
    ------
    InputError
        where no set is built, or the file cannot be used.
    """
    if init == "random":
        return None
    if init == "construction":
        made = constructed(k, d)
        if made is None:
            raise InputError(f"no construction of {k} lines in R^{d} is built here; use --init random")
        return made[0].to(torch.float32)
    matrix, _ = open_vectors(init)
    if matrix.dim != d or matrix.count < k:
        raise InputError(f"{init} holds {matrix.count} vectors of R^{matrix.dim}; a start needs at least {k} of R^{d}")
    return unit_rows(matrix.read(0, k)).to(torch.float32)
