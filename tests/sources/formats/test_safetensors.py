"""Local safetensors: dtypes, row blocks, shards whose index is wrong."""

from __future__ import annotations

import json
import struct

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from repcap.errors import InputError, SourceError, UnsafeFileError, VectorsError
from repcap.sources import open_source

EMBED, HEAD = "model.embed_tokens.weight", "lm_head.weight"
FLOATS = [torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2]
INTEGERS = [torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64, torch.uint16, torch.uint32]


def raw_file(path, header: object, data: bytes = b"") -> None:
    """A safetensors file with exactly this header, written by hand."""
    body = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(body)) + body + data)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_floats_have_the_stored_values(dtype, save, rng) -> None:
    stored = torch.randn(33, 7, generator=rng).to(dtype)
    with open_source(save({EMBED: stored})) as matrix:
        assert matrix.info.dtype == str(dtype).removeprefix("torch.")
        got = matrix.read(0, 33)
        assert torch.equal(got.double(), stored.double())
        wide = {torch.float8_e4m3fn: torch.float32, torch.float8_e5m2: torch.float32}
        assert got.dtype == wide.get(dtype, dtype)


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_integers_are_read_exactly(dtype, save) -> None:
    extremes = torch.iinfo(dtype)
    top = min(extremes.max, 2**53)
    low = max(extremes.min, -(2**53))
    stored = torch.tensor([[top, low, 3], [1, 2, top - 1]], dtype=torch.int64).to(dtype)
    with open_source(save({"codes": stored}), "codes") as matrix:
        assert matrix.read(0, 2).to(torch.int64).tolist() == stored.to(torch.int64).tolist()


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), rows=st.integers(1, 40), dim=st.integers(1, 9), dtype=st.sampled_from(FLOATS))
def test_blocks_cover_every_row_once(data, rows, dim, dtype, tmp_path) -> None:
    from safetensors.torch import save_file

    stored = (torch.arange(rows * dim, dtype=torch.float64).reshape(rows, dim) % 13 - 6).to(dtype)
    path = tmp_path / "blocks.safetensors"
    save_file({"before": torch.zeros(5), EMBED: stored, "z": torch.zeros(3)}, path)
    with open_source(path) as matrix:
        size = data.draw(st.integers(1, rows + 3))
        parts = list(matrix.blocks(size))
        assert [first for first, _ in parts] == list(range(0, rows, size))
        assert torch.equal(torch.cat([block for _, block in parts]).double(), stored.double())
        assert matrix.bytes_read == stored.numel() * stored.element_size()
        wanted = data.draw(st.lists(st.integers(0, rows - 1), max_size=12))
        assert torch.equal(matrix.take(wanted).double().reshape(-1, dim), stored[wanted].double())


@pytest.mark.parametrize(("start", "stop"), [(-1, 2), (2, 2), (3, 2), (0, 6), (5, 6)])
def test_rows_outside(start, stop, save, rng) -> None:
    with (
        open_source(save({EMBED: torch.randn(5, 2, generator=rng)})) as matrix,
        pytest.raises(InputError, match="outside"),
    ):
        matrix.read(start, stop)


@pytest.mark.parametrize("index", [-1, 5])
def test_take_outside(index, save, rng) -> None:
    with (
        open_source(save({EMBED: torch.randn(5, 2, generator=rng)})) as matrix,
        pytest.raises(InputError, match="outside"),
    ):
        matrix.take([0, index])


def test_tensor_by_name_in_the_spec(save, rng) -> None:
    made = {EMBED: torch.randn(5, 2, generator=rng), "layers.0.up.weight": torch.randn(4, 2, generator=rng)}
    path = save(made)
    with open_source(f"{path}::layers.0.up.weight") as matrix:
        assert (matrix.info.source, matrix.info.role, matrix.info.evidence) == (
            str(path),
            "matrix",
            "asked for by name",
        )
        assert torch.equal(matrix.read(0, 4), made["layers.0.up.weight"])
    with open_source(path, "layers.0.up") as matrix:
        assert matrix.info.name == "layers.0.up.weight"
    with pytest.raises(InputError, match="give one of the two"):
        open_source(f"{path}::{EMBED}", "unembedding")


def test_both_is_two_matrices(save, rng) -> None:
    path = save({EMBED: torch.randn(5, 2, generator=rng)})
    with pytest.raises(InputError, match="one after the other"):
        open_source(path, "both")


