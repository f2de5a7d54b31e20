"""`repcap interference` as a user sees it."""

from __future__ import annotations

import pytest

SMALL = ("interference", "--d", 16, "--k", 64, "--active", "1..4x2", "--trials", 20, "--steps", 20)


def test_text_and_figure(repcap, tmp_path):
    path = tmp_path / "i.svg"
    shown = repcap(*SMALL, "--plot", path)
    assert shown.code == 0
    for word in ("random", "optimised", "constructed", "surely told apart"):
        assert word in shown.out
    assert max(len(line.rstrip()) for line in shown.out.splitlines()) <= 80
    assert "active features s" in path.read_text()


def test_json(repcap):
    record = repcap(*SMALL, "--method", "random", "--json").json
    assert [one["method"] for one in record["sets"]] == ["random"]
    assert record["active"] == [1, 2, 4]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "give k and d, or a file of vectors"),
        (("--d", 4, "--k", 8, "--active", "x"), "--active: 'x' is no number"),
        (("--vectors", "none.npy"), "no file none.npy"),
        (("--d", 4, "--k", 8, "--values", "x"), "unknown values 'x'"),
    ],
)
def test_bad_options(repcap, options, message):
    failed = repcap("interference", *options)
    assert failed.code == 2
    assert message in failed.err
    assert failed.err.count("\n") == 1
