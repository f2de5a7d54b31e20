"""NumPy files and arrays: every dtype and memory order against numpy's own reading."""

from __future__ import annotations

import io
import zipfile

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from repcap.errors import RepcapError, SourceError, UnsafeFileError, VectorsError
from repcap.sources import open_source

DTYPES = ["<f2", "<f4", "<f8", ">f2", ">f4", ">f8", "i1", "u1", "<i2", ">i2", "<i4", ">i8", "<u4"]


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_npy(dtype, order, tmp_path) -> None:
    stored = np.asarray(np.random.default_rng(0).integers(0, 100, (13, 5)).astype(dtype), order=order)
    np.save(tmp_path / "a.npy", stored)
    with open_source(tmp_path / "a.npy") as matrix:
        assert (matrix.count, matrix.dim, matrix.info.evidence) == (13, 5, "the only tensor of the source")
        got = torch.cat([block for _, block in matrix.blocks(4)])
        assert got.is_floating_point()
        assert np.array_equal(got.numpy().astype(np.float64), stored.astype(np.float64))
        assert np.array_equal(matrix.take([12, 3, 3]).numpy().astype(np.float64), stored[[12, 3, 3]].astype(np.float64))


@pytest.mark.parametrize("make", [np.asarray, np.asfortranarray, lambda a: a[::2], lambda a: a[:, ::-1]])
@pytest.mark.parametrize("dtype", [*DTYPES, "longdouble"])
def test_array_in_memory(dtype, make) -> None:
    stored = make(np.random.default_rng(1).integers(0, 100, (14, 6)).astype(dtype))
    if dtype == "longdouble":
        with pytest.raises(SourceError, match=r"dtype (float128|longdouble)"):
            open_source(stored)
        return
    with open_source(stored) as matrix:
        assert np.array_equal(matrix.read(0, len(stored)).numpy().astype(float), stored.astype(float))
        assert np.array_equal(matrix.take([3, 0]).numpy().astype(float), stored[[3, 0]].astype(float))


def test_array_that_may_not_be_written() -> None:
    stored = np.arange(6.0).reshape(2, 3)
    stored.setflags(write=False)
    assert open_source(stored).read(0, 2).tolist() == stored.tolist()


def test_block_is_no_view_of_the_array() -> None:
    stored = np.zeros((2, 3))
    open_source(stored).read(0, 2).fill_(1)
    assert not stored.any()


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=st.integers(1, 30), dim=st.integers(1, 6), size=st.integers(1, 9), order=st.sampled_from("CF"))
def test_blocks_cover_every_row_once(rows, dim, size, order, tmp_path) -> None:
    stored = np.asarray(np.arange(rows * dim, dtype=np.float32).reshape(rows, dim), order=order)
    np.save(tmp_path / "b.npy", stored)
    with open_source(tmp_path / "b.npy") as matrix:
        assert np.array_equal(np.concatenate([block.numpy() for _, block in matrix.blocks(size)]), stored)


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_npz(save, tmp_path) -> None:
    rng = np.random.default_rng(2)
    arrays = {"first": rng.standard_normal((7, 3)), "second": rng.standard_normal((9, 3)).astype("f4")}
    save(tmp_path / "a.npz", **arrays)
    for name, stored in arrays.items():
        with open_source(f"{tmp_path / 'a.npz'}::{name}") as matrix:
            assert np.array_equal(matrix.read(0, len(stored)).numpy(), stored)
            assert np.array_equal(matrix.take([2, 6]).numpy(), stored[[2, 6]])
            assert matrix.bytes_read == stored.nbytes + stored[:2].nbytes


def test_stored_member_is_read_in_place(tmp_path, monkeypatch) -> None:
    """No temporary file, and no more bytes than the rows asked for."""
    stored = np.random.default_rng(3).standard_normal((1000, 16))
    np.savez(tmp_path / "a.npz", x=stored)
    monkeypatch.setattr("tempfile.mkstemp", lambda *_, **__: pytest.fail("a temporary file was made"))
    with open_source(tmp_path / "a.npz") as matrix:
        assert np.array_equal(matrix.read(990, 1000).numpy(), stored[990:])
        assert matrix.bytes_read == 10 * 16 * 8


