"""Cosines of randomly drawn pairs: a quick look at a distribution whose pairs are too many to count."""

from __future__ import annotations

import numpy as np
import torch

from repcap.errors import InputError, VectorsError
from repcap.geometry.pairs.blocks import MEMORY
from repcap.geometry.pairs.histogram import FINE_BINS, ROUNDING, Extreme, PairCounts, Wanted, quanta
from repcap.geometry.rows.unit_rows import Normaliser
from repcap.matrix import Matrix, ProgressFn

CHUNK = 4096
"""Pairs whose rows are read at a time, where the matrix does not fit into `memory`."""


def sample_pairs(
    matrix: Matrix,
    pairs: int,
    *,
    mask: np.ndarray | None = None,
    wanted: Wanted = Wanted(),
    seed: int = 0,
    memory: int = MEMORY,
    on_progress: ProgressFn | None = None,
) -> PairCounts:
    """Count the cosines of `pairs` pairs of distinct rows, drawn independently and with replacement.

    A pair one of whose rows has no direction is drawn again. Cost 2 `pairs` d, and n d to read every row once where the
    float32 rows fit into `memory` bytes and many pairs are asked for; else each pair's rows are read as they are drawn,
    with memory O(CHUNK d).

    Raises
    ------
    InputError
        if `pairs` is below 2.
    VectorsError
        if hardly any pair has two directions.
    """
    if pairs < 2:
        raise InputError(f"a sample needs at least 2 pairs, got {pairs}")
    rows = np.arange(matrix.count) if mask is None else np.flatnonzero(mask)
    if len(rows) < 2:
        raise VectorsError(f"{matrix.info.title} has no pair of rows to sample")
    rng = np.random.default_rng(seed)
    held = _Held(matrix) if 4 * matrix.count * matrix.dim <= memory and 2 * pairs > matrix.count else None
    total = PairCounts.empty(wanted)
    draws = 0
    while total.pairs < pairs:
        if draws > 20 and total.pairs < draws * CHUNK // 1000:
            raise VectorsError(f"{matrix.info.title}: hardly any pair of rows has a direction")
        want = min(CHUNK, pairs - total.pairs)
        first = rng.integers(len(rows), size=want)
        second = (first + rng.integers(1, len(rows), size=want)) % len(rows)
        unit = held or _Drawn(matrix, np.concatenate([rows[first], rows[second]]))
        total = total + _cosines(unit, rows[first], rows[second], wanted)
        draws += 1
        if on_progress is not None:
            on_progress(total.pairs, pairs)
    return total


class _Drawn:
    """Unit rows of the row numbers `needed`, and where each stands."""

    def __init__(self, matrix: Matrix, needed: np.ndarray) -> None:
        self._needed = np.unique(needed)
        read = Normaliser(torch.float32)(matrix.take(self._needed.tolist()), torch.arange(len(self._needed)))
        self.unit = read.units
        self._position = torch.full((len(self._needed),), -1, dtype=torch.long)
        self._position[read.indices] = torch.arange(len(read.indices))

    def places(self, rows: np.ndarray) -> torch.Tensor:
        """Positions in `unit`, -1 for a row without a direction."""
        return self._position[torch.from_numpy(np.searchsorted(self._needed, rows))]


class _Held:
    """All unit rows, read once."""

    def __init__(self, matrix: Matrix, block: int = 8192) -> None:
        self.unit = torch.empty((matrix.count, matrix.dim))
        self._position = torch.full((matrix.count,), -1, dtype=torch.long)
        normaliser = Normaliser(torch.float32)
        for first, rows in matrix.blocks(block):
            read = normaliser(rows, torch.arange(first, first + rows.shape[0]))
            self.unit[read.indices] = read.units
            self._position[read.indices] = read.indices

    def places(self, rows: np.ndarray) -> torch.Tensor:
        """Positions in `unit`, -1 for a row without a direction."""
        return self._position[torch.from_numpy(rows)]


def _cosines(held: _Drawn | _Held, first: np.ndarray, second: np.ndarray, wanted: Wanted) -> PairCounts:
    left, right = held.places(first), held.places(second)
    good = ((left >= 0) & (right >= 0)).numpy()
    cosine = _products(held.unit, left[good], right[good])
    index = np.clip(((cosine + 1.0) * (FINE_BINS / 2)).astype(np.int64), 0, FINE_BINS - 1)
    i, j = np.minimum(first, second)[good], np.maximum(first, second)[good]
    away = cosine - 2.0 * wanted.origin / FINE_BINS
    one, two, three, four = (quanta(float((away**power).sum())) for power in (1, 2, 3, 4))
    # A pair that was drawn twice counts twice, and is named once.
    _, once = np.unique(i * (int(j.max(initial=0)) + 1) + j, return_index=True)
    return PairCounts(
        np.bincount(index, minlength=FINE_BINS),
        _first(cosine[once], i[once], j[once], wanted.keep, largest=True),
        _first(cosine[once], i[once], j[once], wanted.keep, largest=False),
        wanted,
        (one, two, three, four),
        *_beyond(cosine, wanted.epsilon),
    )


def _first(cosine: np.ndarray, i: np.ndarray, j: np.ndarray, keep: int, *, largest: bool) -> tuple[Extreme, ...]:
    order = np.lexsort((j, i, -cosine if largest else cosine))[:keep]
    return tuple(Extreme(float(cosine[at]), int(i[at]), int(j[at])) for at in order)


def _beyond(cosine: np.ndarray, epsilon: float | None) -> tuple[int, int]:
    if epsilon is None:
        return 0, 0
    border = epsilon + ROUNDING
    return int((cosine > border).sum()), int((cosine < -border).sum())


def _products(unit: torch.Tensor, left: torch.Tensor, right: torch.Tensor) -> np.ndarray:
    # float32 products summed by torch in pieces: within 1e-7, as all cosines here.
    cosine: np.ndarray = (unit[left] * unit[right]).sum(dim=1).clamp_(-1.0, 1.0).double().numpy()
    return cosine
