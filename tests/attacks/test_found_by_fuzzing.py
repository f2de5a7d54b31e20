"""What damaged files once ended in a traceback: each is one line and exit code 2 now."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import struct

import pytest
import torch
from safetensors.torch import save_file

from repcap.errors import InputError, StoreError
from repcap.jobs.store import Store
from repcap.packing.search.resume import Checkpoint, SearchState

EMBED = "model.embed_tokens.weight"
RECORD = {"name": "A", "source": "hf://a/b", "matrix": "embedding", "dim": 64, "epsilon": 0.2, "count": 9, "z": 2}


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def refused(outcome, message: str) -> None:
    assert (outcome.code, outcome.out, outcome.err) == (2, "", f"repcap: error: {message}\n")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"cells: [{{k: 8, d: 4}}]\noptions: {{restarts: {'9' * 5000}}}", f"'{'9' * 40}' is no number that is read"),
        ("cells: " + "[" * 5000, "nested too deeply"),
        ("grid: {k: [2001-99-99], d: [!!float x], seeds: ~}", "'x' is no number that is read"),
        ("grid: {d: [4], k: [!!bool x]}", "the tag !!bool is not read"),
    ],
)
def test_cells(text, said, here, repcap) -> None:
    (here / "c.yaml").write_text(text)
    line = 2 if text.startswith("cells: [{") else 1
    refused(repcap("sweep", "c.yaml"), f"c.yaml is no valid YAML: line {line}: {said}")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("!!int x: 0b2\nmodels: [a]", "line 1: 'x' is no number that is read"),
        ("- null\n- source: !!bool x", "line 2: the tag !!bool is not read"),
        ("a: &a [? [a]]\nmodels: [*a, *a]", "line 1: a key must be text"),
        ("- 1\n- rows: !!omap [a: 1]", "line 2: the tag !!omap is not read"),
    ],
)
def test_lists_of_models(text, said, here, repcap) -> None:
    (here / "m.yaml").write_text(text)
    refused(repcap("survey", "m.yaml"), f"m.yaml is no valid YAML: {said}")


def test_a_shard_whose_name_no_file_has(here, repcap) -> None:
    save_file({EMBED: torch.ones(4, 2)}, "a.safetensors")
    (here / "model.safetensors.index.json").write_text('{"weight_map": {"' + EMBED + '": "\\ud800.safetensors"}}')
    refused(
        repcap("measure", "."),
        f"model.safetensors.index.json places tensor '{EMBED}' in '\\ud800.safetensors', which is no name of a file: "
        "fetch it again",
    )


def test_records(here, repcap) -> None:
    (here / "r.json").write_text(json.dumps({**RECORD, "source": "\ud800"}))
    assert repcap("report", "r.json", "--out", "page").code == 0
    (here / "r.json").write_text(json.dumps({**RECORD, "matrix": ["x"]}))
    refused(repcap("report", "r.json", "--out", "page"), "record 1 (A) is malformed: its matrix is no text")
    (here / "r.json").write_text(json.dumps({**RECORD, "epsilon_null": 1e-320}))
    refused(repcap("report", "r.json", "--out", "page"), "record 1 (A) is malformed: its epsilon_ratio is not finite")
    (here / "r.json").write_text(json.dumps({**RECORD, "epsilon": "NaN"}))
    refused(repcap("report", "r.json", "--out", "page"), "record 1 (A) is malformed: its epsilon is not finite")


def test_a_table_of_more_vectors_than_there_can_be(here, repcap) -> None:
    """Numbers that are finite, and no count of anything: a law was fitted to them."""
    (here / "c.csv").write_text("k,d,eps\n" + "64,8,0.5\n" * 5 + "1e308,1000,0.67\n")
    said = "k = 1e+308 in row 6 of the data must be at least 2, and a number of vectors (2^53 at most)"
    refused(repcap("fit", "c.csv"), f"c.csv: {said}")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("UPDATE results SET record = X'5b'", "a row has no record"),
        ("UPDATE results SET key = 5", None),
        ("UPDATE results SET created = X'00'", "a row has no created"),
        ("ALTER TABLE failures RENAME COLUMN attempts TO attemptw", "a row has no attempts"),
    ],
)
def test_stores(change, said, here) -> None:
    with Store(here / "s.sqlite") as store:
        store.put("k", "measure", RECORD)
        store.put_failure("f", "measure", "l", "E", "r")
    with contextlib.closing(sqlite3.connect(here / "s.sqlite")) as db:
        db.execute(change)
        db.commit()
    with Store(here / "s.sqlite", mode="read") as store:
        if said is None:  # text affinity makes a text of the number
            assert [item.key for item in store.records()] == ["5"]
            return
        with pytest.raises(StoreError, match=rf"s\.sqlite is damaged \({said}\): restore a copy, or move it away"):
            (store.failures() if "failures" in change else list(store.records()))


def test_text_of_a_store_that_is_no_utf8(here) -> None:
    with Store(here / "s.sqlite") as store:
        store.put("k", "measure", RECORD)
    with contextlib.closing(sqlite3.connect(here / "s.sqlite")) as db:
        db.execute("""UPDATE results SET record = CAST(X'7b2261223a2022ff227d' AS TEXT)""")
        db.commit()
    with Store(here / "s.sqlite", mode="read") as store, pytest.raises(StoreError, match="is not JSON"):
        store.get("k")


@pytest.mark.parametrize("state", ["[" * 100_000, "{}", '{"restart": "1"}', "[1]", "null", '{"restart": 1, "x": 2}'])
def test_checkpoints_of_packings(state, here) -> None:
    identity = {"k": 6, "d": 3}
    path = here / "c.checkpoint"
    search = json.dumps(identity, sort_keys=True)
    save_file({"best": torch.ones(6, 3)}, path, {"search": search, "state": state})
    with pytest.raises(
        InputError, match=r"c\.checkpoint is no checkpoint of a packing \(.*\); remove it to start anew"
    ):
        Checkpoint(path, identity).load()
    Checkpoint(path, identity).write(SearchState(restart=3, rows=torch.ones(6, 3)))
    assert Checkpoint(path, identity).load().restart == 3


def test_no_rows_of_more_columns_than_an_array_can_have(here, repcap) -> None:
    """A quantised GGUF tensor of shape 0 x 2^62: what is decoded once and kept made room for it."""
    name = b"token_embd.weight"
    head = b"GGUF" + struct.pack("<IQQ", 3, 1, 0) + struct.pack("<Q", len(name)) + name
    head += struct.pack("<IQQIQ", 2, 2**62, 0, 8, 0)
    (here / "a.gguf").write_bytes(head + bytes(-len(head) % 32 + 64))
    found = repcap("measure", "a.gguf")
    assert found.code == 2
    assert "Traceback" not in found.err
    assert len(found.err.splitlines()) == 1, found.err
