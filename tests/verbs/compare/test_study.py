"""`compare` and `track` against brute force on small checkpoints, and on the demo model."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from demo import SMOLLM2, needs_demo
from repcap.errors import InputError, SourceError
from repcap.verbs.compare.study import compare
from repcap.verbs.track.steps import expand, step_of
from repcap.verbs.track.study import track


@pytest.fixture
def checkpoint(tmp_path):
    """Write a checkpoint directory and return its path."""

    def write(name, embedding, unembedding=None, vocab=None):
        folder = tmp_path / name
        folder.mkdir(parents=True)
        tensors = {"model.embed_tokens.weight": embedding.contiguous()}
        if unembedding is not None:
            tensors["lm_head.weight"] = unembedding.contiguous()
        save_file(tensors, folder / "model.safetensors")
        if vocab is not None:
            (folder / "vocab.json").write_text(json.dumps({text: row for row, text in enumerate(vocab)}))
        return str(folder)

    return write


def jaccard(a, b, top):
    """Mean overlap of neighbours over all rows, from all cosines."""

    def nearest(x):
        units = torch.nn.functional.normalize(x.double(), dim=1)
        cosines = units @ units.T
        cosines.fill_diagonal_(-2)
        return cosines.topk(top, dim=1).indices.tolist()

    pairs = [(set(x), set(y)) for x, y in zip(nearest(a), nearest(b), strict=True)]
    return np.mean([len(x & y) / len(x | y) for x, y in pairs])


def test_two_checkpoints_against_brute_force(checkpoint):
    torch.manual_seed(0)
    a = torch.randn(60, 8)
    b = a + 0.4 * torch.randn(60, 8)
    found = compare(checkpoint("a", a), checkpoint("b", b), top=4, sample=60, worst=3)
    cosines = torch.cosine_similarity(a.double(), b.double(), dim=1)
    assert found.rows is not None
    assert found.rows.mean == pytest.approx(float(cosines.mean()), abs=1e-12)
    assert found.rows.std == pytest.approx(float(cosines.std(correction=0)), abs=1e-12)
    assert dict(found.rows.quantiles)[0.5] == pytest.approx(float(cosines.median()), abs=0.05)
    assert [row.row_a for row in found.rows.worst] == cosines.argsort()[:3].tolist()
    worst = found.rows.worst[0]
    assert worst.norm_ratio == pytest.approx(float(b[worst.row_a].norm() / a[worst.row_a].norm()), rel=1e-6)
    assert sum(found.rows.counts) == 60
    assert found.neighbours is not None
    assert found.neighbours.mean == pytest.approx(jaccard(a, b, 4), abs=1e-12)
    assert (found.a.count, found.b.count) == (60, 60)


def test_scaled_and_rotated_copies_keep_what_they_keep(checkpoint):
    """Scaling keeps every cosine; a rotation keeps epsilon and the neighbours but not the rows."""
    torch.manual_seed(1)
    a = torch.randn(50, 6)
    scaled = compare(checkpoint("a", a), checkpoint("s", a * torch.rand(50, 1).add(0.1)), sample=50)
    assert scaled.rows.mean == pytest.approx(1.0, abs=1e-7)
    assert scaled.neighbours.mean == 1.0
    turn = torch.linalg.qr(torch.randn(6, 6)).Q
    turned = compare(str(checkpoint("a2", a)), checkpoint("r", a @ turn), sample=50)
    assert turned.neighbours.mean == 1.0
    assert turned.a.epsilon == pytest.approx(turned.b.epsilon, abs=1e-6)
    assert abs(turned.rows.mean) < 0.6


def test_embedding_against_unembedding(checkpoint):
    torch.manual_seed(2)
    a, b = torch.randn(30, 5), torch.randn(30, 5)
    found = compare(checkpoint("m", a, b), sample=0)
    assert not found.tied
    assert (found.a.info.role, found.b.info.role) == ("embedding", "unembedding")
    assert found.rows.mean == pytest.approx(float(torch.cosine_similarity(a.double(), b.double(), dim=1).mean()))
    assert found.neighbours is None


def test_tied_says_so(checkpoint, repcap):
    path = checkpoint("m", torch.randn(20, 4))
    found = compare(path)
    assert (found.tied, found.b, found.rows) == (True, None, None)
    assert "tied" in found.sentence
    shown = repcap("compare", path)
    assert shown.code == 0
    assert "nothing to compare" in " ".join(shown.out.split())
    assert repcap("compare", path, "--json").json["tied"] is True


def test_longer_vocabulary_is_cut_to_the_common_rows(checkpoint):
    a = torch.randn(30, 4)
    found = compare(checkpoint("a", a), checkpoint("b", torch.cat([a, torch.randn(7, 4)])), sample=0)
    assert found.rows.rows == 30
    assert found.rows.mean == pytest.approx(1.0)
    assert found.pairing.to_dict()["only_b"] == 7
    assert any("30 and 37 rows" in note for note in found.notes)


def test_other_vocabularies_are_paired_by_text(checkpoint):
    torch.manual_seed(3)
    a = torch.randn(8, 4)
    order = [3, 1, 0, 2]
    texts = [f"w{i}" for i in range(8)]
    first = checkpoint("a", a, vocab=texts)
    second = checkpoint("b", torch.cat([torch.randn(2, 4), a[order]]), vocab=["x", "y", *(texts[i] for i in order)])
    found = compare(first, second, sample=0)
    assert found.pairing.how == "text"
    assert found.rows.rows == 4
    assert found.rows.mean == pytest.approx(1.0)
    assert any("vocabularies differ" in note for note in found.notes)
    assert {(row.row_a, row.row_b) for row in found.rows.worst} == {(3, 2), (1, 3), (0, 4), (2, 5)}
    by_row = compare(first, second, match="row", sample=0)
    assert by_row.pairing.how == "row"
    assert any("same token" in note for note in by_row.notes)


def test_other_widths_compare_neighbours_only(checkpoint, repcap):
    torch.manual_seed(4)
    a = torch.randn(40, 4)
    wide = torch.cat([a, torch.zeros(40, 3)], dim=1)
    paths = checkpoint("a", a), checkpoint("b", wide)
    found = compare(*paths, sample=40, top=5)
    assert found.rows is None
    assert "4 and 7 columns" in found.reason
    assert found.neighbours.mean == 1.0
    shown = repcap("compare", *paths, "--plot", "x.png")
    assert shown.code == 0
    assert "no figure" in shown.err


def test_zero_rows_do_not_spread(checkpoint):
    a = torch.randn(10, 4)
    b = a.clone()
    b[3] = 0.0
    found = compare(checkpoint("a", a), checkpoint("b", b), sample=10, top=2)
    assert (found.rows.rows, found.rows.dropped) == (9, 1)
    assert found.rows.mean == pytest.approx(1.0)
    assert found.neighbours.rows == 9


@pytest.mark.parametrize(("options", "message"), [({"top": 0}, "--top 0"), ({"match": "id"}, "--match id")])
def test_refusals(checkpoint, options, message):
    path = checkpoint("a", torch.randn(10, 4))
    with pytest.raises(InputError, match=message):
        compare(path, path, **options)


def test_text_match_needs_tokenizers(checkpoint):
    path = checkpoint("a", torch.randn(10, 4))
    with pytest.raises(InputError, match="tokenizers"):
        compare(path, path, match="text")


def test_no_second_matrix(tmp_path):
    np.save(tmp_path / "x.npy", np.random.default_rng(0).normal(size=(10, 4)))
    with pytest.raises(SourceError):
        compare(str(tmp_path / "x.npy"))


def test_figure_and_json(checkpoint, repcap, tmp_path):
    a = torch.randn(30, 5)
    paths = checkpoint("a", a), checkpoint("b", a + torch.randn(30, 5))
    done = repcap("compare", *paths, "--json", "--plot", tmp_path / "rows.svg", "--sample", 10, "--top", 3)
    assert done.code == 0, done.err
    record = done.json
    assert record["rows"]["rows"] == 30
    assert record["neighbours"]["top"] == 3
    assert record["a"]["epsilon"] > 0
    assert "mean" in (tmp_path / "rows.svg").read_text()
    text = repcap("compare", *paths)
    assert max(map(len, text.out.splitlines())) <= 80


# --- steps and track ---


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


@needs_demo
def test_quantised_against_full_precision_of_the_demo(tmp_path):
    """The Q8_0 embedding of the demo model rounded to 4 bits a value: near to it, and nearer than a coarser one."""
    from repcap.sources import open_source

    with open_source(SMOLLM2) as opened:
        whole = opened.read(0, 4000)
    save_file({"model.embed_tokens.weight": whole}, tmp_path / "full.safetensors")
    means = []
    for bits in (4, 3):
        scale = whole.abs().amax(1, keepdim=True) / (2 ** (bits - 1) - 1)
        save_file({"model.embed_tokens.weight": (whole / scale).round() * scale}, tmp_path / f"q{bits}.safetensors")
        found = compare(str(tmp_path / "full.safetensors"), str(tmp_path / f"q{bits}.safetensors"), sample=32)
        assert found.rows.rows == 4000
        means.append(found.rows.mean)
    assert 0.9 < means[1] < means[0] < 0.9999


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
    assert done.err == "repcap: error: interrupted\n"
    monkeypatch.setattr(module._Walk, "visit", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    nothing = repcap("track", *paths)
    assert (nothing.code, nothing.out) == (130, "")


def test_figures_that_cannot_be_written_are_refused_before_the_work(checkpoint, repcap, tmp_path):
    path = checkpoint("step1", torch.randn(20, 4))
    for verb in (("compare", path, path), ("track", path)):
        failed = repcap(*verb, "--plot", tmp_path / "nowhere" / "x.png")
        assert (failed.code, failed.out) == (2, "")
        assert "no such file or directory" in failed.err
