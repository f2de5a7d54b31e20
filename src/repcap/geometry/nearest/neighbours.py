"""Nearest rows: of one vector by one pass, of every row by a blocked scan of all pairs.

A row is `primary` if it is the nearest neighbour of more than tau other rows; those rows are its cluster.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from repcap.errors import InputError, VectorsError
from repcap.geometry.pairs.blocks import MEMORY, PANEL, Rows, count_above, panel_pairs, scan
from repcap.geometry.pairs.histogram import ROUNDING
from repcap.geometry.rows.unit_rows import Normaliser, UnitRows
from repcap.matrix import Matrix, ProgressFn

NO_ROW = -1


@dataclasses.dataclass(frozen=True)
class Nearest:
    """The nearest neighbour of every row.

    index: (n,) int64, its row number, NO_ROW for a row without a direction (or without company).
    cosine: (n,) float32; -inf where index is NO_ROW.
    beyond: unordered pairs with a cosine above `epsilon`, by more than the rounding of float32 products.
    """

    index: np.ndarray
    cosine: np.ndarray
    epsilon: float
    beyond: int

    def clusters(self, tau: int) -> list[tuple[int, np.ndarray]]:
        """(primary row, the rows whose nearest neighbour it is), the largest cluster first; more than tau rows each."""
        if tau < 0:
            raise InputError(f"tau must be at least 0, got {tau}")
        usable = self.index[self.index >= 0]
        degree = np.bincount(usable, minlength=len(self.index))
        primary = np.flatnonzero(degree > tau)
        order = primary[np.lexsort((primary, -degree[primary]))]
        return [(int(row), np.flatnonzero(self.index == row)) for row in order]

    def twins(self, threshold: float = 0.995) -> list[np.ndarray]:
        """Groups of rows that nearest-neighbour links at or above `threshold` join, the largest first."""
        linked: list[int] = np.flatnonzero((self.index >= 0) & (self.cosine >= threshold)).tolist()
        parent: dict[int, int] = {int(row): int(row) for row in {*linked, *self.index[linked].tolist()}}

        def root(row: int) -> int:
            while parent[row] != row:
                parent[row] = parent[parent[row]]
                row = parent[row]
            return row

        for row in linked:
            parent[root(row)] = root(int(self.index[row]))
        groups: dict[int, list[int]] = {}
        for member in parent:
            groups.setdefault(root(member), []).append(member)
        return sorted((np.sort(rows) for rows in groups.values()), key=lambda rows: (-len(rows), rows[0]))


def nearest_rows(
    matrix: Matrix,
    *,
    epsilon: float = 2.0,
    mask: np.ndarray | None = None,
    panel: int = PANEL,
    device: str = "auto",
    memory: int = MEMORY,
    on_progress: ProgressFn | None = None,
) -> Nearest:
    """The nearest neighbour of every row of `matrix`, (n, d), and the pairs beyond `epsilon` in the same pass.

    mask: (n,) bool, the rows to use. Of equally near rows the one with the smaller number is taken.

    Cost: n^2 d operations. Memory: O(n) and `memory` bytes of unit rows; never n x n.
    """
    workers = scan(
        matrix,
        panel_pairs(matrix.count, panel),
        lambda: _NearestWorker(matrix.count, epsilon),
        mask=mask,
        panel=panel,
        device=device,
        memory=memory,
        on_progress=on_progress,
    )
    first = workers[0]
    for other in workers[1:]:
        first.merge(np.arange(matrix.count), other.cosine, other.index)
    index = np.where(np.isneginf(first.cosine), NO_ROW, first.index)
    return Nearest(index, first.cosine, epsilon, sum(worker.beyond for worker in workers))


class _NearestWorker:
    def __init__(self, count: int, epsilon: float) -> None:
        self.cosine = np.full(count, -np.inf, dtype=np.float32)
        self.index = np.full(count, NO_ROW, dtype=np.int64)
        self.beyond = 0
        self._epsilon = epsilon

    def take(self, a: Rows, b: Rows, same: bool, product: torch.Tensor) -> None:
        if same:
            product.fill_diagonal_(-np.inf)
        top = self._along(product, a.ids, b.ids)
        if not same:  # the block below the diagonal is this one transposed
            self._along(product.mT, b.ids, a.ids)
        border = self._epsilon + ROUNDING
        if top > border:
            over = count_above(product, border)
            self.beyond += over // 2 if same else over

    def _along(self, product: torch.Tensor, rows: np.ndarray, others: np.ndarray) -> float:
        # The largest of each row is cheap, where it stands is not: look only in rows that it improves, which become
        # rare soon (about ln(blocks) times a row in all).
        largest = product.amax(dim=1)
        values = largest.cpu().numpy()
        better = np.flatnonzero(values >= self.cosine[rows])
        if len(better):
            at = product[better].argmax(dim=1).cpu().numpy()
            self.merge(rows[better], values[better], others[at])
        return float(values.max(initial=-np.inf))

    def merge(self, rows: np.ndarray, cosine: np.ndarray, index: np.ndarray) -> None:
        """Take these neighbours of `rows` where they are nearer than the ones known, or as near and of lower number."""
        known, known_index = self.cosine[rows], self.index[rows]
        better = (cosine > known) | ((cosine == known) & (index < known_index) & (index >= 0))
        self.cosine[rows[better]] = cosine[better]
        self.index[rows[better]] = index[better]


def cosines_within(matrix: Matrix, groups: np.ndarray, chunk: int = 4096) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(i, j, cosine) of every pair i < j of rows in one group; rows without a direction have none.

    groups: (n,) int64, negative for no group. Cost O(d) a pair, of which there are m (m - 1)/2 in a group of m: meant
    for many small groups. Memory: the pairs, and `chunk` pairs of rows.
    """
    order = np.argsort(groups, kind="stable")
    order = order[groups[order] >= 0]
    parts = np.split(order, np.flatnonzero(np.diff(groups[order])) + 1)
    pairs = [part[np.stack(np.triu_indices(len(part), 1))] for part in parts if len(part) > 1]
    if not pairs:
        return np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0)
    i, j = np.concatenate(pairs, axis=1)
    cosine = np.full(len(i), np.nan)
    for first in range(0, len(i), chunk):
        left, right = i[first : first + chunk], j[first : first + chunk]
        needed, place = np.unique(np.concatenate([left, right]), return_inverse=True)
        rows = Normaliser(torch.float64)(matrix.take(needed.tolist()), torch.arange(len(needed)))
        unit = np.full((len(needed), matrix.dim), np.nan)
        unit[rows.indices.numpy()] = rows.units.numpy()
        half = len(left)
        cosine[first : first + chunk] = np.einsum("pd,pd->p", unit[place[:half]], unit[place[half:]])
    good = ~np.isnan(cosine)
    return i[good], j[good], cosine[good]


