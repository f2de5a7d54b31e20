"""`repcap design` as a user sees it."""

from __future__ import annotations

import pytest

ARGUMENTS = ("design", "--features", "1e7", "--eps", "0.06..0.09/3", "--vocab", "128256", "--params", "8e9")


def test_text(repcap):
    shown = repcap(*ARGUMENTS)
    assert shown.code == 0
    assert "Llama 3 8B" in shown.out
    assert "What is heuristic here" in shown.out
    assert "the laws extrapolate beyond" in " ".join(shown.err.split())
    assert max(len(line.rstrip()) for line in shown.out.splitlines()) <= 80


def test_json(repcap):
    record = repcap(*ARGUMENTS, "--tied", "--json").json
    assert [row["epsilon"] for row in record["rows"]] == pytest.approx([0.06, 0.075, 0.09])
    assert record["rows"][0]["k"] == 1e7 + 128256


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--features", "many", "--eps", "0.1"), "--features: 'many' is no number"),
        (("--features", "1e6", "--eps", "0.1", "--tied"), "--tied says how a vocabulary counts: give --vocab too"),
        (("--features", "1e6", "--eps", "2"), "2"),
        (("--features", "1e6"), "Missing option '--eps'"),
    ],
)
def test_bad_options(repcap, options, message):
    failed = repcap("design", *options)
    assert failed.code == 2
    assert message in failed.err
    assert failed.err.count("\n") == 1
