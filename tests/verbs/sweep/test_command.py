"""`repcap sweep` as a user types it, and its figure."""

from __future__ import annotations

from pathlib import Path

import pytest

from repcap.jobs.store import Store
from repcap.verbs.sweep.figure import cells_of, chosen_dimensions

SMALL = ("sweep", "--k", "12,20", "--d", "4,8", "--steps", "15", "--engine", "inline")


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_cells_are_packed_once(repcap):
    first = repcap(*SMALL, "--seeds", "2")
    assert first.code == 0
    assert "8 done, 0 stored before, 0 failed" in first.err
    assert all(len(line) <= 80 for line in first.out.splitlines())
    again = repcap(*SMALL, "--seeds", "2", "--json")
    assert (again.json["done"], again.json["skipped"]) == (0, 8)
    with Store("repcap.sqlite", "read") as store:
        records = [item.record for item in store.records("pack")]
    assert all(r["coherence"] >= r["lower_bound"] - 1e-9 for r in records)
    assert all(r["steps"] == 15 for r in records)


def test_yaml_and_command_line_name_the_same_cells(repcap):
    Path("cells.yaml").write_text("grid: {k: [12, 20], d: [4, 8]}\noptions: {steps: 15}\n")
    assert repcap("sweep", "cells.yaml", "--engine", "inline", "--json").json["done"] == 4
    assert repcap(*SMALL, "--json").json["skipped"] == 4
    # The command line wins over the file.
    assert repcap("sweep", "cells.yaml", "--steps", "16", "--engine", "inline", "--json").json["done"] == 4


def test_symmetry_of_the_command_line_is_that_of_the_file(repcap):
    Path("cells.yaml").write_text("grid: {k: [12, 20], d: [4, 8]}\noptions: {steps: 15, symmetry: 4}\n")
    assert repcap(*SMALL, "--symmetry", "4", "--json").json["done"] == 4
    assert repcap("sweep", "cells.yaml", "--engine", "inline", "--json").json["skipped"] == 4
    with Store("repcap.sqlite", "read") as store:
        found = [(item.record["options"]["symmetry"], item.record["details"]) for item in store.records("pack")]
    assert [(asked, details["symmetry_order"]) for asked, details in found] == [(4, 4)] * 4
    assert repcap(*SMALL, "--symmetry", "1", "--json").json["done"] == 4
    indivisible = repcap(*SMALL, "--symmetry", "6", "--json")
    assert (indivisible.code, indivisible.json["done"], indivisible.json["failed"]) == (3, 2, 2)
    assert "needs k to be a multiple of it" in indivisible.json["failures"][0]["reason"]


def test_fit_and_figure_from_the_store(repcap, here):
    assert repcap(*SMALL, "--seeds", "3").code == 0
    fitted = repcap("fit", "repcap.sqlite", "--law", "ratio", "--bootstrap", "0", "--holdout", "none", "--json")
    assert fitted.code == 0
    got = repcap("sweep", "--report", "repcap.sqlite", "--out", "deep/figures", "--json")
    assert got.code == 0
    assert got.json["cells"] == 12
    files = [here / name for name in got.json["files"]]
    assert [file.suffix for file in files] == [".png", ".svg"]
    assert files[0].read_bytes().startswith(b"\x89PNG")
    text = files[1].read_text()
    for words in (
        "d = 4",
        "d = 8",
        "proven lower bound",
        "explicit constructions",
        "packed here",
        "ratio, fitted here",
    ):
        assert words in text


def test_what_the_figure_shows():
    records = [{"k": k, "d": d, "coherence": 0.5} for k, d in ((4, 8), (16, 8), (9, 8))] + [{"k": 9, "d": 2}]
    assert cells_of(records) == [(16, 8, 0.5), (9, 8, 0.5)]
    cells = [(100, d, 0.1) for d in range(2, 50)]
    chosen = chosen_dimensions(cells, 6)
    assert (len(chosen), chosen[0], chosen[-1]) == (6, 2, 49)
    assert chosen_dimensions(cells[:1]) == [2]


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        ([], "say which cells"),
        (["--grid", "small", "--k", "3", "--d", "2"], "say which cells"),
        (["--grid", "huge"], "unknown grid 'huge'"),
        (["--k", "3"], "--k and --d go together"),
        (["--k", "3,x", "--d", "2"], "--k 3,x: whole numbers"),
        (["--k", "3", "--d", "4"], "no cells to pack"),
        (["none.yaml"], "cannot read none.yaml"),
        (["none.yaml", "--seeds", "2"], "write seeds into"),
        (["--report", "none.sqlite"], "no result store"),
        (["--k", "9", "--d", "4", "--gpus-per-cell", "1.5"], "fraction below 1 or a whole number"),
        (["--k", "9", "--d", "4", "--engine", "local:0"], "unknown engine"),
        (["--k", "9", "--d", "4", "--engine", "cluster"], "unknown engine"),
        (["--k", "9", "--d", "4", "--retries", "-1"], "--retries -1: give at least 0"),
        (["--k", "9", "--d", "4", "--timeout", "0"], "--timeout 0.0: give above 0"),
        (
            ["--k", "9", "--d", "4", "--symmetry", "cubic"],
            "--symmetry cubic: give auto, 1 (none), or the order",
        ),
    ],
)
def test_bad_input_is_one_line(repcap, argv, words):
    got = repcap("sweep", *argv)
    assert got.code == 2
    assert words in got.err
    assert got.err.count("\n") == 1
    assert list(Path().iterdir()) == []


def test_ray_without_the_package_makes_no_store(repcap, monkeypatch):
    monkeypatch.setattr("repcap.jobs.engine.find_spec", lambda name: None)
    got = repcap("sweep", "--k", "9", "--d", "4", "--engine", "ray", "--save-vectors", "vectors")
    assert (got.code, got.err) == (
        2,
        "repcap: error: --engine ray needs an optional package: pip install 'repcap[ray]'\n",
    )
    assert list(Path().iterdir()) == []


def test_report_of_a_store_without_packings(repcap):
    repcap("survey", "--published", "--table-only")
    assert "holds no packings" in repcap("sweep", "--report", "repcap.sqlite").err
