"""Sweeps: which cells, each once, resumable, saved as asked, and what the laws read from them."""

from __future__ import annotations

import collections
import itertools
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest

from killing import kill_at_random
from repcap.errors import InputError
from repcap.jobs import record
from repcap.jobs.store import Store
from repcap.laws.limits.bounds import coherence_lower_bound
from repcap.options import defaults
from repcap.packing import pack
from repcap.studies.packings import packings
from repcap.verbs.sweep.study import SMALL_K, Cell, grid, named_grid, read_cells, sweep

TESTS = Path(__file__).parents[2]


@pytest.fixture
def store(tmp_path):
    return tmp_path / "cells.sqlite"


def results(store):
    with Store(store, "read") as opened:
        return list(opened.records("pack"))


def write(tmp_path, text):
    path = tmp_path / "cells.yaml"
    path.write_text(text)
    return path


def test_known_optima_and_bounds(store):
    cells = [Cell(6, 3, 0), Cell(6, 3, 1), Cell(40, 8)]
    batch = sweep(cells, store, engine="inline", steps=400, restarts=2)
    assert (batch.done, batch.complete) == (3, True)
    held = {(r.record["k"], r.record["d"], r.record["seed"]): r.record for r in results(store)}
    # The six diagonals of the icosahedron: coherence 1/sqrt(5).
    for seed in range(2):
        assert held[6, 3, seed]["coherence"] == pytest.approx(1 / math.sqrt(5), abs=1e-4)
    assert held[40, 8, 0]["coherence"] >= coherence_lower_bound(40, 8).value
    for item in results(store):
        assert set(item.record) <= set(record.KINDS["pack"])
        assert set(item.provenance) <= set(record.PROVENANCE)
        assert item.record["options"]["steps"] == 400
        assert item.provenance["options"] == {"restarts": 2}


def test_second_run_does_nothing_and_new_options_are_new_cells(store):
    cells = grid([12, 20], [4, 8])
    assert sweep(cells, store, engine="inline", steps=20).done == 4
    assert sweep(cells, store, engine="inline", steps=20).skipped == 4
    assert sweep(cells, store, engine="inline", steps=21).done == 4
    assert sweep([*cells, *cells, Cell(20, 8, 1)], store, engine="inline", steps=20).done == 1
    assert sweep(cells, store, engine="inline", steps=20, refresh=True).done == 4
    assert len(results(store)) == 9


def test_an_option_at_its_default_is_the_same_cell_written_out_or_not(store):
    differ = {"constructions": False, "restarts": 1}
    shared = set(defaults(pack)) - {"seed"}
    assert {name: defaults(sweep)[name] for name in shared} == {
        name: {**defaults(pack), **differ}[name] for name in shared
    }
    assert sweep([Cell(12, 4)], store, engine="inline").done == 1
    for written in ({"steps": 400}, {"symmetry": "auto", "restarts": 1}, {"constructions": False}):
        assert sweep([Cell(12, 4)], store, engine="inline", **written).skipped == 1


def test_same_seed_same_numbers_through_processes(store, tmp_path):
    cells = [Cell(30, 6, seed) for seed in range(2)]
    sweep(cells, store, engine="inline", steps=30)
    sweep(cells, tmp_path / "other.sqlite", engine="local:2", steps=30)
    one, other = ({r.key: r.record["coherence"] for r in results(path)} for path in (store, tmp_path / "other.sqlite"))
    assert set(one) == set(other)
    for key in one:
        assert one[key] == pytest.approx(other[key], abs=1e-5)


def test_the_laws_read_the_store(store):
    sweep(grid([20, 40], [5, 10], seeds=2), store, engine="inline", steps=20)
    table = packings(store)
    expected = sorted((r.record["k"], r.record["d"], r.record["coherence"]) for r in results(store))
    assert sorted(zip(table.k, table.d, table.epsilon, strict=True)) == expected
    assert len(table) == 8


def test_vectors_are_saved_where_asked(store, tmp_path):
    from safetensors.torch import load_file

    batch = sweep([Cell(10, 4), Cell(12, 4)], store, engine="inline", steps=10, save_vectors=tmp_path / "v" / "w")
    assert batch.complete
    for item in results(store):
        (vectors,) = load_file(item.record["path"]).values()
        assert vectors.shape == (item.record["k"], 4)
        cosines = (vectors.double() @ vectors.double().T).fill_diagonal_(0.0).abs()
        assert cosines.max().item() == pytest.approx(item.record["coherence"], abs=1e-6)


def test_failing_cells_are_named(store):
    batch = sweep([Cell(10, 4), Cell(12, 4)], store, engine="inline", steps=10, init="no/such/file.safetensors")
    assert batch.done == 0
    assert {failure.label for failure in batch.failures} == {"10 lines in R^4, seed 0", "12 lines in R^4, seed 0"}


def test_largest_cells_come_first(store, tmp_path):
    sweep([Cell(8, 4), Cell(40, 4), Cell(20, 4)], store, engine="inline", steps=5)
    seen = [r.record["k"] for r in results(store)]
    assert seen == [40, 20, 8]


# Which cells


def test_published_grid_is_the_published_cells_above_d():
    from repcap.laws.fitting.data import optimized_packing

    table = optimized_packing()
    cells = named_grid("published")
    assert len(cells) == 160
    pairs = {(int(k), int(d)) for k, d in zip(table.k, table.d, strict=True)}
    assert {(cell.k, cell.d) for cell in cells} == {pair for pair in pairs if pair[0] > pair[1]}
    assert len(named_grid("published", 3)) == 480