def test_temporary_file_of_a_compressed_member_goes(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    np.savez_compressed(tmp_path / "a.npz", x=np.ones((10, 4)))
    matrix = open_source(tmp_path / "a.npz")
    assert len(list((tmp_path / "tmp").iterdir())) == 1
    matrix.close()
    assert list((tmp_path / "tmp").iterdir()) == []


def test_vectors_and_scalars_are_one_row(tmp_path) -> None:
    assert open_source(np.arange(3.0)).read(0, 1).tolist() == [[0, 1, 2]]
    np.save(tmp_path / "s.npy", np.float32(2.5))
    assert open_source(tmp_path / "s.npy").read(0, 1).tolist() == [[2.5]]


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (np.zeros((2, 3, 4)), "has 3 dimensions"),
        (np.zeros((2, 3), dtype=complex), "is complex"),
        (np.zeros((2, 3), dtype=bool), "is boolean"),
        (np.zeros((2, 3), dtype="U4"), "no numbers"),
        (np.zeros((2, 3), dtype=[("a", "f4")]), "no numbers"),
        (np.zeros((2, 3), dtype="M8[s]"), "no numbers"),
    ],
)
def test_no_matrix_of_numbers(array, words, tmp_path) -> None:
    with pytest.raises(VectorsError, match=words):
        open_source(array)
    np.save(tmp_path / "x.npy", array)
    with pytest.raises(VectorsError, match=words):
        open_source(tmp_path / "x.npy")
    np.savez_compressed(tmp_path / "x.npz", x=array)
    with pytest.raises(VectorsError, match=words):
        open_source(tmp_path / "x.npz")


def test_pickled_objects_are_refused(tmp_path) -> None:
    np.save(tmp_path / "o.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(UnsafeFileError) as caught:
        open_source(tmp_path / "o.npy")
    assert str(caught.value) == (
        f"{tmp_path / 'o.npy'} holds pickled Python objects, which could run code: save a plain float array instead"
    )


def test_truncated_npy(tmp_path) -> None:
    path = tmp_path / "a.npy"
    np.save(path, np.ones((50, 4)))
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(SourceError, match=r"is truncated: its data would end at byte \d+, the file has \d+"):
        open_source(path)


@pytest.mark.parametrize(
    "body", [b"", b"\x93NUMPY", b"\x93NUMPY\x01\x00\xff\xff{", b"\x93NUMPY\x09\x00ab", b"junk" * 9]
)
def test_damaged_npy(body, tmp_path) -> None:
    path = tmp_path / "a.npy"
    path.write_bytes(body)
    with pytest.raises(SourceError, match=r"is not a readable \.npy file"):
        open_source(path)


@pytest.mark.parametrize("body", [b"", b"PK\x03\x04" + bytes(40), b"junk" * 30])
def test_damaged_npz(body, tmp_path) -> None:
    path = tmp_path / "a.npz"
    path.write_bytes(body)
    with pytest.raises(SourceError, match=r"is not a readable \.npz file"):
        open_source(path)


def test_npz_without_arrays(tmp_path) -> None:
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("readme.txt", "hello")
    with pytest.raises(SourceError, match="holds no arrays"):
        open_source(tmp_path / "a.npz")


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), suffix=st.sampled_from([".npy", ".npz"]))
def test_damaged_bytes_never_give_anything_but_our_errors(data, suffix, tmp_path) -> None:
    stream = io.BytesIO()
    (np.save if suffix == ".npy" else np.savez)(stream, np.ones((3, 4), np.float32))
    body = bytearray(stream.getvalue())
    for _ in range(data.draw(st.integers(0, 4))):
        body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path / f"fuzz{suffix}"
    path.write_bytes(bytes(body[: data.draw(st.integers(0, len(body)))]))
    try:
        with open_source(path) as matrix:
            if matrix.count:
                matrix.read(0, 1)
    except RepcapError:
        pass
