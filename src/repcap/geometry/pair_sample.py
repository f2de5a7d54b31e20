"""Cosines of randomly drawn pairs: a quick look at a distribution whose pairs are too many to count."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from repcap.errors import InputError, VectorsError
from repcap.geometry.histogram import FINE_BINS, Extreme, PairCounts
from repcap.geometry.rows import Normaliser
from repcap.matrix import Matrix, ProgressFn

if TYPE_CHECKING:
    import torch

CHUNK = 4096
"""Pairs whose rows are in memory at a time."""


def sample_pairs(
    matrix: Matrix,
    pairs: int,
    *,
    mask: np.ndarray | None = None,
    keep: int = 10,
    seed: int = 0,
    on_progress: ProgressFn | None = None,
) -> PairCounts:
    """Count the cosines of `pairs` pairs of distinct rows, drawn independently and with replacement.

    A pair one of whose rows has no direction is drawn again. Cost 2 `pairs` d; memory O(CHUNK d).

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
        raise VectorsError(f"{matrix.info.name} of {matrix.info.source} has no pair of rows to sample")
    rng = np.random.default_rng(seed)
    total = PairCounts.empty(keep)
    draws = 0
    while total.pairs < pairs:
        if draws > 20 and total.pairs < draws * CHUNK // 1000:
            raise VectorsError(f"{matrix.info.name} of {matrix.info.source}: hardly any pair of rows has a direction")
        want = min(CHUNK, pairs - total.pairs)
        first = rng.integers(len(rows), size=want)
        second = (first + rng.integers(1, len(rows), size=want)) % len(rows)
        total = total + _cosines(matrix, rows[first], rows[second], keep)
        draws += 1
        if on_progress is not None:
            on_progress(total.pairs, pairs)
    return total


def _cosines(matrix: Matrix, first: np.ndarray, second: np.ndarray, keep: int) -> PairCounts:
    import torch

    needed, place = np.unique(np.concatenate([first, second]), return_inverse=True)
    rows = Normaliser(torch.float32)(matrix.take(needed.tolist()), torch.arange(len(needed)))
    position = torch.full((len(needed),), -1, dtype=torch.long)
    position[rows.indices] = torch.arange(len(rows.indices))
    left, right = (position[torch.from_numpy(half)] for half in np.split(place, 2))
    good = ((left >= 0) & (right >= 0)).numpy()
    cosine = _products(rows.units, left[good], right[good])
    index = np.clip(((cosine + 1.0) * (FINE_BINS / 2)).astype(np.int64), 0, FINE_BINS - 1)
    ordered = np.argsort(cosine, kind="stable")
    i, j = np.minimum(first, second)[good], np.maximum(first, second)[good]
    named = [Extreme(float(cosine[at]), int(i[at]), int(j[at])) for at in (*ordered[:keep], *ordered[::-1][:keep])]
    smallest = tuple(named[: min(keep, len(ordered))])
    return PairCounts(np.bincount(index, minlength=FINE_BINS), tuple(named[len(smallest) :]), smallest, keep)


def _products(unit: torch.Tensor, left: torch.Tensor, right: torch.Tensor) -> np.ndarray:
    cosine: np.ndarray = (unit[left].double() * unit[right].double()).sum(dim=1).clamp_(-1.0, 1.0).numpy()
    return cosine
