"""`measure --card`: a section that a card on the Hub takes, with the record's own numbers and a command that works."""

from __future__ import annotations

import shlex
from pathlib import Path

import numpy as np
import pytest
from huggingface_hub import ModelCard

import repcap as library
from repcap.verbs.measure.card import card, command_line


@pytest.fixture
def vectors(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("odd |name|.npy", np.random.default_rng(0).standard_normal((300, 16)).astype(np.float32) + 0.3)
    return "odd |name|.npy"


def test_the_section_has_the_numbers_and_the_command_gives_them_again(vectors, repcap):
    done = repcap("measure", vectors, "--exclude-ids", "0-3,9", "--centre", "--z", "2.5", "--card", "-")
    assert done.code == 0
    found = library.measure(vectors, exclude_ids=[0, 1, 2, 3, 9], centre=True, z=2.5)
    for number in (f"{found.epsilon:.4f}", f"{found.epsilon_ratio:.2f}", found.tensor_sha256 or "", found.version):
        assert number in done.out
    (line,) = (line for line in done.out.splitlines() if line.startswith("repcap measure "))
    again = repcap(*shlex.split(line)[1:], "--json").json
    assert again["epsilon"] == found.epsilon
    assert again["options"] == found.options
    assert "odd |name|" in line
    read = ModelCard(f"---\nlicense: mit\n---\n# m\n\n{done.out}")
    assert read.data.license == "mit"
    assert done.out.startswith("## Geometry of the vectors\n")


def test_names_cannot_leave_their_cell(vectors):
    text = card([library.measure(np.eye(4, dtype=np.float32) + 0.1)])
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert rows
    assert all(line.count("|") == 3 for line in rows)
    found = library.measure(vectors)
    assert shlex.split(command_line(found)) == ["repcap", "measure", vectors]


def test_into_a_file_and_what_cannot_be(vectors, repcap):
    done = repcap("measure", vectors, vectors, "--card", "card.md")
    assert (done.code, "wrote card.md" in done.err) == (0, True)
    assert Path("card.md").read_text().count("| epsilon |") == 2
    refused = repcap("measure", vectors, "--json", "--card", "-")
    assert (refused.code, "standard output" in refused.err) == (2, True)
    assert repcap("measure", vectors, "--card", "no/such/card.md").code == 2
