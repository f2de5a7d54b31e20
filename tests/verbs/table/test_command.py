"""`repcap table`: ranges of d, what is printed, the file, the figure."""

from __future__ import annotations

import pytest

from repcap.console.values import numbers
from repcap.errors import InputError


def test_a_range_of_dimensions_is_every_one_of_them():
    assert numbers("2..16384", "--d", whole=True, every=True, most=10**6) == list(range(2, 16385))
    assert numbers("2..10:2,11", "--d", whole=True, every=True) == [2, 4, 6, 8, 10, 11]
    assert numbers("2..64x2", "--d", whole=True, every=True) == [2, 4, 8, 16, 32, 64]
    with pytest.raises(InputError, match="10000 at most"):
        numbers("2..16384", "--d", whole=True, every=True)


def test_what_is_printed(repcap, tmp_path):
    done = repcap("table", "--d", "2..50", "--epsilon", "0.2", "--out", tmp_path / "a.csv")
    assert done.code == 0
    assert "23  0.2       276" in done.out
    assert "276=" in done.out
    assert "... and 9 more rows" in done.out
    assert "49 rows, 49 computed now" in done.err
    wide = repcap("table", "--d", "2..16384x4", "--eps", "0.05,0.7,0.99")
    assert max(len(line) for line in (done.out + wide.out).splitlines()) <= 80
    record = repcap("table", "--d", "2..50", "--eps", "0.2", "--out", tmp_path / "a.csv", "--json").json
    assert (record["kind"], record["asked"], record["computed"], len(record["rows"])) == ("table", "epsilon", 0, 49)
    assert record["rows"][21]["upper"]["exact"]
    wide = repcap("table", "--d", "8,23,64,16384", "--k", "100,1e6")
    assert max(len(line) for line in wide.out.splitlines()) <= 80
    assert (
        repcap("table", "--d", "3").err.strip().endswith("give one of --eps and --k: what each row is for, beside --d")
    )


@pytest.mark.parametrize("asked", [("--eps", "0.1,0.3"), ("--k", "100,1000")])
def test_figure(repcap, tmp_path, asked):
    pytest.importorskip("matplotlib")
    done = repcap("table", "--d", "2..64x2", *asked, "--plot", tmp_path / "a.svg")
    assert done.code == 0
    assert "proven limit" in (tmp_path / "a.svg").read_text()