def test_vector_and_scalar_are_one_row(save, rng) -> None:
    path = save({"v": torch.arange(4.0), "s": torch.tensor(2.5)})
    with open_source(path, "v") as matrix:
        assert matrix.read(0, 1).tolist() == [[0, 1, 2, 3]]
    with open_source(path, "s") as matrix:
        assert matrix.read(0, 1).tolist() == [[2.5]]


def test_three_dimensions_are_refused(save) -> None:
    path = save({"experts": torch.zeros(2, 3, 4), "other": torch.zeros(3, 4)})
    with pytest.raises(VectorsError) as caught:
        open_source(path, "experts")
    assert str(caught.value) == (
        f"{path}: tensor 'experts' has 3 dimensions (2 x 3 x 4): give a matrix, one vector a row"
    )


@pytest.mark.parametrize(("dtype", "words"), [(torch.complex64, "is complex"), (torch.bool, "is boolean")])
def test_no_real_numbers(dtype, words, save) -> None:
    path = save({"x": torch.zeros(3, 4, dtype=dtype)})
    with pytest.raises(VectorsError, match=words):
        open_source(path, "x")


def test_a_dtype_that_is_not_known_stops_only_its_own_tensor(tmp_path) -> None:
    path = tmp_path / "new.safetensors"
    header = {
        "odd": {"dtype": "F4", "shape": [2, 4], "data_offsets": [0, 4]},
        EMBED: {"dtype": "F32", "shape": [2, 2], "data_offsets": [4, 20]},
    }
    raw_file(path, header, bytes(20))
    assert open_source(path).count == 2
    with pytest.raises(SourceError, match="dtype F4, which repcap cannot decode"):
        open_source(path, "odd")


# ---- shards ---------------------------------------------------------------------------------------------------------


def test_shards_with_an_index(shard, rng) -> None:
    table, head = torch.randn(9, 4, generator=rng), torch.randn(9, 4, generator=rng)
    folder = shard({"a.safetensors": {EMBED: table}, "b.safetensors": {HEAD: head}})
    with open_source(folder) as matrix:
        assert torch.equal(matrix.read(0, 9), table)
        assert matrix.info.tied is False
    with open_source(folder, "unembedding") as matrix:
        assert torch.equal(matrix.read(0, 9), head)
    with open_source(folder / "model.safetensors.index.json") as matrix:
        assert matrix.info.name == EMBED


def test_index_that_names_the_wrong_shard_is_corrected_by_the_headers(shard, rng) -> None:
    table, head = torch.randn(9, 4, generator=rng), torch.randn(9, 4, generator=rng)
    folder = shard(
        {"a.safetensors": {EMBED: table}, "b.safetensors": {HEAD: head}},
        weight_map={EMBED: "b.safetensors", HEAD: "a.safetensors"},
    )
    with open_source(folder) as matrix:
        assert torch.equal(matrix.read(0, 9), table)


def test_index_that_names_a_tensor_no_shard_holds(shard, rng) -> None:
    folder = shard(
        {"a.safetensors": {HEAD: torch.randn(9, 4, generator=rng)}},
        weight_map={EMBED: "a.safetensors", HEAD: "a.safetensors"},
    )
    with open_source(folder) as matrix:
        assert (matrix.info.name, matrix.info.role, matrix.info.tied) == (HEAD, "unembedding", None)
        assert matrix.info.warnings == (
            f"the index names {EMBED}, but no file holds it",
            f"the source holds no embedding: its unembedding {HEAD} is measured",
        )
    with pytest.raises(SourceError) as caught:
        open_source(folder, EMBED)
    assert str(caught.value) == (
        f"the index places tensor {EMBED!r} in a.safetensors, but neither it nor another shard holds it: "
        "measure another tensor, or take the checkpoint from elsewhere"
    )


def test_missing_shard_matters_only_if_it_is_wanted(shard, rng) -> None:
    table = torch.randn(9, 4, generator=rng)
    weight_map = {EMBED: "a.safetensors", "model.layers.0.up.weight": "b.safetensors"}
    folder = shard({"a.safetensors": {EMBED: table}}, weight_map=weight_map)
    with open_source(folder) as matrix:
        assert torch.equal(matrix.read(0, 9), table)
        assert matrix.info.tied is True  # the index names every tensor, and no head
        assert matrix.info.warnings == (
            "b.safetensors cannot be read, and its tensors are listed from the index only: "
            f"{folder / 'b.safetensors'} is missing: the index names it; fetch that shard",
        )
    with pytest.raises(SourceError) as caught:
        open_source(folder, "model.layers.0.up.weight")
    assert str(caught.value) == f"{folder / 'b.safetensors'} is missing: the index names it; fetch that shard"


