"""`track` against brute force on small checkpoints."""

from __future__ import annotations

import json
import os

import pytest
import torch
from safetensors.torch import save_file

from killing import kill_at_random
from repcap import geometry
from repcap.errors import InputError, SourceError, VectorsError
from repcap.geometry.measurement import measuring
from repcap.jobs.store import Store
from repcap.verbs.track.steps import expand, step_of
from repcap.verbs.track.study import track


@pytest.mark.parametrize(
    ("name", "step"),
    [
        ("run/checkpoint-1000", 1000),
        ("org/name@step143000", 143000),
        ("run/global_step250/model.safetensors", 250),
        ("epoch=3-step=1200.ckpt", 1200),
        ("iter_0005000", 5000),
        ("run/step-10k", 10000),
        ("org/OLMo@step1000-tokens4B", 1000),
        ("llama-7b", None),
        ("run/model.safetensors::lm_head.weight", None),
    ],
)
def test_step_of(name, step):
    assert step_of(name) == step


def test_expand(tmp_path):
    for step in (200, 1000, 30):
        (tmp_path / f"checkpoint-{step}").mkdir()
    (tmp_path / "runs").mkdir()
    expected = [str(tmp_path / f"checkpoint-{step}") for step in (30, 200, 1000)]
    assert [source for source, _ in expand([str(tmp_path)])] == expected
    assert [source for source, _ in expand([f"{tmp_path}/checkpoint-*"])] == expected
    assert [source for source, _ in expand(["b/step2", "a/step1", "b/step2"])] == ["a/step1", "b/step2"]
    assert [source for source, _ in expand(["z", "a/step1"])] == ["z", "a/step1"]
    with pytest.raises(InputError, match="no path matches"):
        expand([f"{tmp_path}/nothing-*"])


def test_track_against_brute_force(checkpoint, tmp_path, repcap):
    torch.manual_seed(5)
    first = torch.randn(40, 6)
    stages = [first, first + 0.5 * torch.randn(40, 6), torch.randn(40, 6) + 1.0]
    for step, tensor in zip((100, 200, 1000), stages, strict=True):
        checkpoint(f"run/checkpoint-{step}", tensor)
    found = track([str(tmp_path / "run")])
    assert [point.step for point in found.points] == [100, 200, 1000]
    for point, tensor in zip(found.points, stages, strict=True):
        units = torch.nn.functional.normalize(tensor.double(), dim=1)
        cosines = (units @ units.T)[~torch.eye(40, dtype=torch.bool)]
        assert point.epsilon == pytest.approx(float(cosines.mean() + 2 * cosines.std(correction=0)), abs=1e-6)

    def mean(a, b):
        return float(torch.cosine_similarity(a.double(), b.double(), dim=1).mean())

    last = found.points[2]
    assert last.to_first.mean == pytest.approx(mean(stages[0], stages[2]), abs=1e-9)
    assert last.to_previous.mean == pytest.approx(mean(stages[1], stages[2]), abs=1e-9)
    assert found.points[0].to_first is None
    done = repcap("track", tmp_path / "run", "--json", "--plot", tmp_path / "track.svg")
    assert done.code == 0, done.err
    assert [point["step"] for point in done.json["points"]] == [100, 200, 1000]
    assert (tmp_path / "track.svg").stat().st_size > 1000
    assert max(map(len, repcap("track", tmp_path / "run").out.splitlines())) <= 80


def test_track_keeps_what_can_be_measured(checkpoint, tmp_path, repcap):
    checkpoint("run/checkpoint-1", torch.randn(20, 4))
    (tmp_path / "run" / "checkpoint-2").mkdir()
    checkpoint("run/checkpoint-3", torch.randn(20, 5))
    done = repcap("track", tmp_path / "run")
    assert done.code == 0
    assert "checkpoint-2" in done.err.replace("\n", "")  # a long path is wrapped
    found = track([str(tmp_path / "run")])
    assert [point.step for point in found.points] == [1, 3]
    assert found.points[1].to_first is None
    assert any("columns" in note for note in found.notes)
    with pytest.raises(SourceError):
        track([str(tmp_path / "run" / "checkpoint-2")])
    none = repcap("track", tmp_path / "run" / "checkpoint-2")
    assert (none.code, none.err.count("\n")) == (2, 1)