@dataclasses.dataclass(frozen=True)
class Ranked:
    """Rows ordered by their cosine with one query vector."""

    indices: tuple[int, ...]
    cosines: tuple[float, ...]

    def to_dict(self) -> dict[str, Any]:
        return {"indices": list(self.indices), "cosines": list(self.cosines)}


def unit_of(matrix: Matrix, indices: Sequence[int]) -> torch.Tensor:
    """Unit vectors of these rows, (len(indices), d), float64.

    Raises
    ------
    InputError
        if a number is no row.
    VectorsError
        if a row has no direction.
    """
    for index in indices:
        if not 0 <= index < matrix.count:
            raise InputError(f"row {index} is not in 0..{matrix.count - 1} of {matrix.info.name}")
    rows = Normaliser(torch.float64)(matrix.take(indices), torch.arange(len(indices)))
    if rows.dropped:
        position, reason = rows.dropped[0]
        raise VectorsError(f"row {indices[position]} of {matrix.info.name} has no direction ({reason})")
    return rows.units.clone()


def signed_sum(matrix: Matrix, indices: Sequence[int], signs: Sequence[float]) -> torch.Tensor:
    """Sum of the unit vectors of these rows, each times its sign: (d,) float64. Raises as `unit_of`."""
    return torch.tensor([float(sign) for sign in signs], dtype=torch.float64) @ unit_of(matrix, indices)


def directions(matrix: Matrix, rows: np.ndarray) -> UnitRows:
    """Float64 unit rows of these row numbers, (m,) int64, those without a direction left out."""
    return Normaliser(torch.float64)(matrix.take(rows.tolist()), torch.from_numpy(rows))


def ranked(
    matrix: Matrix,
    queries: torch.Tensor,
    top: int = 10,
    *,
    opposed: bool = False,
    exclude: Sequence[frozenset[int]] = (),
    block: int = 8192,
) -> list[Ranked]:
    """The `top` rows nearest to each query, or with `opposed` the most opposed; one pass over the rows.

    queries: (q, d). exclude: for each query the rows that do not count. Ties go to the smaller row number.

    Cost: 2 q n d operations. Memory: O(block (d + q)).
    """
    if top < 1:
        raise InputError(f"top must be at least 1, got {top}")
    unit = torch.nn.functional.normalize(queries.double(), dim=1)
    sign = -1.0 if opposed else 1.0
    best = [(np.empty(0), np.empty(0, dtype=np.int64)) for _ in range(len(unit))]
    normaliser = Normaliser(torch.float64)
    for first, rows in matrix.blocks(block):
        held = normaliser(rows, torch.arange(first, first + rows.shape[0]))
        cosines = (unit @ held.units.mT).clamp_(-1.0, 1.0).numpy()
        ids = held.indices.numpy()
        for query, (cosine, known) in enumerate(zip(cosines, best, strict=True)):
            usable = np.ones(len(ids), dtype=bool)
            if exclude and exclude[query]:
                usable = ~np.isin(ids, list(exclude[query]))
            values = np.concatenate([known[0], cosine[usable]])
            names = np.concatenate([known[1], ids[usable]])
            order = np.lexsort((names, -sign * values))[:top]
            best[query] = (values[order], names[order])
    return [Ranked(tuple(names.tolist()), tuple(values.tolist())) for values, names in best]


def rank_of(matrix: Matrix, query: torch.Tensor, row: int, exclude: frozenset[int] = frozenset()) -> int:
    """1 + the number of rows, but for `exclude`, that are nearer to `query`, (d,), than `row` is."""
    unit = torch.nn.functional.normalize(query.double(), dim=0)
    own = float(unit_of(matrix, [row])[0] @ unit)
    nearer = 0
    normaliser = Normaliser(torch.float64)
    for first, rows in matrix.blocks(8192):
        held = normaliser(rows, torch.arange(first, first + rows.shape[0]))
        ids = held.indices.numpy()
        closer = (held.units @ unit).numpy() > own
        closer &= ~np.isin(ids, [row, *exclude])
        nearer += int(closer.sum())
    return nearer + 1
