"""Several random starts of one (k, d) are one piece of evidence: held out together, resampled together."""

from __future__ import annotations

import numpy as np
import pytest

from repcap.errors import InputError
from repcap.laws.fitting.data import PackingTable, optimized_packing
from repcap.laws.fitting.fit import fit
from repcap.laws.fitting.holdout import folds_of, held_out


def table(copies, noise=0.0):
    """Twelve sizes with `copies` random starts each."""
    rng = np.random.default_rng(5)
    k = np.array([20, 30, 50, 80] * 3, dtype=float)
    d = np.repeat([8.0, 12.0, 16.0], 4)
    epsilon = np.sqrt(0.8 * np.log(k / d) / d) * np.exp(rng.normal(size=12) * 0.05)
    rows = np.tile(np.arange(12), copies)
    return PackingTable(k[rows], d[rows], epsilon[rows] * np.exp(noise * rng.normal(size=rows.size)))


def test_sizes_are_the_distinct_pairs_in_order():
    sizes = table(3).sizes()
    assert [rows.tolist() for rows in sizes] == [[i, i + 12, i + 24] for i in range(12)]
    assert [rows.tolist() for rows in optimized_packing().sizes()] == [[i] for i in range(166)]


def test_starts_of_one_size_are_never_on_both_sides_of_a_fold():
    cells = table(3)
    masks = list(folds_of(cells, "cells", 5, 1))
    assert (np.sum(masks, axis=0) == 1).all()
    for mask in masks:
        inside = {(k, d) for k, d in zip(cells.k[mask], cells.d[mask], strict=True)}
        outside = {(k, d) for k, d in zip(cells.k[~mask], cells.d[~mask], strict=True)}
        assert not inside & outside
    with pytest.raises(InputError, match="number of cells, 12"):
        list(folds_of(cells, "cells", 13, 1))


def test_exact_copies_change_neither_intervals_nor_held_out_errors():
    """Copying every row adds no information: interval and held-out error must stay as they are."""
    one, three = table(1), table(3)
    interval, tripled = (fit(cells, "ratio", bootstrap=200, seed=2).ci["C"] for cells in (one, three))
    assert tripled == pytest.approx(interval, rel=1e-9)
    assert held_out(three, "ratio").score == pytest.approx(held_out(one, "ratio").score, rel=1e-9)