def test_small_grid():
    cells = named_grid("small")
    assert len(cells) == len(set(cells))
    assert all(cell.d < cell.k <= SMALL_K for cell in cells)
    assert {cell.seed for cell in cells} == {0, 1}
    assert max(cell.k for cell in cells) == 2048
    assert Cell(24, 16, 0) in cells  # ratio 1.5
    with pytest.raises(InputError, match="unknown grid"):
        named_grid("large")


def test_grid_leaves_out_k_up_to_d():
    assert grid([4, 8, 9], [4, 8], 2) == [
        Cell(k, d, s) for (k, d), s in itertools.product([(8, 4), (9, 4), (9, 8)], (0, 1))
    ]
    with pytest.raises(InputError):
        grid([4], [2], 0)


def test_yaml(tmp_path):
    text = """
cells:
  - {k: 10, d: 4}
  - {k: 10, d: 4, seed: 7}
grid: {ratio: [1.5, 2], d: [4, 8], seeds: 2}
options: {steps: 50, restarts: 2}
"""
    cells, options = read_cells(write(tmp_path, text))
    assert options == {"steps": 50, "restarts": 2}
    assert cells[:2] == [Cell(10, 4), Cell(10, 4, 7)]
    assert cells[2:] == [Cell(k, d, s) for k, d in ((6, 4), (8, 4), (12, 8), (16, 8)) for s in (0, 1)]
    cells, _ = read_cells(write(tmp_path, "grid: {k: [3, 9], d: [4]}"))
    assert cells == [Cell(9, 4)]
    assert len(read_cells(write(tmp_path, "grid: published"))[0]) == 160


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "expected the keys"),
        ("[1, 2]", "expected the keys"),
        ("cellz: []", "expected the keys"),
        ("cells: 3", "must be a list"),
        ("cells: [{k: 3}]", "cell 1: expected"),
        ("cells: [{k: 3, d: 2, e: 1}]", "cell 1: expected"),
        ("cells: [{k: 3, d: 2}, {k: 1, d: 2}]", "cell 2: k = 1, d = 2, seed = 0 is no cell"),
        ("cells: [{k: 3.5, d: 2}]", "is no cell"),
        ("cells: [{k: 3, d: 2, seed: -1}]", "is no cell"),
        ("grid: huge", "unknown grid"),
        ("grid: {d: [4]}", "one of k and ratio"),
        ("grid: {d: [4], k: [9], ratio: [2]}", "one of k and ratio"),
        ("grid: {d: [4], k: [9], seeds: 0}", "seeds must be"),
        ("grid: {d: [x], k: [9]}", "is no cell"),
        ("grid: {d: [x], ratio: [9]}", "must be numbers"),
        ("grid: {d: 4, k: [9]}", "d must be a list"),
        ("grid: {d: [4], k: [9], zeal: 1}", "grid knows"),
        ("{grid: small, options: {step: 3}}", "unknown option step"),
        ("{grid: small, options: {steps: lots}}", "cells.yaml: steps = lots: give a whole number"),
        ("{grid: small, options: [1]}", "options must be"),
        ("cells: [", "no valid YAML"),
    ],
)
def test_bad_yaml(tmp_path, text, words):
    with pytest.raises(InputError, match=words):
        read_cells(write(tmp_path, text))


def test_nothing_to_pack(store, tmp_path):
    with pytest.raises(InputError, match="no cells"):
        sweep(grid([3], [4]), store)
    with pytest.raises(InputError, match="is no cell"):
        sweep([Cell(1, 4)], store)
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="cannot make"):
        sweep([Cell(9, 4)], store, save_vectors=tmp_path / "file")
    assert not store.exists()


DRIVER = """
import sys
sys.path[:0] = [{tests!r}]
import survey_jobs
from repcap.verbs.sweep import study as sweep
sweep.pack_unit = survey_jobs.logged_pack
sweep.sweep(sweep.grid(range(20, 40), [6, 7], 3), {store!r}, engine="local:2", steps=15)
"""


@pytest.mark.slow
@pytest.mark.timeout(900)  # four starts of two workers that import torch
def test_killed_sweep_loses_only_the_cells_in_flight(tmp_path, store):
    script = tmp_path / "driver.py"
    script.write_text(DRIVER.format(tests=str(TESTS), store=str(store)))
    log = tmp_path / "log"
    environment = {**os.environ, "SURVEY_LOG": str(log), "OMP_NUM_THREADS": "1"}
    count = kill_at_random(script, store, environment, times=3, most=25, seed=3)
    assert count < 120, "the last kill came too late to mean anything"
    subprocess.run([sys.executable, script], env=environment, check=True)
    cells = collections.Counter((r.record["k"], r.record["d"], r.record["seed"]) for r in results(store))
    assert cells == dict.fromkeys(itertools.product(range(20, 40), (6, 7), range(3)), 1)
    with Store(store, "read") as opened:
        opened.check()
    starts = sum(line.startswith("start") for line in log.read_text().splitlines())
    # Two workers: at each kill two cells in hand, and one more packed but not yet stored.
    assert 120 <= starts <= 120 + 3 * 3
