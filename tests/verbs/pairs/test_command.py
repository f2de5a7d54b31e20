"""`repcap pairs` as a user sees it."""

from __future__ import annotations

import pytest
import torch
from safetensors.torch import save_file


@pytest.fixture
def checkpoint(tmp_path):
    path = tmp_path / "model.safetensors"
    save_file({"model.embed_tokens.weight": torch.randn(50, 8, generator=torch.Generator().manual_seed(0))}, path)
    return path


def test_text_fits_80_columns(repcap, checkpoint):
    shown = repcap("pairs", checkpoint, "--top", 3)
    assert shown.code == 0
    assert "all 1,225 pairs" in shown.out
    lines = [line for line in shown.out.splitlines() if str(checkpoint) not in line]
    assert max(len(line.rstrip()) for line in lines) <= 80
    assert "…" not in shown.out


def test_json(repcap, checkpoint):
    record = repcap("pairs", checkpoint, "--json").json
    assert record["pairs"] == 1225
    assert record["sampled"] is False
    assert len(record["largest"]) == 10


def test_sample_says_that_it_is_one(repcap, checkpoint):
    shown = repcap("pairs", checkpoint, "--sample", 500)
    assert "a sample of 500 pairs" in shown.out
    assert "95 % interval" in shown.out
    lines = [line for line in shown.out.splitlines() if str(checkpoint) not in line]
    assert max(len(line.rstrip()) for line in lines) <= 80
    record = repcap("pairs", checkpoint, "--sample", 500, "--json").json
    low, high = record["intervals"]["epsilon"]
    assert low < record["epsilon"] < high
    assert len(record["intervals"]["quantiles"]) == len(record["quantiles"])


@pytest.mark.parametrize("suffix", [".png", ".svg", ".pdf"])
def test_plot(repcap, checkpoint, tmp_path, suffix):
    path = tmp_path / f"pairs{suffix}"
    shown = repcap("pairs", checkpoint, "--plot", path)
    assert shown.code == 0
    assert path.stat().st_size > 1000


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--z", "-1"), "--z -1.0: give a finite z >= 0 (the default is 2)"),
        (("--exclude-ids", "x"), "'x' is no row number: write them as 0,5,100-199 or @FILE"),
        (
            ("--exclude-ids", "9-3"),
            "'9-3' is no range of rows: write the smaller number first, at most 50,000,000 rows",
        ),
        (("--sample", "1"), "--sample 1: give 2 or more pairs"),
        (("--engine", "cloud"), "unknown engine 'cloud': use local, local:N (N workers), ray, ray:ADDRESS or inline"),
        (("--plot", "x.bmp"), "cannot draw x.bmp: use a name that ends in .png, .svg or .pdf"),
    ],
)
def test_bad_options(repcap, checkpoint, options, message):
    failed = repcap("pairs", checkpoint, *options)
    assert (failed.code, failed.err) == (2, f"repcap: error: {message}\n")
