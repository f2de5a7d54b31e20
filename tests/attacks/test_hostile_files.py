"""Hostile files, each with its story. None may run code, leave its directory, fill the memory or hang.

A checkpoint is a download from a stranger. What such files can try, and what must happen instead.
"""

from __future__ import annotations

import io
import json
import os
import pickle
import struct
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from repcap.errors import RepcapError, SourceError, UnsafeFileError
from repcap.sources import inspect_source, open_source

EMBED = "model.embed_tokens.weight"


class Calls:
    """Pickles to a call of `function(*arguments)` when it is loaded."""

    def __init__(self, function, *arguments) -> None:
        self.call = (function, arguments)

    def __reduce__(self):
        return self.call


# ---- code in pickles ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("zipped", [True, False], ids=["zip", "legacy"])
def test_torch_file_that_makes_a_directory(zipped, tmp_path) -> None:
    """The classic: a state dict with one entry that is a call. torch.load without weights_only would make it."""
    trap = tmp_path / "trap"
    path = tmp_path / "pytorch_model.bin"
    torch.save({EMBED: torch.ones(3, 2), "x": Calls(os.mkdir, str(trap))}, path, _use_new_zipfile_serialization=zipped)
    for look in (open_source, inspect_source):
        with pytest.raises(UnsafeFileError, match="runs no code from files"):
            look(path)
    assert not trap.exists()


@pytest.mark.parametrize("protocol", range(6))
def test_bare_pickle_under_a_weights_name(protocol, tmp_path) -> None:
    """No torch file at all: a pickle of any protocol whose name ends in .pt."""
    trap = tmp_path / "trap"
    path = tmp_path / "model.pt"
    path.write_bytes(pickle.dumps(Calls(os.mkdir, str(trap)), protocol=protocol))
    with pytest.raises(SourceError):
        open_source(path)
    assert not trap.exists()


def test_call_hidden_in_a_shard(tmp_path) -> None:
    """The index is clean, and so is the shard with the embedding; the second shard holds the call."""
    trap = tmp_path / "trap"
    torch.save({EMBED: torch.ones(3, 2)}, tmp_path / "a.bin")
    torch.save({"x": Calls(os.mkdir, str(trap))}, tmp_path / "b.bin")
    (tmp_path / "pytorch_model.bin.index.json").write_text(json.dumps({"weight_map": {EMBED: "a.bin", "x": "b.bin"}}))
    with pytest.raises(UnsafeFileError, match=r"b\.bin is a pickle that asks for"):
        open_source(tmp_path)
    assert not trap.exists()


def test_object_array_in_npy_and_npz(tmp_path) -> None:
    """NumPy unpickles object arrays if it is allowed to."""
    trap = tmp_path / "trap"
    array = np.array([[Calls(os.mkdir, str(trap))]], dtype=object)
    np.save(tmp_path / "a.npy", array, allow_pickle=True)
    np.savez(tmp_path / "a.npz", W_dec=array)
    for name in ("a.npy", "a.npz"):
        with pytest.raises(UnsafeFileError, match="pickled Python objects, which could run code"):
            open_source(tmp_path / name)
    assert not trap.exists()


def test_npy_header_with_an_expression(tmp_path) -> None:
    """The header of a .npy file is a Python literal: evaluating it as code would run this."""
    trap = tmp_path / "trap"
    text = f"{{'descr': '<f4', 'fortran_order': False, 'shape': (__import__('os').mkdir({str(trap)!r}),)}}".encode()
    text += b" " * (-(len(text) + 11) % 64) + b"\n"
    (tmp_path / "a.npy").write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text)
    with pytest.raises(SourceError, match=r"is not a readable \.npy file"):
        open_source(tmp_path / "a.npy")
    assert not trap.exists()


