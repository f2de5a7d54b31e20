"""The same rows in other coordinates: what a linear map or a shift takes away, and what it leaves.

stored      x
centred     x - mean
top1        x without its part along the strongest direction of the unit rows
whitened    G^(-1/2) x: mean + 2 std is 2/sqrt(d) by construction, only the tail says anything

Rows are made unit again afterwards, as everywhere.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

import torch

from repcap.geometry.epsilon.centre import leading, project_out, subtract
from repcap.geometry.epsilon.passes import FirstPass, first_pass
from repcap.geometry.rows.changed import Changed
from repcap.geometry.rows.reader import RowReader, Transform
from repcap.matrix import Matrix


def gauge_changes(reader: RowReader, gauges: Iterable[str]) -> dict[str, Transform | None]:
    """What each gauge does to the rows of `reader`, which define it; None for `stored`. All can be pickled.

    One pass and O(n d^2) for all of them, none if `stored` is the only one.
    """
    found: dict[str, Transform | None] = dict.fromkeys(gauges)
    if found.keys() - {"stored"}:
        first = first_pass(reader, find_repeats=False)
        found.update({name: _CHANGES[name](first) for name in found if name != "stored"})
    return found


def changed(matrix: Matrix, change: Transform | None) -> Matrix:
    """`matrix` with changed rows; itself where there is no change."""
    return matrix if change is None else Changed(matrix, change)


def _whitening(first: FirstPass) -> Transform:
    values, vectors = torch.linalg.eigh(first.moments().G)
    kept = values > 1e-7 * values[-1]  # below that an eigenvalue is the rounding of float32 products
    return partial(_times, (vectors[:, kept] / values[kept].sqrt()) @ vectors[:, kept].T)


def _times(root: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    return rows @ root


_CHANGES = {
    "centred": lambda first: subtract(first.total / first.count),
    "top1": lambda first: project_out(leading(first, 1)),
    "whitened": _whitening,
}