def test_track_of_files_in_one_directory(tmp_path):
    torch.manual_seed(6)
    for step in (300, 20, 1000):
        save_file({"model.embed_tokens.weight": torch.randn(20, 4)}, tmp_path / f"step_{step}.safetensors")
    (tmp_path / "step_20.log").write_text("no weights")
    assert [step for _, step in expand([str(tmp_path)])] == [20, 300, 1000]
    assert [point.step for point in track([str(tmp_path)]).points] == [20, 300, 1000]


def test_a_checkpoint_without_common_rows_is_measured_all_the_same(checkpoint):
    torch.manual_seed(7)
    first, second = torch.randn(20, 4), torch.randn(20, 4)
    first[10:], second[:10] = 0.0, 0.0
    found = track([checkpoint("step1", first), checkpoint("step2", second)])
    assert [point.to_first for point in found.points] == [None, None]
    assert not found.failures
    assert "no row has a direction in both" in found.notes[0]


def interrupted_at(monkeypatch, number):
    """Ctrl-C in the measurement of this number; gives the list of those that were begun."""
    measure, begun = measuring.measure_matrix, []

    def stopped(matrix, *rest, **options):
        begun.append(matrix)
        if len(begun) == number:
            raise KeyboardInterrupt
        return measure(matrix, *rest, **options)

    monkeypatch.setattr(geometry, "measure_matrix", stopped)
    return begun


def test_ctrl_c_shows_the_checkpoints_that_were_measured(checkpoint, repcap, monkeypatch):
    paths = [checkpoint(f"step{step}", torch.randn(20, 4)) for step in (1, 2, 3)]
    interrupted_at(monkeypatch, 3)
    done = repcap("track", *paths, "--json")
    assert done.code == 130
    assert [point["step"] for point in done.json["points"]] == [1, 2]
    assert done.json["notes"] == ["interrupted after 2 of 3 checkpoints"]
    asked = {"matrix": "embedding", "z": 2.0, "seed": 0, "device": "auto", "engine": "inline", "store": None}
    assert {name: done.json["options"][name] for name in asked} == asked
    assert done.err == "repcap: error: interrupted\n"
    interrupted_at(monkeypatch, 1)
    nothing = repcap("track", *paths)
    assert (nothing.code, nothing.out) == (130, "")


def test_a_track_is_a_table_and_three_lines(checkpoint):
    torch.manual_seed(8)
    first = torch.randn(20, 4)
    found = track([checkpoint("step1", first), checkpoint("step2", first + 0.1 * torch.randn(20, 4))])
    rows = found.rows()
    assert [(row["step"], row["to_first"]) for row in rows] == [(1, None), (2, found.points[1].to_first.mean)]
    title, numbers, reading = repr(found).splitlines()
    assert title.startswith("Track: 2 checkpoints, ")
    assert numbers == f"  epsilon {found.points[0].epsilon:.4f}, {found.points[1].epsilon:.4f}"
    assert reading.startswith("  epsilon goes from")


def test_a_run_that_was_stopped_goes_on(checkpoint, tmp_path, repcap, monkeypatch):
    paths = [checkpoint(f"run/step{step}", torch.randn(20, 4)) for step in (1, 2, 3, 4)]
    whole = track(paths)
    store = tmp_path / "run.sqlite"
    interrupted_at(monkeypatch, 3)
    done = repcap("track", *paths, "--store", store)
    assert done.code == 130
    assert f"interrupted: what is done is in {store}; run the same command again to go on" in " ".join(done.err.split())
    begun = interrupted_at(monkeypatch, 0)
    assert track(paths, store=store).points == whole.points
    assert len(begun) == 2
    assert track(paths, store=store).points == whole.points
    assert track(paths[:3], store=store).points == whole.points[:3]  # the same checkpoints against the same others
    assert len(begun) == 2
    assert len(track(paths, store=store, refresh=True).points) == 4
    assert len(begun) == 6
    (tmp_path / "run/step2/model.safetensors").unlink()
    save_file({"model.embed_tokens.weight": torch.randn(20, 4)}, tmp_path / "run/step2/model.safetensors")
    assert track(paths, store=store).points[1].epsilon != whole.points[1].epsilon
    assert len(begun) == 8  # itself, and the one after it
    with Store(store, "read") as opened:
        assert {item.kind for item in opened.records("step")} == {"step"}


DRIVER = """
import sys, time
from repcap.cli import run
from repcap.verbs.track import study
measure = study.measure_step
study.measure_step = lambda payload: time.sleep(0.02) or measure(payload)
sys.exit(run(["track", {run!r}, "--store", {store!r}, "--quiet"]))
"""


