"""Numbers that no one should give: one clear line, at once."""

from __future__ import annotations

import numpy as np
import pytest

HUGE = "10^400"


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (("capacity", "--d", "2^100", "--eps", "0.1"), "up to d = 10^9"),
        (("capacity", "--d", "1e12", "--eps", "0.9"), "up to d = 10^9"),
        (("capacity", "--d", HUGE, "--eps", "0.1"), "is needed"),
        (("capacity", "--d", "64", "--eps", HUGE), "give a finite number"),
        (("capacity", "--d", "64", "--eps", f"0.1..{HUGE}"), "--eps: 10^400 is too large"),
        (("capacity", "--d", "64", "--eps", f"0.1..0.2/{HUGE}"), "--eps: 10^400 is too large"),
        (("capacity", "--d", "64", "--eps", "0.1", "--vocab", HUGE), "vocab = 1000"),
        (("design", "--features", HUGE, "--eps", "0.1"), "--features: 10^400 is too large"),
        (("design", "--features", "1e7", "--eps", HUGE), "give a finite number"),
        (("design", "--features", "1e7", "--eps", "0.1", "--params", HUGE), "--params: 10^400 is too large"),
        (("pairs", "x.npy", "--top", "1000000"), "--top"),
        (("neighbours", "x.npy", "--top", "1000000"), "--top"),
    ],
)
def test_numbers_beyond_the_domain(repcap, argv, words):
    failed = repcap(*argv)
    assert failed.code == 2
    assert failed.out == ""
    assert failed.err.count("\n") == 1
    assert words in failed.err


def test_bounds_answer_up_to_the_limit(repcap):
    found = repcap("capacity", "--d", "10^9", "--eps", "0.01", "--json", "-q").json
    assert found["bracket"]["explicit"]["log10_k"] < found["bracket"]["upper"]["log10_k"]


def test_a_table_that_carries_no_law_is_one_line(repcap, tmp_path):
    table = tmp_path / "one.csv"
    table.write_text("k,d,epsilon\n10,5,0.5\n")
    failed = repcap("fit", table)
    assert failed.code == 2
    assert failed.err.count("\n") == 1
    assert "no law can be fitted" in failed.err


@pytest.mark.parametrize("z", ["0", "2"])
def test_no_more_than_all_pairs_are_beyond_a_negative_epsilon(repcap, tmp_path, z):
    np.save(tmp_path / "opposed.npy", np.array([[1.0, 0.0], [-1.0, 0.0], [0.1, 1.0]]))
    found = repcap("pairs", tmp_path / "opposed.npy", "--z", z, "--json").json
    assert all(0.0 <= tail["both"] <= 1.0 for tail in found["tail"].values())


def test_z_of_neighbours_is_checked(repcap, tmp_path):
    np.save(tmp_path / "x.npy", np.eye(5))
    failed = repcap("neighbours", tmp_path / "x.npy", "--z", "nan")
    assert failed.code == 2
    assert failed.err == "repcap: error: --z nan: give a finite number\n"
