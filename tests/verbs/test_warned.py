"""What is to be known of a source (a stray file, a config that lies) is said by every verb that reads it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

EMBED, HEAD = "model.embed_tokens.weight", "lm_head.weight"
SAID = "the config says tie_word_embeddings = false, but there is no unembedding in the source: taken as tied"


@pytest.fixture
def here(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("step1", "step2"):
        (tmp_path / name).mkdir()
        rows = torch.randn(200, 8, generator=torch.Generator().manual_seed(len(name)))
        save_file({EMBED: rows}, tmp_path / name / "model.safetensors")
        (tmp_path / name / "config.json").write_text('{"tie_word_embeddings": false}')
    save_file({"W_dec": torch.randn(20, 8), "b_enc": torch.zeros(20)}, tmp_path / "sae.safetensors")
    (tmp_path / "list.txt").write_text("step1\nstep2\n")
    return tmp_path


ONE = [
    ("pairs", "step1"),
    ("neighbours", "step1", "#3"),
    ("readout", "step1"),
    ("tokens", "step1"),
    ("measure", "step1"),
]


@pytest.mark.parametrize("call", ONE, ids=lambda call: call[0])
def test_one_source(call, here, repcap) -> None:
    if call[0] == "neighbours":
        call = ("neighbours", "step1", "--token", "#3")
    assert f"Note: {SAID}." in " ".join(repcap(*call).out.split())
    assert repcap(*call, "--json").json["warnings"] == [SAID]


def test_two_sources_are_told_apart(here, repcap) -> None:
    save_file({EMBED: torch.randn(200, 8)}, here / "step2" / "model.safetensors")
    assert repcap("compare", "step1", "step2", "--json").json["warnings"] == [
        f"{x}: {SAID}" for x in ("step1", "step2")
    ]
    out = " ".join(repcap("compare", "step1", "step2").out.split())
    assert f"Note: step1: {SAID}." in out


def test_many_sources(here, repcap) -> None:
    out = " ".join(repcap("measure", "step1", "step2").out.split())
    assert f"Note: step1: {SAID}. Note: step2: {SAID}." in out
    assert f"step1 and 1 more: {SAID}" in repcap("track", "step*", "--json").json["notes"]
    assert f"warning: step2: {SAID}" in " ".join(repcap("survey", "list.txt", "--engine", "inline").err.split())
    notes = repcap("dictionary", "sae.safetensors", "--against", "step1", "--json").json["dictionary_notes"]
    assert f"step1: {SAID}" in notes


def test_nothing_is_said_of_what_is_right(here, repcap) -> None:
    (here / "step1" / "config.json").unlink()
    assert "warnings" not in repcap("pairs", "step1", "--json").json


def test_both_of_a_head_alone_is_one(here, repcap) -> None:
    save_file({HEAD: torch.randn(40, 8)}, here / "head.safetensors")
    found = repcap("measure", "head.safetensors", "--matrix", "both", "--json").json
    assert (found["matrix"], len(found["warnings"])) == (HEAD, 1)


def test_a_figure_is_written_though_the_reader_went_away(here, repcap, monkeypatch) -> None:
    from repcap.verbs.pairs import show

    def gone(result):
        raise BrokenPipeError

    monkeypatch.setattr(show, "parts", gone)
    repcap("pairs", "step1", "--plot", "y.png")
    assert (here / "y.png").is_file()


def test_a_name_that_is_no_utf8_is_drawn(here, repcap) -> None:
    import os

    name = os.fsdecode(b"m\xff.safetensors")
    (here / "step1" / "model.safetensors").rename(name)
    assert repcap("pairs", name, "--plot", "y.svg").code == 0
    assert "\\udcff" in (here / "y.svg").read_text()
    assert json.loads(repcap("pairs", name, "--json").out)["source"] == name
