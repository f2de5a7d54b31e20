"""`repcap pack` and `repcap pack-max`: files, JSON, one-line errors, Ctrl-C, SIGKILL and --resume."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

from repcap.packing.coherence import coherence
from repcap.packing.vector_files import open_vectors


def test_pack_writes_vectors_and_json(repcap, tmp_path):
    out = tmp_path / "v.safetensors"
    done = repcap("pack", 40, 6, "--steps", 30, "--out", out, "--json")
    assert done.code == 0
    record = done.json
    assert {"k", "d", "seed", "coherence", "lower_bound", "seconds", "steps", "path"} <= set(record)
    assert (record["k"], record["d"], record["path"]) == (40, 6, str(out))
    matrix, metadata = open_vectors(out)
    assert coherence(matrix).value == pytest.approx(record["coherence"], abs=1e-7)
    assert float(metadata["coherence"]) == record["coherence"]
    assert list(tmp_path.iterdir()) == [out]  # the checkpoint is gone


def test_table_names_the_method_and_fits_80_columns(repcap, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = repcap("pack", 500, 64, "--steps", 3)
    assert done.code == 0
    assert "construction: Kerdock" in done.out
    assert "search alone" in done.out
    assert (tmp_path / "packing-500-64.safetensors").exists()
    assert max(len(line) for line in done.out.splitlines()) <= 80


def test_better_vectors_are_not_overwritten(repcap, tmp_path):
    out = tmp_path / "v.safetensors"
    base = ("pack", 50, 8, "--no-constructions", "--out", out, "--json")
    good = repcap(*base, "--steps", 200).json["coherence"]
    worse = repcap(*base, "--steps", 2)
    assert worse.json["coherence"] > good
    assert worse.json["path"] is None
    assert "not overwritten" in worse.err
    assert float(open_vectors(out)[1]["coherence"]) == good
    assert repcap(*base, "--steps", 2, "--force").json["path"] == str(out)


def test_baselines(repcap):
    random = repcap("pack", 60, 10, "--method", "random", "--trials", 7, "--no-save", "--json").json
    assert random["details"]["trials"] == 7
    assert random["coherence"] == pytest.approx(random["details"]["predicted"], rel=0.2)
    adam = repcap(
        "pack", 60, 10, "--method", "adam-pnorm", "--steps", 20, "--multiplier", 40, "--no-save", "--json"
    ).json
    assert adam["method"] == "adam-pnorm p=17"
    assert adam["coherence"] < random["coherence"]
    assert "predicted" in repcap("pack", 60, 10, "--method", "random", "--trials", 3, "--no-save").out


def test_a_target_that_was_not_reached_is_said(repcap):
    words = ("pack", 30, 6, "--no-constructions", "--steps", 20, "--no-save", "--target")
    assert "target 0.1 was not reached" in repcap(*words, 0.1).err
    assert "reached" not in repcap(*words, 0.9).err


def test_construct_and_verify(repcap, tmp_path):
    out = tmp_path / "dg.safetensors"
    made = repcap("pack", "--construct", "delsarte-goethals", 16, "--param", "r=1", "--out", out, "--json").json
    assert (made["k"], made["d"], made["coherence"]) == (1040, 16, pytest.approx(0.5, abs=1e-12))
    assert made["evidence"] == "measured over all pairs"
    seen = repcap("pack", "--verify", out, "--json").json
    assert (seen["k"], seen["d"]) == (1040, 16)
    assert seen["coherence"] == pytest.approx(0.5, abs=1e-7)
    assert seen["lower_bounds"]["best"] <= seen["coherence"]
    shown = repcap("pack", "--verify", out).out
    assert "Levenshtein" in shown
    assert "the file says" in shown
    first = repcap("pack", "--construct", "bch", 100, 64, "--no-save", "--json").json
    assert (first["k"], first["path"]) == (100, None)


@pytest.mark.parametrize("words", [("exact", 23, "--param", "k=276"), ("simplex", 9), ("exponential-sums", 22)])
@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_what_is_said_of_a_written_set_is_true_of_the_file(repcap, tmp_path, words, precision):
    # The rounding to float32 counts: 276 lines at 1/5 are at 0.20000004 in the file.
    out = tmp_path / "v.safetensors"
    made = repcap("pack", "--construct", *words, "--precision", precision, "--out", out, "--json").json
    rows = load_file(out)["vectors"].astype(np.float64)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    found = np.abs(np.triu(rows @ rows.T, 1)).max()
    assert found == pytest.approx(made["coherence"], abs=1e-15)
    assert found == pytest.approx(float(open_vectors(out)[1]["coherence"]), abs=1e-15)
    assert abs(found - made["coherence_claimed"]) <= made["rounding"] + 1e-15
    assert made["dtype"] == precision


def test_better_vectors_in_the_file_are_measured_not_believed(repcap, tmp_path):
    out = tmp_path / "v.safetensors"
    rows = np.random.default_rng(0).normal(size=(12, 4)).astype(np.float32)
    save_file({"vectors": rows}, out, {"coherence": "0.1"})
    done = repcap("pack", 12, 4, "--out", out)
    assert done.code == 0
    assert "better" not in done.err
    assert coherence(open_vectors(out)[0]).value == pytest.approx(0.5, abs=1e-7)


def test_verify_any_matrix(repcap, tmp_path):
    rows = np.random.default_rng(0).normal(size=(30, 5))
    np.save(tmp_path / "m.npy", rows)
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    expected = np.abs(np.triu(unit @ unit.T, 1)).max()
    assert repcap("pack", "--verify", tmp_path / "m.npy", "--json").json["coherence"] == pytest.approx(
        expected, abs=1e-13
    )


@pytest.mark.parametrize("kind", ["npy", "txt", "safetensors"])
def test_results_in_every_format_are_read_back(repcap, tmp_path, monkeypatch, kind):
    monkeypatch.chdir(tmp_path)
    made = repcap("pack", 10, 3, "--restarts", 8, "--steps", 60, "--format", kind, "--json").json
    assert made["path"] == f"packing-10-3.{kind}"
    seen = repcap("pack", "--verify", made["path"], "--json").json
    assert (seen["k"], seen["d"], seen["coherence"]) == (10, 3, pytest.approx(made["coherence"], abs=1e-12))
    built = repcap("pack", "--construct", "exact", 7, "--param", "k=28", "--format", kind, "--json").json
    assert repcap("pack", "--verify", built["path"], "--json").json["coherence"] == pytest.approx(1 / 3, abs=1e-7)
    assert repcap("pack-max", 7, 0.34, "--out", f"m.{kind}", "--json").json["path"] == f"m.{kind}"
    assert open_vectors(f"m.{kind}")[0].count == 28


def test_swapped_sizes_are_remarked_on(repcap):
    done = repcap("pack", 3, 14, "--no-save")
    assert done.code == 0
    assert "For 14 lines in R^3: repcap pack 14 3" in done.err
    assert "K < D" not in repcap("pack", 4, 3, "--no-save", "--steps", 3).err


def test_construct_more_than_fits_on_disk(repcap, tmp_path):
    out = tmp_path / "x.safetensors"
    done = repcap("pack", "--construct", "delsarte-goethals", 4096, "--param", "r=2", "--out", out)
    assert done.code == 2
    assert "GB free" in done.err
    assert not out.exists()


def test_pack_max(repcap, tmp_path):
    out = tmp_path / "m.safetensors"
    done = repcap("pack-max", 7, 0.34, "--out", out, "--json")
    record = done.json
    assert (record["k"], record["method"]) == (28, "construction: 28 equiangular lines")
    assert open_vectors(out)[0].count == 28
    shown = repcap("pack-max", 4096, 0.0645, "--no-search")
    assert "proven" in shown.out
    assert max(len(line) for line in shown.out.splitlines()) <= 80
    searched = repcap("pack-max", 9, 0.42, "--seconds", 3, "--steps", 60, "--json").json
    assert searched["coherence"] <= 0.42 + 1e-9
    assert searched["trials"]


@pytest.mark.parametrize(
    ("words", "match"),
    [
        (("pack", 5), "two numbers, K and D"),
        (("pack", 1, 5, "--no-save"), "at least 2 vectors"),
        (("pack", 5, 0, "--no-save"), "dimension"),
        (("pack", 5, 3, "--out", "v.bin"), "written as .safetensors, .npy, .txt"),
        (("pack", 5, 3, "--format", "csv"), "written as .safetensors, .npy, .txt"),
        (("pack", 5, 3, "--format", "npy", "--out", "v.txt"), "does not end in .npy"),
        (("pack", 5, 3, "--out", "nowhere/v.safetensors"), "no directory"),
        (("pack", 5, 3, "--steps", 0, "--no-save"), "steps"),
        (("pack", 5, 3, "--method", "x", "--no-save"), "--method x: use optimise, random, adam-pnorm"),
        (("pack", 5, 3, "--init", "none.npy", "--no-save"), "no file"),
        (("pack", "--construct", "kerdock"), "takes D"),
        (("pack", "--construct", "kerdock", 17), "2^M"),
        (("pack", "--construct", "kerdock", 5000, 16), "144 vectors"),
        (("pack", "--construct", "kerdock", 16, "--param", "r"), "--param r"),
        (("pack", "--verify", "none.safetensors"), "no file"),
        (("pack", 4, 4, "--verify", "none.safetensors"), "a file alone"),
        (("pack-max", 0, 0.5), "d >= 1"),
        (("pack-max", 4, 1.5), "epsilon < 1"),
        (("pack", "x", "y"), "valid integer"),
    ],
)
def test_errors_are_one_line(repcap, tmp_path, monkeypatch, words, match):
    monkeypatch.chdir(tmp_path)
    done = repcap(*words)
    assert done.code == 2
    assert match in done.err
    assert done.err.startswith("repcap: error: ")
    assert len(done.err.strip().splitlines()) == 1
    assert not list(tmp_path.iterdir())


# In the child a checkpoint is written at every step rather than every 30 s.
CHILD = """
import sys
from repcap.packing.search.resume import Checkpoint
Checkpoint.__init__.__defaults__ = (float(sys.argv[1]),)
from repcap.cli import run
sys.exit(run(sys.argv[2:]))
"""


def start(interval: float, *words: object) -> subprocess.Popen:
    command = [sys.executable, "-c", CHILD, str(interval), *map(str, words)]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ | {"COLUMNS": "100"}
    )


def wait_for(path: Path, child: subprocess.Popen) -> None:
    deadline = time.monotonic() + 120
    while not path.exists():
        assert child.poll() is None, child.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_ctrl_c_keeps_the_best_and_resume_goes_on(repcap, tmp_path):
    out = tmp_path / "v.safetensors"
    checkpoint = tmp_path / "v.safetensors.checkpoint"
    words = ("pack", 400, 20, "--no-constructions", "--symmetry", 1, "--out", out, "--steps", 3000, "--json")
    child = start(0.0, *words)
    wait_for(checkpoint, child)
    child.send_signal(signal.SIGINT)
    printed, error = child.communicate(timeout=120)
    assert child.returncode == 130, error
    assert '"interrupted": true' in printed
    assert "--resume" in error
    assert "Traceback" not in error
    matrix, metadata = open_vectors(out)
    assert coherence(matrix).value == pytest.approx(float(metadata["coherence"]), abs=1e-7)
    with safe_open(str(checkpoint), framework="pt") as handle:
        assert handle.metadata()["search"]
    # Neither the checkpoint nor the vectors are lost by a careless second call.
    refused = repcap(*words)
    assert refused.code == 2
    assert "--resume" in refused.err


def test_a_finished_search_survives_a_disk_without_room_for_its_vectors(repcap, tmp_path, monkeypatch):
    out = tmp_path / "v.safetensors"
    words = ("pack", 60, 9, "--no-constructions", "--steps", 30, "--out", out, "--json")

    def full(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("repcap.verbs.pack.command.save", full)
        failed = repcap(*words)
    assert (failed.code, failed.err.splitlines()[-1]) == (2, "repcap: error: No space left on device")
    patched = "repcap.packing.search.optimise.Search._new_descent"
    with monkeypatch.context() as patch:
        patch.setattr(patched, lambda *_: pytest.fail("it searches again"))
        resumed = repcap(*words, "--resume")
    assert resumed.code == 0, resumed.err
    assert [one.name for one in tmp_path.iterdir()] == [out.name]
    whole = repcap("pack", 60, 9, "--no-constructions", "--steps", 30, "--no-save", "--json").json
    assert (resumed.json["coherence"], resumed.json["steps"]) == (whole["coherence"], whole["steps"])


def test_sigkill_loses_what_came_after_the_last_checkpoint_only(repcap, tmp_path):
    out = tmp_path / "v.safetensors"
    checkpoint = tmp_path / "v.safetensors.checkpoint"
    words = ("pack", 300, 12, "--no-constructions", "--out", out, "--steps", 400, "--json")
    child = start(0.0, *words)
    wait_for(checkpoint, child)
    child.kill()
    child.communicate(timeout=60)
    assert not out.exists()
    resumed = repcap(*words, "--resume")
    assert resumed.code == 0, resumed.err
    assert resumed.json["steps"] == 400
    assert not checkpoint.exists()
    # Killed inside a write, at most a temporary file stays: the checkpoint itself was whole.
    assert all(path.name.startswith((".", "v.safetensors")) for path in tmp_path.iterdir())
    whole = repcap("pack", 300, 12, "--no-constructions", "--no-save", "--steps", 400, "--json").json
    assert resumed.json["coherence"] == pytest.approx(whole["coherence"], rel=2e-3)