def test_a_killed_run_goes_on_and_loses_nothing(checkpoint, tmp_path, repcap):
    """SIGKILL at two random moments; the third run measures what is missing, and gives what one run gives."""
    for step in range(24):
        checkpoint(f"run/step{step}", torch.randn(20, 4))
    run, store, script = str(tmp_path / "run"), tmp_path / "run.sqlite", tmp_path / "driver.py"
    script.write_text(DRIVER.format(run=run, store=str(store)))
    kept = kill_at_random(script, store, {**os.environ, "OMP_NUM_THREADS": "1"}, times=2, most=8, seed=3)
    assert 2 <= kept < 24
    with Store(store, "read") as opened:
        before = {item.key: (item.record, item.created) for item in opened.records()}
    found = repcap("track", run, "--store", store, "--json")
    assert found.code == 0
    whole = track([run])
    assert found.json["points"] == json.loads(json.dumps([point.to_dict() for point in whole.points]))
    with Store(store, "read") as opened:
        after = {item.key: (item.record, item.created) for item in opened.records()}
    assert len(after) == 24
    assert before.items() <= after.items()  # nothing was measured twice
    assert {path.name for path in tmp_path.iterdir()} <= {"run", "driver.py", "run.sqlite", *SIDES}


SIDES = ("run.sqlite-wal", "run.sqlite-shm")
"""SQLite's, which the reader above leaves."""


def test_other_processes_give_the_same(checkpoint, tmp_path):
    paths = [checkpoint(f"run/step{step}", torch.randn(20, 4)) for step in (1, 2, 3)]
    done = []
    found = track(paths, engine="local:2", on_progress=lambda at, total: done.append((at, total)))
    assert found.points == track(paths).points
    assert done[-1] == (3, 3)


def test_a_checkpoint_that_cannot_be_measured(checkpoint, tmp_path):
    """It opens, and is found to have no direction only when its rows are read."""
    paths = [checkpoint(f"run/step{step}", torch.randn(20, 4) * (step != 2)) for step in (1, 2, 3)]
    found = track(paths)
    assert [point.step for point in found.points] == [1, 3]
    assert [source for source, _ in found.failures] == [paths[1]]
    assert found.points[1].to_first is not None
    assert found.points[1].to_previous is None
    with pytest.raises(VectorsError):
        track([paths[1]])


def test_both_matrices_and_their_alignment(tmp_path, repcap):
    torch.manual_seed(9)
    embedding = torch.randn(30, 5)
    heads = [torch.randn(30, 5), 0.5 * embedding + 0.3 * torch.randn(30, 5), 2.0 * embedding]
    for step, head in enumerate(heads):
        (tmp_path / f"step{step}").mkdir()
        tensors = {"model.embed_tokens.weight": embedding + step, "lm_head.weight": head}
        save_file(tensors, tmp_path / f"step{step}" / "model.safetensors")
    found = track(str(tmp_path), "both")
    for step, (point, head) in enumerate(zip(found.points, heads, strict=True)):
        cosines = torch.cosine_similarity((embedding + step).double(), head.double(), dim=1)
        assert point.alignment.mean == pytest.approx(float(cosines.mean()), abs=1e-6)
        assert point.alignment.low == pytest.approx(float(cosines.quantile(0.05)), abs=1e-6)
        assert point.unembedding.epsilon == track(str(tmp_path / f"step{step}"), "unembedding").points[0].epsilon
    alone = track(str(tmp_path), "unembedding")
    assert [p.unembedding.to_first for p in found.points] == [p.to_first for p in alone.points]
    assert "same row of the unembedding goes from" in found.reading
    done = repcap("track", tmp_path, "--matrix", "both", "--json", "--plot", tmp_path / "t.svg")
    assert done.json["points"][2]["alignment"]["mean"] == found.points[2].alignment.mean
    assert "embedding with unembedding" in (tmp_path / "t.svg").read_text()
    shown = repcap("track", tmp_path, "--matrix", "both").out
    assert "embedding and unembedding, row by row" in shown
    assert max(map(len, shown.splitlines())) <= 80
    assert found.rows()[0]["alignment"] == found.points[0].alignment.mean


def test_a_tied_model_has_one_matrix(checkpoint):
    found = track([checkpoint("step1", torch.randn(20, 4))], "both")
    assert (found.points[0].unembedding, found.points[0].alignment) == (None, None)
