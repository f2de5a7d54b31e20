"""Gauss-Newton on the active set: from a float32 packing to the optimum that it is near, in float64.

At an optimum many pairs share the largest |cosine|. With that set and the signs fixed, "all of them equal t" is a
system of smooth equations in the rows and t, solved by a few least-squares steps of least norm. Where the packing is
near an isolated optimum this converges quadratically; elsewhere the result is kept only if it is better.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix
from scipy.sparse.linalg import lsmr

Array = npt.NDArray[np.float64]
Index = npt.NDArray[np.int64]

LARGEST = 40_000
"""k d up to which `polish` tries."""
MOST_LINES = 2_000
"""Lines up to which it tries: k x k cosines are held in memory (32 MB)."""
MOST_PAIRS = 40_000
WINDOW = 0.05
"""Pairs within 5 % of the largest are candidates for the active set."""
CANDIDATES = 4
ROUNDS = 12


@dataclasses.dataclass(frozen=True)
class Polished:
    rows: Array
    """(k, d), unit rows."""
    coherence: float
    active: int
    """Pairs in the active set that gave it; 0 where nothing was gained."""


def polish(rows: Array) -> Polished:
    """The rows (k, d), float64, moved to where their active pairs share one |cosine|, if that is lower.

    Time: a few sparse least-squares solves, at most `CANDIDATES` * `ROUNDS`; memory O(k^2 + pairs * d).
    """
    start = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    best = Polished(start, _coherence(start), 0)
    k, d = start.shape
    if k * d > LARGEST or k > MOST_LINES or best.coherence < 1e-9 or best.coherence > 1 - 1e-9:
        return best
    upper = np.triu_indices(k, 1)
    sizes = np.abs((start @ start.T)[upper])
    order = np.argsort(-sizes, kind="stable")
    for count in _candidates(sizes[order]):
        chosen = order[:count]
        found = _newton(start, upper[0][chosen], upper[1][chosen])
        value = _coherence(found)
        if value < best.coherence:
            best = Polished(found, value, count)
    return best


def _coherence(rows: Array) -> float:
    cosines = np.abs(rows @ rows.T)
    np.fill_diagonal(cosines, 0.0)
    return float(cosines.max())


def _candidates(descending: Array) -> list[int]:
    """Sizes of the active set to try: where the sorted |cosines| fall most steeply below their spread so far."""
    inside = int(np.searchsorted(-descending, -descending[0] * (1.0 - WINDOW), side="right"))
    inside = min(inside, len(descending), MOST_PAIRS)
    following = descending[1 : inside + 1] if inside < len(descending) else np.append(descending[1:inside], 0.0)
    gap = descending[: len(following)] - following
    spread = descending[0] - descending[: len(following)] + 1e-7 * descending[0]
    return [int(i) + 1 for i in np.argsort(-gap / spread, kind="stable")[:CANDIDATES]]


def _newton(rows: Array, left: Index, right: Index) -> Array:
    """Least-squares steps of least norm on s_ij x_i . x_j = t for the pairs (left, right); t is free."""
    k, d = rows.shape
    signs = np.sign((rows[left] * rows[right]).sum(axis=1))
    pairs = np.arange(len(left))
    columns = np.concatenate([(left[:, None] * d + np.arange(d)).ravel(), (right[:, None] * d + np.arange(d)).ravel()])
    columns = np.concatenate([columns, np.full(len(left), k * d)])
    lines = np.concatenate([np.repeat(pairs, d), np.repeat(pairs, d), pairs])
    previous = np.inf
    for _ in range(ROUNDS):
        values = signs * (rows[left] * rows[right]).sum(axis=1)
        residual = values - values.mean()
        error = float(np.abs(residual).max())
        if error < 2e-16 or error > 0.5 * previous:
            break
        previous = error
        # Tangent parts alone: moving a row along itself changes nothing.
        to_left = signs[:, None] * rows[right] - values[:, None] * rows[left]
        to_right = signs[:, None] * rows[left] - values[:, None] * rows[right]
        entries = np.concatenate([to_left.ravel(), to_right.ravel(), -np.ones(len(left))])
        system = csr_matrix((entries, (lines, columns)), shape=(len(left), k * d + 1))
        move = lsmr(system, -residual, atol=1e-13, btol=1e-13, conlim=1e14, maxiter=500)[0]
        rows = rows + move[:-1].reshape(k, d)
        rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return rows
