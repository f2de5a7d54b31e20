"""Hostile files that say little and mean much: what they would grow to is known before it is made."""

from __future__ import annotations

import json
import struct
import zipfile

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from repcap.errors import SourceError
from repcap.sources import open_source

EMBED = "model.embed_tokens.weight"


def test_lists_of_one_list_without_end(tmp_path) -> None:
    """Three hundred times the same list, six deep: 5 kB of pickle, and 10^15 things for whoever walks through it."""
    inner: list = [torch.ones(1)]
    for _ in range(6):
        inner = [inner] * 300
    torch.save({"a": inner, EMBED: torch.ones(3, 2)}, tmp_path / "model.bin")
    with pytest.raises(SourceError, match="more than 1048576 things"):
        open_source(tmp_path / "model.bin")


def test_strides_of_zero(tmp_path) -> None:
    """Four bytes that claim to be 10^18 numbers: a block of rows alone would fill the memory."""
    torch.save({EMBED: torch.zeros(1).as_strided((10**9, 10**9), (0, 0))}, tmp_path / "model.bin")
    with pytest.raises(SourceError, match="says more numbers than the file holds"):
        open_source(tmp_path / "model.bin")


def test_torch_archive_with_compressed_members(tmp_path) -> None:
    """torch would unpack a pickle of any size into memory, and map compressed bytes as if they were numbers."""
    torch.save({EMBED: torch.ones(3, 2)}, tmp_path / "model.bin")
    with (
        zipfile.ZipFile(tmp_path / "model.bin") as whole,
        zipfile.ZipFile(tmp_path / "model.pt", "w", zipfile.ZIP_DEFLATED) as packed,
    ):
        for member in whole.infolist():
            packed.writestr(member.filename, whole.read(member))
    with pytest.raises(SourceError, match="is compressed, as torch never writes it"):
        open_source(tmp_path / "model.pt")


def test_header_of_thirty_million_lists(tmp_path) -> None:
    """90 MB of JSON that is 2 GB of Python."""
    body = b'{"a":[' + b"[]," * 30_000_000 + b"[]]}"
    (tmp_path / "a.safetensors").write_bytes(struct.pack("<Q", len(body)) + body)
    with pytest.raises(SourceError, match="too many parts"):
        open_source(tmp_path / "a.safetensors")


def test_npz_that_would_fill_the_disk(tmp_path, monkeypatch) -> None:
    """A compressed member of as many terabytes as its header says."""
    np.savez_compressed(tmp_path / "a.npz", W_dec=np.zeros((4000, 64), np.float32))
    usage = __import__("collections").namedtuple("usage", "total used free")(1, 1, 1_000_000)
    monkeypatch.setattr("shutil.disk_usage", lambda _: usage)
    with pytest.raises(SourceError, match=r"has 1 MB free of the 1 MB that it unpacks to: set TMPDIR"):
        open_source(tmp_path / "a.npz")


