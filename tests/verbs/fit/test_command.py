"""`repcap fit` on the command line."""

from __future__ import annotations

import pytest


def test_table_fits_80_columns_and_says_what_was_left_out(repcap):
    done = repcap("fit", "optimized", "--bootstrap", 20)
    assert done.code == 0, done.err
    assert "6 cells with k <= d left out" in done.out
    assert "Least held-out error (10 folds of cells, RMSE of epsilon): full" in done.out
    assert "k 2000 to 32000" in done.out
    assert all(len(line) <= 80 for line in done.out.splitlines())


def test_one_law_gives_its_record(repcap):
    record = repcap("fit", "optimized", "--law", "ratio", "--include-degenerate", "--bootstrap", 0, "--json").json
    assert record["law"] == "ratio"
    assert round(record["params"]["C"], 3) == 1.293
    assert (record["n"], record["excluded"], record["degenerate_included"]) == (166, 0, 6)
    assert record["held_out"]["n"] == 166


def test_every_printed_number_is_in_the_record(repcap):
    record = repcap("fit", "optimized", "--bootstrap", 20, "--holdout", "d", "--json").json
    assert [found["law"] for found in record["fits"]] == ["jl", "ratio", "full", "welch-power"]
    assert record["best"] == "full"
    assert {"d", "n", "bias", "rmse", "mape", "max_error"} == set(record["fits"][0]["by_d"][0])


def test_csv_and_plot(repcap, tmp_path):
    file = tmp_path / "cells.csv"
    cells = [(k, d) for d in (32, 64) for k in (100, 200, 400)]
    rows = [f"{k},{d},{(0.8 / d) ** 0.5 * (k / d) ** 0.1}" for k, d in cells]
    file.write_text("\n".join(["k,d,epsilon", *rows]))
    done = repcap("fit", file, "--law", "jl,ratio", "--bootstrap", 0, "--plot", tmp_path / "fit.svg")
    assert done.code == 0, done.err
    assert "ratio" in (tmp_path / "fit.svg").read_text()


def test_degenerate_cells_are_warned_of(repcap):
    done = repcap("fit", "optimized", "--law", "jl", "--bootstrap", 0, "--include-degenerate", "--holdout", "none")
    assert "6 cells with k <= d are in" in done.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nowhere.csv",), "no file nowhere.csv"),
        (("optimized", "--law", "nope"), "no law 'nope'"),
        (("optimized", "--on", "cube"), "--on cube: use epsilon, log"),
        (("optimized", "--holdout", "k"), "--holdout k: use cells, d, none"),
        (("optimized", "--plot", "fit.bmp", "--bootstrap", "0"), "ends in .png"),
        (("optimized", "--plot", "no/such/directory/fit.png", "--bootstrap", "0"), "directory that exists"),
    ],
)
def test_one_clear_line(repcap, arguments, message):
    done = repcap("fit", *arguments)
    assert done.code == 2
    assert message in done.err
    assert done.err.count("\n") == 1


def test_a_small_table_loses_what_it_cannot_carry(repcap, tmp_path):
    file = tmp_path / "cells.csv"
    file.write_text("k,d,epsilon\n100,32,0.3\n200,32,0.35\n400,32,0.4\n")
    done = repcap("fit", file, "--bootstrap", 0, "--json")
    assert done.code == 0, done.err
    assert [found["law"] for found in done.json["fits"]] == ["jl", "ratio", "welch-power"]
    assert "full left out" in done.err
    assert "no held-out comparison" in done.err
