"""Linear programs, one after another: from near a local optimum to it, whichever pairs turn out to be active.

Near a packing x the cosines are linear in a small move of its rows. Each round asks for the move, no entry longer than
a radius, whose largest linearised |cosine| is least; the radius grows where the promise is kept and shrinks where it is
not (sequential linear programming with a trust region: R. Fletcher, E. Sainz de la Maza, Mathematical Programming 43,
1989). At an optimum with as many active pairs as it has degrees of freedom, which most small ones have, the last rounds
converge as Newton's method does. `polish` supplies the digits that a linear program leaves out.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_matrix

from repcap.packing.search.polish import Array, Index

MOST_ENTRIES = 160
"""k d up to which linear programs are quick: 3 ms each at 42 entries, 20 at 160."""
ROUNDS = 24
RADIUS = 0.02
"""First radius, in units of the rows' length; what a descent leaves is nearer than that."""
ENOUGH = 1e-7
"""A promise below the tolerance of the solver means nothing: stop there."""


def settle(rows: Array) -> Array:
    """The unit rows (k, d), float64, after up to `ROUNDS` linear programs; never worse than before.

    Time: `ROUNDS` programs of k (d - 1) unknowns and as many constraints as pairs are near the largest |cosine|.
    """
    k, d = rows.shape
    if d < 2 or k * d > MOST_ENTRIES:
        return rows
    upper = np.triu_indices(k, 1)
    cosines = (rows @ rows.T)[upper]
    largest, radius = float(np.abs(cosines).max()), RADIUS
    for _ in range(ROUNDS):
        near = np.abs(cosines) > largest - 4.0 * radius
        move, promised = _move(rows, upper[0][near], upper[1][near], cosines[near], radius)
        if largest - promised < ENOUGH:
            break
        tried = rows + move
        tried /= np.linalg.norm(tried, axis=1, keepdims=True)
        after = (tried @ tried.T)[upper]
        kept = (largest - float(np.abs(after).max())) / (largest - promised)
        if kept > 0.0:
            rows, cosines, largest = tried, after, float(np.abs(after).max())
        radius *= 2.0 if kept > 0.7 else 1.0 if kept > 0.3 else 0.5 if kept > 0.0 else 0.25
    return rows


def _move(rows: Array, left: Index, right: Index, cosines: Array, radius: float) -> tuple[Array, float]:
    """The best move (k, d) within the radius to first order, and the largest |cosine| that it promises.

    The unknowns are the d - 1 coordinates of each row's move in its tangent space, and the largest |cosine|.
    """
    k, d = rows.shape
    frames = np.linalg.svd(rows[:, None, :], full_matrices=True)[2][:, 1:, :]  # (k, d - 1, d): orthonormal, across rows
    free, pairs, signs = d - 1, np.arange(len(left)), np.sign(cosines)[:, None]
    entries = np.concatenate([
        (signs * np.einsum("nfd,nd->nf", frames[left], rows[right])).ravel(),
        (signs * np.einsum("nfd,nd->nf", frames[right], rows[left])).ravel(),
        np.full(len(left), -1.0),
    ])  # fmt: skip
    across = [(side[:, None] * free + np.arange(free)).ravel() for side in (left, right)]
    columns = np.concatenate([*across, np.full(len(left), k * free)])
    lines = np.concatenate([np.repeat(pairs, free), np.repeat(pairs, free), pairs])
    # scipy's stubs do not know that linprog takes sparse constraints.
    system: Any = csr_matrix((entries, (lines, columns)), shape=(len(left), k * free + 1))
    cost = np.zeros(k * free + 1)
    cost[-1] = 1.0
    limits: Any = np.full((k * free + 1, 2), (-radius, radius))
    limits[-1] = (0.0, 1.0)
    solved = linprog(cost, A_ub=system, b_ub=-np.abs(cosines), bounds=limits)
    if solved.x is None:
        return np.zeros_like(rows), 1.0
    return np.einsum("kf,kfd->kd", solved.x[:-1].reshape(k, free), frames), float(solved.x[-1])
