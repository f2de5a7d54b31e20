"""The same rows in other coordinates: what a linear map or a shift takes away, and what it leaves.

stored      x
centred     x - mean
top1        x without its part along the strongest direction of the unit rows
whitened    G^(-1/2) u, made unit again: mean + 2 std is 2/sqrt(d) by construction, only the tail says anything
"""

from __future__ import annotations

import torch

from repcap.errors import OptionError
from repcap.geometry.epsilon.centre import leading, project_out, subtract
from repcap.geometry.epsilon.passes import first_pass
from repcap.geometry.rows.changed import Changed
from repcap.geometry.rows.reader import RowReader
from repcap.matrix import Matrix

GAUGES = ("stored", "centred", "top1", "whitened")


def in_gauge(reader: RowReader, gauge: str) -> Matrix:
    """The matrix of `reader` in a gauge that its rows define. One pass, O(n d^2), but for `stored`.

    Raises
    ------
    OptionError
        for a gauge that is not one of the four.
    """
    if gauge not in GAUGES:
        raise OptionError("gauge", gauge, f"use {', '.join(GAUGES)}")
    if gauge == "stored":
        return reader.matrix
    first = first_pass(reader, find_repeats=False)
    if gauge == "centred":
        return Changed(reader.matrix, subtract(first.total / first.count))
    if gauge == "top1":
        return Changed(reader.matrix, project_out(leading(first, 1)))
    values, vectors = torch.linalg.eigh(first.moments().G)
    kept = values > 1e-7 * values[-1]  # below that an eigenvalue is the rounding of float32 products
    root = (vectors[:, kept] / values[kept].sqrt()) @ vectors[:, kept].T
    return Changed(reader.matrix, lambda units: units @ root, unit=True)
