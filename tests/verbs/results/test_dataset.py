"""`results dataset`: a folder that the Hub's own reader takes, whole or not at all."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest
from huggingface_hub import DatasetCard

from repcap.jobs.store import Store, Stored
from repcap.verbs.results.dataset import _size


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with Store("repcap.sqlite") as opened:
        for key, name, epsilon in (("a", "one", 0.25), ("b", "two | <b>", None)):
            record = {"name": name, "source": f"/home/me/{name}", "dim": 64, "epsilon": epsilon, "repeats": [[1, 2]]}
            opened.put_all([Stored(key, key, "measure", record, {})])
        opened.put_all([Stored("c", "c", "pack", {"k": 6, "d": 3, "seed": 0, "coherence": 0.4}, {})])
    return opened.path


@pytest.mark.parametrize("form", ["jsonl", "csv", "parquet"])
def test_the_folder_is_what_the_hub_reads(store, repcap, form):
    done = repcap("results", "dataset", "made", "--format", form, "--title", "My: models", "--license", "mit")
    assert (done.code, done.out) == (0, "hf upload NAME/DATASET made --repo-type dataset\n")
    assert "2 results name files of this machine" in done.err
    assert {path.name for path in Path("made").iterdir()} == {"README.md", f"measure.{form}", f"pack.{form}"}
    assert not [path for path in Path().iterdir() if path.name.startswith(".made")]
    card = DatasetCard.load("made/README.md")
    assert (card.data.pretty_name, card.data.license, card.data.size_categories) == ("My: models", "mit", ["n<1K"])
    files = {config["config_name"]: config["data_files"] for config in card.data.configs}
    assert files == {"measure": f"measure.{form}", "pack": f"pack.{form}"}
    assert "two \\| &lt;b>" in card.text
    read = {"jsonl": lambda path: pd.read_json(path, lines=True), "csv": pd.read_csv, "parquet": pd.read_parquet}[form]
    frame = read(Path("made", f"measure.{form}"))
    assert list(frame["dim"]) == [64, 64]
    assert frame["epsilon"].tolist()[0] == 0.25
    assert frame["epsilon"].isna().tolist() == [False, True]
    assert json.loads(frame["repeats"][0]) == [[1, 2]]


def test_what_is_there_is_left_alone(store, repcap):
    Path("made").mkdir()
    assert repcap("results", "dataset", "made").code == 0
    again = repcap("results", "dataset", "made", "--format", "csv")
    assert (again.code, "not empty" in again.err) == (2, True)
    assert not Path("made/measure.csv").exists()
    for arguments, why in (
        (("new", "--format", "xml"), "jsonl, csv, parquet"),
        (("no/such", "--format", "csv"), "cannot write"),
        (("new", "--kind", "published"), "holds no results"),
    ):
        refused = repcap("results", "dataset", *arguments)
        assert (refused.code, why in refused.err) == (2, True)
    assert not Path("new").exists()


def test_the_words_for_sizes():
    assert [_size(n) for n in (1, 999, 1000, 45_000, 2_000_000)] == [
        "n<1K", "n<1K", "1K<n<10K", "10K<n<100K", "1M<n<10M",
    ]  # fmt: skip