def test_package_is_not_imported(tmp_path, monkeypatch) -> None:
    """`pkg://` finds files of a package; importing it would run its code."""
    (tmp_path / "trap_package").mkdir()
    (tmp_path / "trap_package" / "__init__.py").write_text("raise SystemExit('it was imported')")
    np.save(tmp_path / "trap_package" / "w.npy", np.ones((3, 2)))
    monkeypatch.syspath_prepend(str(tmp_path))
    assert open_source("pkg://trap_package/w.npy").count == 3
    assert "trap_package" not in sys.modules


# ---- ways out of the directory --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["../secret.safetensors", "sub/../../secret.safetensors", "{absolute}", "..\\secret.safetensors"]
)
def test_index_that_leads_to_another_file(name, tmp_path) -> None:
    """`weight_map` is free text: joined to the directory blindly, it reads any file of the user."""
    secret = tmp_path / "secret.safetensors"
    save_file({EMBED: torch.ones(3, 2)}, secret)
    (tmp_path / "model").mkdir()
    wanted = name.replace("{absolute}", str(secret))
    (tmp_path / "model" / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {EMBED: wanted}}))
    with pytest.raises(UnsafeFileError, match="outside its own directory: do not use this checkpoint"):
        open_source(tmp_path / "model")


def test_npz_member_with_a_path(tmp_path) -> None:
    """A member called ../../x.npy: unpacking by its name would write there."""
    stream = io.BytesIO()
    np.save(stream, np.ones((4, 2), np.float32))
    with zipfile.ZipFile(tmp_path / "a.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("../../escaped.npy", stream.getvalue())
    with open_source(tmp_path / "a.npz") as matrix:
        assert matrix.read(0, 4).tolist() == [[1, 1]] * 4
    assert not (tmp_path.parent.parent / "escaped.npy").exists()
    assert not (tmp_path.parent / "escaped.npy").exists()


# ---- sizes that are lies --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("length", [2**63, 2**64 - 1, 99_999_999])
def test_header_length_bomb(length, tmp_path) -> None:
    """Eight bytes that promise a header of exabytes: allocated first, the process dies."""
    (tmp_path / "a.safetensors").write_bytes(struct.pack("<Q", length) + b"{}")
    with pytest.raises(SourceError, match=r"a header of|truncated inside its header"):
        open_source(tmp_path / "a.safetensors")


def test_tensor_of_petabytes(tmp_path) -> None:
    """The header is consistent, but the file is 200 bytes long."""
    shape = [1 << 25, 1 << 25]
    header = json.dumps({EMBED: {"dtype": "F32", "shape": shape, "data_offsets": [0, 4 << 50]}}).encode()
    (tmp_path / "a.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + bytes(100))
    with pytest.raises(SourceError, match="is truncated"):
        open_source(tmp_path / "a.safetensors")
    with pytest.raises(SourceError, match="lies beyond the end of the truncated file"):
        open_source(tmp_path / "a.safetensors", allow_truncated=True)


def test_header_nested_a_million_times(tmp_path) -> None:
    """Recursion in the JSON reader: a stack overflow, unless it is caught."""
    body = b'{"a":' * 1_000_000
    (tmp_path / "a.safetensors").write_bytes(struct.pack("<Q", len(body)) + body)
    with pytest.raises(SourceError, match="damaged header"):
        open_source(tmp_path / "a.safetensors")


@pytest.mark.parametrize("name", ["config.json", "model.safetensors.index.json", "tokenizer.json", "vocab.json"])
def test_side_files_nested_a_million_times(name, tmp_path) -> None:
    """The same in the small files beside the weights: a warning, or for the index an error."""
    save_file({EMBED: torch.ones(3, 2)}, tmp_path / "model.safetensors")
    (tmp_path / name).write_bytes(b'{"a":' * 1_000_000)
    if "index" in name:
        with pytest.raises(SourceError, match="is no readable index"):
            open_source(tmp_path)
        return
    with open_source(tmp_path) as matrix:
        assert matrix.count == 3
        assert len(matrix.info.warnings) == 1


def test_vocabulary_with_an_id_of_billions(tmp_path) -> None:
    """One entry, id 4e9: a table from 0 to that id would take 32 GB."""
    save_file({EMBED: torch.ones(3, 2)}, tmp_path / "model.safetensors")
    (tmp_path / "vocab.json").write_text(json.dumps({"a": 4_000_000_000}))
    tokenizer = {"version": "1.0", "model": {"type": "WordLevel", "vocab": {"a": 4_000_000_000}, "unk_token": "a"}}
    (tmp_path / "tokenizer.json").write_text(json.dumps({**tokenizer, "added_tokens": []}))
    with open_source(tmp_path) as matrix:
        assert matrix.tokens is None
        assert len(matrix.info.warnings) == 2


def test_zip_bomb_in_npz(tmp_path) -> None:
    """A member that says 8 numbers and unpacks to 120 MB of zeros: no more than the header's own size is written."""
    stream = io.BytesIO()
    np.save(stream, np.ones((4, 2), np.float32))
    with (
        zipfile.ZipFile(tmp_path / "a.npz", "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("W_dec.npy", "w") as out,
    ):
        out.write(stream.getvalue())
        for _ in range(30):
            out.write(bytes(4 << 20))
    with open_source(tmp_path / "a.npz") as matrix:
        assert matrix.read(0, 4).tolist() == [[1, 1]] * 4
        assert matrix._base._rows.path.stat().st_size == len(stream.getvalue())  # type: ignore[attr-defined]


def test_npz_member_that_unpacks_to_a_header_of_gigabytes(tmp_path) -> None:
    """Version 2 of .npy has a header length of 32 bits, and 1.5 GB of spaces take 1.5 MB in a zip archive."""
    with (
        zipfile.ZipFile(tmp_path / "a.npz", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        archive.open("W_dec.npy", "w", force_zip64=True) as out,
    ):
        out.write(b"\x93NUMPY\x02\x00" + struct.pack("<I", 1536 << 20))
        for _ in range(96):
            out.write(b" " * (16 << 20))
    with pytest.raises(SourceError, match="a header of 1610612736 bytes"):
        inspect_source(tmp_path / "a.npz")


def test_npy_shape_of_truth_values(tmp_path) -> None:
    """True is a whole number to Python, and none to torch."""
    header = b"{'descr':'<f4','fortran_order':False,'shape':(True,4)}".ljust(118)
    (tmp_path / "a.npy").write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + bytes(16))
    with pytest.raises(SourceError, match="shape"):
        open_source(tmp_path / "a.npy")


@pytest.mark.parametrize("damage", [(10, b"\x7f"), (11, b"\0")])
def test_npy_header_that_is_no_python(damage, tmp_path) -> None:
    """Brackets that do not close, for numpy's own tokenizer."""
    np.save(tmp_path / "a.npy", np.ones((4, 2)))
    body = bytearray((tmp_path / "a.npy").read_bytes())
    at, byte = damage
    body[at : at + 1] = byte
    (tmp_path / "a.npy").write_bytes(body)
    with pytest.raises(SourceError, match=r"is not a readable \.npy file"):
        open_source(tmp_path / "a.npy")


def test_npy_of_exabytes(tmp_path) -> None:
    """A shape that overflows 64 bits when it is multiplied."""
    for shape in ((2**40, 2**40), (2**63, 2), (10**400,)):
        header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}".encode()
        header += b" " * (-(len(header) + 11) % 64) + b"\n"
        (tmp_path / "a.npy").write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + bytes(64))
        with pytest.raises(RepcapError):
            open_source(tmp_path / "a.npy")


@pytest.mark.parametrize("kind", [8, 4, 12, 9], ids=["strings", "uint32", "float64", "arrays"])
def test_gguf_array_of_exabytes(kind, tmp_path) -> None:
    """A metadata array with 2^61 elements: walked blindly, it never ends."""
    pair = struct.pack("<Q", 1) + b"k" + struct.pack("<IIQ", 9, kind, 2**61)
    (tmp_path / "a.gguf").write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + pair + bytes(4000))
    with pytest.raises(SourceError):
        open_source(tmp_path / "a.gguf")