def test_npz_member_shorter_than_its_header(tmp_path) -> None:
    """Known before a byte of it is unpacked."""
    header = b"{'descr':'<f4','fortran_order':False,'shape':(1000000,1000000)}".ljust(118)
    with zipfile.ZipFile(tmp_path / "a.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("W_dec.npy", b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + bytes(16))
    with pytest.raises(SourceError, match="is truncated"):
        open_source(tmp_path / "a.npz")


@pytest.mark.parametrize("what", ["tensors", "pairs", "strings", "arrays"])
def test_gguf_counts_in_a_file_of_holes(what, tmp_path) -> None:
    """A sparse terabyte costs nothing to make, and a count of 10^10 agrees with its size: zeros read as empty names."""
    path = tmp_path / "a.gguf"
    key = struct.pack("<Q", 1) + b"k" + struct.pack("<I", 9)
    counts, pair = {
        "tensors": ((10**10, 0), b""),
        "pairs": ((0, 10**10), b""),
        "strings": ((0, 1), key + struct.pack("<IQ", 8, 10**11)),
        "arrays": ((0, 1), key + struct.pack("<IQ", 9, 10**11)),
    }[what]
    with path.open("wb") as file:
        file.write(b"GGUF" + struct.pack("<IQQ", 3, *counts) + pair)
        file.truncate(1 << 40)
    with pytest.raises(SourceError, match="damaged header"):
        open_source(path)


def test_scales_larger_than_the_weight(tmp_path) -> None:
    """Scales are read whole, so that a file of holes could make them as large as the memory."""
    embed = {"dtype": "F8_E4M3", "shape": [40, 8], "data_offsets": [0, 320]}
    scale = {"dtype": "F32", "shape": [1 << 18, 1 << 18], "data_offsets": [320, 320 + (1 << 38)]}
    body = json.dumps({EMBED: embed, f"{EMBED}_scale": scale}).encode()
    with (tmp_path / "a.safetensors").open("wb") as file:
        file.write(struct.pack("<Q", len(body)) + body)
        file.truncate(8 + len(body) + 320 + (1 << 38))
    with pytest.raises(SourceError, match="does not say how it scales"):
        open_source(tmp_path / "a.safetensors")


def test_blocks_of_scales_larger_than_any_integer(tmp_path) -> None:
    save_file(
        {EMBED: torch.ones(40, 8).to(torch.float8_e4m3fn), f"{EMBED}_scale": torch.full((1, 2), 2.0)},
        tmp_path / "a.safetensors",
    )
    config = {"quantization_config": {"weight_block_size": [10**30, 4]}}
    (tmp_path / "config.json").write_text(json.dumps(config))
    with open_source(tmp_path / "a.safetensors") as matrix:
        assert matrix.read(0, 40).tolist() == [[2.0] * 8] * 40


@pytest.mark.parametrize("names", [("00", "9999999999999"), ("00", "0", "1"), ("00", "02")])
def test_numbered_parts_that_do_not_count(names, tmp_path) -> None:
    """The number in a file's name must not become the size of a list, nor leave it empty."""
    for name in names:
        torch.save({"tok_embeddings.weight": torch.ones(4, 2)}, tmp_path / f"consolidated.{name}.pth")
    with open_source(tmp_path) if names[-1] == "9999999999999" else pytest.raises(SourceError, match=r"lacks|several"):
        if names[-1] != "9999999999999":
            open_source(tmp_path)


def test_numbered_parts_beyond_ten(tmp_path) -> None:
    """2 comes before 10, whatever the alphabet says."""
    rows = torch.arange(24.0).reshape(12, 2)
    for number in range(12):
        torch.save({"tok_embeddings.weight": rows[number : number + 1]}, tmp_path / f"consolidated.{number}.pth")
    (tmp_path / "params.json").write_text(json.dumps({"dim": 2, "vocab_size": 12}))
    with open_source(tmp_path) as matrix:
        assert torch.equal(matrix.read(0, 12), rows)


@pytest.mark.parametrize(
    "rest",
    [
        {
            "model": {
                "type": "BPE",
                "vocab": {"a": 0, "ab": 2},
                "continuing_subword_prefix": "abc",
                "merges": [["a", "b"]],
            }
        },
        {
            "model": {"type": "Unigram", "vocab": [["a", 0.0], ["b", -1.0], ["c", -2.0]]},
            "normalizer": {"type": "Precompiled", "precompiled_charsmap": "////////"},
        },
    ],
)
def test_a_tokenizer_is_read_and_not_built(rest, tmp_path) -> None:
    """What the tokenizers package builds from these panics, or takes gigabytes and ends the process."""
    save_file({EMBED: torch.ones(3, 2)}, tmp_path / "model.safetensors")
    (tmp_path / "tokenizer.json").write_text(json.dumps({"version": "1.0", "added_tokens": [], **rest}))
    with open_source(tmp_path) as matrix:
        assert (matrix.tokens.count, matrix.tokens.text(0), matrix.info.warnings) == (3, "a", ())


@pytest.mark.parametrize(
    "tokenizer",
    [
        [],
        {"model": None},
        {"model": {"vocab": [["a", 1.0], "b"]}},
        {"model": {"vocab": {"a": -1}}},
        {"model": {"vocab": {"a": True}}},
        {"model": {"vocab": {"a": 1 << 40}}},
        {"model": {"vocab": {}}, "added_tokens": {"a": 1}},
        {"model": {"vocab": {}}, "added_tokens": ["a"]},
        {"model": {"vocab": {}}, "added_tokens": [{"content": "a", "id": "1"}]},
    ],
)
def test_a_tokenizer_without_a_vocabulary_is_a_warning(tokenizer, tmp_path) -> None:
    save_file({EMBED: torch.ones(3, 2)}, tmp_path / "model.safetensors")
    (tmp_path / "tokenizer.json").write_text(json.dumps(tokenizer))
    with open_source(tmp_path) as matrix:
        assert matrix.tokens is None
        assert matrix.info.warnings[0].startswith("no token texts: ")
