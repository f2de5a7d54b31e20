"""epsilon of the first ids alone: token ids are no random sample, they are ordered by how a tokenizer was trained."""

from __future__ import annotations

import torch

from repcap.geometry.epsilon.jackknife import epsilon_of
from repcap.geometry.epsilon.moments import MomentsBuilder
from repcap.geometry.rows.reader import RowReader

SHARES = (1 / 48, 1 / 8, 1 / 4, 1 / 2, 3 / 4, 1.0)
"""Of the rows, from the first on."""
LEAST = 960
"""Rows from which on the first of the shares holds enough of them."""


def drift(reader: RowReader, rows: torch.Tensor, z: float) -> tuple[tuple[int, float], ...]:
    """((ids, epsilon of those of `rows` that are among the first so many ids), ...); empty for fewer than 960 rows.

    rows: (n,) ascending row numbers that have a direction. Sums only grow from share to share, so one reading gives
    all: n d^2 operations. Memory: one matrix of 8 d^2 bytes, a block of rows.
    """
    if len(rows) < LEAST:
        return ()
    builder = MomentsBuilder(reader.dim, reader.device, reader.dtype)
    found: list[tuple[int, float]] = []
    done = 0
    for end in (round(share * len(rows)) for share in SHARES):
        for block in reader.replaced(rows=rows[done:end]).units():
            builder.add(block.units.to(reader.device))
        found.append((int(rows[end - 1]) + 1, epsilon_of(builder.count, *builder.squares(), z)))
        done = end
    return tuple(found)