def test_head_in_a_missing_shard_is_not_tied(shard, rng) -> None:
    weight_map = {EMBED: "a.safetensors", HEAD: "b.safetensors"}
    folder = shard({"a.safetensors": {EMBED: torch.randn(9, 4, generator=rng)}}, weight_map=weight_map)
    with open_source(folder) as matrix:
        assert matrix.info.tied is None
        assert f"{HEAD} cannot be compared with {EMBED}" in matrix.info.evidence
    with pytest.raises(SourceError, match=r"b\.safetensors is missing"):
        open_source(folder, "unembedding")


@pytest.mark.parametrize(
    "file", ["../secret.safetensors", "/etc/passwd", "sub/x.safetensors", "..\\x", "C:\\x", "..", ""]
)
def test_index_that_points_outside(file, shard, rng) -> None:
    folder = shard({"a.safetensors": {HEAD: torch.randn(2, 2, generator=rng)}}, weight_map={EMBED: file})
    with pytest.raises(UnsafeFileError) as caught:
        open_source(folder)
    assert str(caught.value) == (
        f"{folder / 'model.safetensors.index.json'} places tensor {EMBED!r} in {file!r}, outside its own directory: "
        "do not use this checkpoint"
    )


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b"{}", b'{"weight_map": [1]}', b'{"weight_map": {"a": 1}}', b"\xff\xfe"]
)
def test_damaged_index(body, tmp_path) -> None:
    (tmp_path / "model.safetensors.index.json").write_bytes(body)
    with pytest.raises(SourceError, match="is no readable index"):
        open_source(tmp_path)


def test_shards_without_an_index(tmp_path, rng) -> None:
    from safetensors.torch import save_file

    table, head = torch.randn(9, 4, generator=rng), torch.randn(9, 4, generator=rng)
    save_file({EMBED: table}, tmp_path / "model-00001-of-00002.safetensors")
    with open_source(tmp_path) as matrix:
        assert matrix.info.tied is None
        assert matrix.info.warnings == ("1 of 2 shards are missing",)
    save_file({HEAD: head}, tmp_path / "model-00002-of-00002.safetensors")
    with open_source(tmp_path) as matrix:
        assert matrix.info.tied is False


# ---- truncation -----------------------------------------------------------------------------------------------------


def test_truncated_file(save, rng) -> None:
    table = torch.randn(9, 4, generator=rng)
    path = save({EMBED: table, "z.weight": torch.randn(50, 4, generator=rng)})
    whole = path.read_bytes()
    path.write_bytes(whole[:-100])
    with pytest.raises(SourceError) as caught:
        open_source(path)
    assert str(caught.value) == (
        f"{path} is truncated: {len(whole) - 100} bytes of {len(whole)}; fetch it again, or pass --allow-truncated "
        "to read the tensors that are whole"
    )
    with open_source(path, allow_truncated=True) as matrix:
        assert torch.equal(matrix.read(0, 9), table)
        assert matrix.info.warnings == ("model.safetensors is truncated: only tensors that are whole can be read",)
    with pytest.raises(SourceError, match="lies beyond the end of the truncated file"):
        open_source(path, "z.weight", allow_truncated=True)


def test_a_file_that_shrinks_while_it_is_read(save, rng) -> None:
    path = save({EMBED: torch.randn(900, 4, generator=rng)})
    with open_source(path) as matrix:
        matrix.read(0, 10)
        with path.open("r+b") as file:
            file.truncate(2000)
        with pytest.raises(SourceError, match="ends at byte 2000, in the middle of the matrix"):
            matrix.read(0, 900)


def test_empty_matrix_is_left_to_the_geometry(save) -> None:
    with open_source(save({EMBED: torch.zeros(0, 4)}), EMBED) as matrix:
        assert (matrix.count, matrix.dim) == (0, 4)


def test_reading_holds_no_more_than_a_block(save, rng) -> None:
    """Numpy reports its buffers to tracemalloc: peak of a pass over 8 MB stays near one block of 64 kB."""
    import tracemalloc

    path = save({EMBED: torch.randn(32768, 64, generator=rng)})
    with open_source(path) as matrix:
        matrix.read(0, 1)
        tracemalloc.start()
        for _, block in matrix.blocks(256):
            assert block.shape == (256, 64)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < 4 * 256 * 64 * 4


def test_values_match_numpy_bit_for_bit(save) -> None:
    stored = torch.from_numpy(np.arange(60, dtype=np.uint16).reshape(6, 10).view(np.float16).copy())
    with open_source(save({EMBED: stored})) as matrix:
        assert matrix.read(0, 6).view(torch.int16).tolist() == stored.view(torch.int16).tolist()
