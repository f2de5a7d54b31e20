"""`track` against brute force on small checkpoints."""

from __future__ import annotations

import pytest
import torch
from safetensors.torch import save_file

from repcap.errors import InputError, SourceError
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
        assert point.measurement.epsilon == pytest.approx(
            float(cosines.mean() + 2 * cosines.std(correction=0)), abs=1e-6
        )

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


def test_ctrl_c_shows_the_checkpoints_that_were_measured(checkpoint, repcap, monkeypatch):
    import repcap.verbs.track.study as module

    paths = [checkpoint(f"step{step}", torch.randn(20, 4)) for step in (1, 2, 3)]
    visit = module._Walk.visit

    def stopped(walk, source, step):
        if step == 3:
            raise KeyboardInterrupt
        visit(walk, source, step)

    monkeypatch.setattr(module._Walk, "visit", stopped)
    done = repcap("track", *paths, "--json")
    assert done.code == 130
    assert [point["step"] for point in done.json["points"]] == [1, 2]
    assert done.json["notes"] == ["interrupted after 2 of 3 checkpoints"]
    assert done.json["options"] == {"matrix": "embedding", "z": 2.0, "seed": 0, "device": "auto"}
    assert done.err == "repcap: error: interrupted\n"
    monkeypatch.setattr(module._Walk, "visit", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
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
    assert numbers == f"  epsilon {found.points[0].measurement.epsilon:.4f}, {found.points[1].measurement.epsilon:.4f}"
    assert reading.startswith("  epsilon goes from")
