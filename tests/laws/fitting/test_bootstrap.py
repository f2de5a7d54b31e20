"""What the bootstrap draws, how wide its intervals are, and what a fit warns of."""

from __future__ import annotations

import numpy as np
import pytest

from repcap.laws import ratio
from repcap.laws.fitting.data import PackingTable, optimized_packing
from repcap.laws.fitting.fit import fit


def percentiles(table: PackingTable, groups: list[np.ndarray], draws: int, seed: int) -> tuple[float, float]:
    """95 % interval of C of `ratio` by its closed form, groups drawn with replacement; independent of the library."""
    rng = np.random.default_rng(seed)
    shape = np.sqrt(np.log(table.k / table.d) / table.d)
    found = []
    for _ in range(draws):
        rows = np.concatenate([groups[i] for i in rng.integers(0, len(groups), len(groups))])
        found.append((shape[rows] @ table.epsilon[rows] / (shape[rows] @ shape[rows])) ** 2)
    return tuple(np.quantile(found, [0.025, 0.975]))


def test_whole_d_are_resampled_and_the_intervals_are_wider_for_it():
    table = optimized_packing()
    table = table.take(~table.degenerate)
    by_d = percentiles(table, [np.flatnonzero(table.d == d) for d in np.unique(table.d)], 4000, 7)
    by_cell = percentiles(table, [np.array([row]) for row in range(len(table))], 4000, 7)
    found = fit(table, "ratio", bootstrap=2000)
    assert found.resampled == "d"
    low, high = found.ci["C"]
    assert high - low == pytest.approx(by_d[1] - by_d[0], rel=0.08)
    assert 1.5 < (high - low) / (by_cell[1] - by_cell[0]) < 4.3


def test_the_interval_by_d_covers_where_each_d_has_an_error_of_its_own():
    """40 tables of 12 d with 8 cells each; the cells of one d share half of their error."""
    covered = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        d = np.repeat(2.0 ** np.arange(5, 17), 8)
        k = d * np.tile(2.0 ** np.arange(1, 9), 12)
        noise = np.repeat(0.03 * rng.standard_normal(12), 8) + 0.03 * rng.standard_normal(96)
        low, high = fit((k, d, ratio.epsilon(k, d, C=1.0) * np.exp(noise)), "ratio", on="log", bootstrap=200).ci["C"]
        covered += low < 1.0 < high
    assert covered >= 32


def test_few_d_are_resampled_by_size_and_it_says_so():
    k, d = np.array([100.0, 200, 300, 400, 500]), np.full(5, 32.0)
    assert fit((k, d, ratio.epsilon(k, d)), "ratio", bootstrap=5).resampled == "sizes"
    assert fit((k, d, ratio.epsilon(k, d)), "ratio").resampled == ""


def test_few_sizes_for_the_parameters_are_warned_about():
    k, d = np.array([40.0, 80, 160, 320, 640, 1280, 2560, 5120]), np.full(8, 32.0)
    found = fit((k, d, ratio.epsilon(k, d) * (1 + 0.01 * np.sin(k))), "full")
    assert found.warnings[0] == "4 parameters for 8 sizes (k, d): R² and errors say little"
    copies = fit((np.tile(k[:4], 2), np.tile(d[:4], 2), np.tile(ratio.epsilon(k, d)[:4], 2)), "full")
    assert copies.warnings[0] == "4 parameters for 4 sizes (k, d): the fit is exact whatever the law"
    assert fit("optimized", "full").warnings == ()
    assert tuple(found.to_dict()["warnings"]) == found.warnings


def test_a_parameter_at_the_border_of_the_search_is_named(repcap, tmp_path):
    """epsilon that does not depend on k fits perfectly, R² = 1.0000, with b = 1e-6."""
    d = np.repeat([32.0, 64, 128, 256, 512, 1024], 3)
    k = d * np.tile([4.0, 16, 64], 6)
    found = fit((k, d, 1 / np.sqrt(d)), "full")
    assert found.r2 > 0.9999
    assert found.params["b"] < 1.02e-6
    assert found.warnings == ("b stands at the border of the search: these cells do not determine the parameters",)
    cells = tmp_path / "cells.csv"
    cells.write_text("k,d,epsilon\n" + "".join(f"{a},{b},{b**-0.5}\n" for a, b in zip(k, d, strict=True)))
    shown = " ".join(repcap("fit", cells, "--law", "full", "--bootstrap", 5).out.split())
    assert "Warning, full: b stands at the border of the search" in shown
    assert "Intervals are of 5 draws of whole d" in shown
