"""Vectors on disk: what is written is what is read, also by the safetensors library; damaged files say so."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from repcap.constructions.build import named_lines
from repcap.errors import InputError
from repcap.matrix import TensorMatrix
from repcap.packing import pack
from repcap.packing.vector_files import open_vectors, save, write_tensors, write_vectors


def test_packing_round_trip(tmp_path):
    packing = pack(30, 6, steps=20, seed=3)
    path = tmp_path / "p.safetensors"
    save(packing, path)
    assert torch.equal(load_file(path)["vectors"], packing.vectors)
    with safe_open(str(path), framework="pt") as handle:
        metadata = handle.metadata()
    assert float(metadata["coherence"]) == packing.coherence
    assert {key: metadata[key] for key in ("k", "d", "seed", "steps")} == {
        "k": "30", "d": "6", "seed": "3", "steps": str(packing.steps),
    }  # fmt: skip
    assert json.loads(metadata["repcap"])["method"] == packing.method
    matrix, read = open_vectors(path)
    assert read == metadata
    assert torch.equal(matrix.read(7, 19), packing.vectors[7:19])


@pytest.mark.parametrize("ending", [".safetensors", ".npy", ".txt"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_every_format_gives_back_every_number(tmp_path, monkeypatch, ending, dtype):
    monkeypatch.setattr("repcap.packing.vector_files.WRITE_ROWS", 7)
    rows = torch.randn(30, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64).to(dtype)
    path = tmp_path / f"v{ending}"
    seen = []
    write_vectors(path, TensorMatrix(rows), {}, dtype, lambda done, total: seen.append((done, total)))
    matrix, _ = open_vectors(path)
    assert torch.equal(matrix.read(0, 30).to(dtype), rows)
    assert seen[-1] == (30, 30)
    assert list(tmp_path.iterdir()) == [path]


def test_npy_and_txt_are_what_others_read(tmp_path):
    packing = pack(9, 3, steps=20, restarts=1, constructions=False)
    save(packing, tmp_path / "p.npy")
    save(packing, tmp_path / "p.txt")
    assert np.array_equal(np.load(tmp_path / "p.npy"), packing.vectors.numpy())
    lines = (tmp_path / "p.txt").read_text().splitlines()
    assert [len(line.split()) for line in lines] == [3] * 9
    assert np.array_equal([[float(word) for word in line.split()] for line in lines], packing.vectors.numpy())
    with pytest.raises(InputError, match=r"p.csv: vectors are written as .safetensors, .npy, .txt"):
        save(packing, tmp_path / "p.csv")


def test_one_number_a_line_as_published_tables_have_it(tmp_path):
    rows = torch.randn(5, 3, dtype=torch.float64)
    text = "\n".join(repr(float(x)) for x in rows.flatten()) + "\n"
    (tmp_path / "pack.3.5.txt").write_text(text)
    assert torch.equal(open_vectors(tmp_path / "pack.3.5.txt")[0].read(0, 5), rows)
    (tmp_path / "pack.3.6.txt").write_text(text)
    with pytest.raises(InputError, match="holds 15 numbers; its name says 6 vectors of R\\^3"):
        open_vectors(tmp_path / "pack.3.6.txt")


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_streamed_construction(tmp_path, monkeypatch, dtype):
    monkeypatch.setattr("repcap.packing.vector_files.WRITE_ROWS", 33)
    lines = named_lines("kerdock", 16)
    path = tmp_path / "k.safetensors"
    write_tensors(path, {"vectors": lines}, {"a": "b"}, dtype)
    stored = load_file(path)["vectors"]
    assert stored.dtype == dtype
    assert torch.equal(stored.double(), lines.read(0, 144).to(dtype).double())


def test_other_peoples_files(tmp_path):
    rows = torch.randn(8, 3)
    save_file({"table": rows, "bias": torch.ones(3)}, tmp_path / "one.safetensors")
    assert torch.equal(open_vectors(tmp_path / "one.safetensors")[0].read(0, 8), rows)
    save_file({"a": rows, "b": rows + 1}, tmp_path / "two.safetensors")
    with pytest.raises(InputError, match="not exactly one table"):
        open_vectors(tmp_path / "two.safetensors")
    for dtype in (np.float16, np.float32, np.float64, np.int8, np.float128):
        np.save(tmp_path / "a.npy", np.arange(6).reshape(3, 2).astype(dtype))
        assert open_vectors(tmp_path / "a.npy")[0].read(1, 3).tolist() == [[2, 3], [4, 5]]


@pytest.mark.parametrize(
    ("name", "content", "match"),
    [
        ("x.safetensors", b"", "not a whole"),
        ("x.safetensors", b"version https://git-lfs.github.com/spec/v1\n", "not a whole"),
        ("x.safetensors", (10**9).to_bytes(8, "little") + b"{}", "not a whole"),
        ("x.npy", b"nothing", "not a plain"),
        ("x.csv", b"1 2", "read from"),
        ("x.txt", b"1 two", "no table of plain numbers"),
        ("x.txt", b"1 2\n3", "no table of plain numbers"),
        ("x.txt", b"", "no table of plain numbers"),
    ],
)
def test_damaged_files(tmp_path, name, content, match):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=match):
        open_vectors(tmp_path / name)


def test_a_pickled_array_is_refused(tmp_path):
    np.save(tmp_path / "p.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(InputError, match="not a plain"):
        open_vectors(tmp_path / "p.npy")
    np.save(tmp_path / "v.npy", np.arange(4.0))
    with pytest.raises(InputError, match="table"):
        open_vectors(tmp_path / "v.npy")
    np.save(tmp_path / "c.npy", np.ones((2, 2), dtype=complex))
    with pytest.raises(InputError, match="real"):
        open_vectors(tmp_path / "c.npy")


def test_a_failed_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "v.safetensors"
    save_file({"vectors": torch.eye(3)}, path)

    class Failing(type(named_lines("kerdock", 4))):
        def rows(self, start, stop):
            raise MemoryError

    with pytest.raises(MemoryError):
        write_tensors(path, {"vectors": Failing(2, 0)}, {})
    assert torch.equal(load_file(path)["vectors"], torch.eye(3))
    assert list(tmp_path.iterdir()) == [path]