def test_gguf_with_a_quintillion_tensors(tmp_path) -> None:
    """Counts are believed only as far as the file could hold them."""
    (tmp_path / "a.gguf").write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 2**60, 2**60) + bytes(100))
    with pytest.raises(SourceError, match="damaged header"):
        open_source(tmp_path / "a.gguf")


def test_gguf_arrays_in_arrays(tmp_path) -> None:
    """Arrays nested a thousand deep, for readers that recurse."""
    pair = struct.pack("<Q", 1) + b"k" + struct.pack("<I", 9) + struct.pack("<IQ", 9, 1) * 1000
    (tmp_path / "a.gguf").write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + pair)
    with pytest.raises(SourceError, match="array of type 9"):
        open_source(tmp_path / "a.gguf")


def test_gguf_split_into_ninety_thousand_parts(tmp_path, gguf_bytes) -> None:
    """The name alone says how many siblings to look for."""
    path = tmp_path / "m-00001-of-99999.gguf"
    path.write_bytes(gguf_bytes)
    with open_source(path) as matrix:
        assert matrix.info.tied is None
        assert matrix.info.warnings[0].startswith("99998 of 99999 parts are missing")


@pytest.fixture
def gguf_bytes(tmp_path) -> bytes:
    import gguf

    writer = gguf.GGUFWriter(str(tmp_path / "s.gguf"), "llama")
    writer.add_tensor("token_embd.weight", np.ones((3, 32), np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return (tmp_path / "s.gguf").read_bytes()


# ---- two truths in one file -----------------------------------------------------------------------------------------


def test_name_that_occurs_twice(tmp_path) -> None:
    """Readers that keep the first and readers that keep the last see different weights."""
    entry = '{"dtype":"F32","shape":[1,1],"data_offsets":[%d,%d]}'
    body = f'{{"{EMBED}":{entry % (0, 4)},"{EMBED}":{entry % (4, 8)}}}'.encode()
    (tmp_path / "a.safetensors").write_bytes(struct.pack("<Q", len(body)) + body + bytes(8))
    with pytest.raises(SourceError, match="a name occurs twice"):
        open_source(tmp_path / "a.safetensors")


def test_tensors_that_overlap(tmp_path) -> None:
    """Two names for overlapping bytes: a scanner checks one, the loader uses the other."""
    header = {
        EMBED: {"dtype": "U8", "shape": [2, 4], "data_offsets": [0, 8]},
        "other": {"dtype": "U8", "shape": [2, 4], "data_offsets": [4, 12]},
    }
    body = json.dumps(header).encode()
    (tmp_path / "a.safetensors").write_bytes(struct.pack("<Q", len(body)) + body + bytes(12))
    with pytest.raises(SourceError, match="overlap: the file is damaged or hostile"):
        open_source(tmp_path / "a.safetensors")


def test_control_characters_in_names_stay_one_line(tmp_path, repcap) -> None:
    """A tensor name with line breaks and terminal codes must not forge output lines."""
    save_file({"a\nrepcap: all fine\x1b[2J": torch.ones(40, 2), "b": torch.ones(2, 2)}, tmp_path / "a.safetensors")
    outcome = repcap("measure", tmp_path / "a.safetensors")
    assert outcome.code == 2
    assert outcome.err.count("\n") == 1
    assert "\x1b" not in outcome.err
    listed = repcap("inspect", tmp_path / "a.safetensors")
    assert listed.code == 0
    assert "\x1b[2J" not in listed.out
    assert "\nrepcap: all fine" not in listed.out


def test_fifo_does_not_hang(tmp_path) -> None:
    """A named pipe where a file should be: opening it would wait for ever."""
    path = tmp_path / "a.safetensors"
    os.mkfifo(path)
    with pytest.raises(SourceError, match="is no regular file"):
        open_source(path)


def test_link_to_itself(tmp_path) -> None:
    """A symbolic link that never ends."""
    path = Path(tmp_path / "a.safetensors")
    path.symlink_to(path)
    with pytest.raises(RepcapError):
        open_source(path)
