"""Pickles: read with weights_only, mapped, flattened; what would run code is refused."""

from __future__ import annotations

import io
import json
import struct
import tracemalloc
import zipfile
from collections import OrderedDict
from pathlib import Path

import pytest
import torch

from repcap.errors import RepcapError, SourceError, UnsafeFileError
from repcap.sources import open_source
from repcap.sources.formats import torch_zip
from repcap.sources.formats.torch_zip import flatten, read_places
from repcap.sources.opening import open_checkpoint

EMBED, HEAD = "model.embed_tokens.weight", "lm_head.weight"


@pytest.mark.parametrize("name", ["a.bin", "a.pt", "a.pth", "a.ckpt"])
@pytest.mark.parametrize("zipped", [True, False])
def test_state_dict(name, zipped, tmp_path, rng) -> None:
    table, head = torch.randn(9, 4, generator=rng), torch.randn(9, 4, generator=rng).bfloat16()
    path = tmp_path / name
    torch.save({EMBED: table, HEAD: head}, path, _use_new_zipfile_serialization=zipped)
    with open_source(path) as matrix:
        assert torch.equal(matrix.read(0, 9), table)
        assert torch.equal(matrix.take([8, 1]), table[[8, 1]])
        assert matrix.bytes_read == 9 * 16 + 2 * 16
    with open_source(path, "unembedding") as matrix:
        assert (matrix.info.dtype, matrix.read(2, 4).dtype) == ("bfloat16", torch.bfloat16)


def test_archives_are_neither_mapped_nor_loaded(tmp_path, rng) -> None:
    path = tmp_path / "big.bin"
    torch.save({EMBED: torch.randn(4096, 64, generator=rng), "other": torch.zeros(1 << 22)}, path)
    tracemalloc.start()
    with open_source(path) as matrix:
        matrix.read(0, 64)
        if Path("/proc/self/maps").exists():  # only Linux lists the maps of a process
            assert str(path) not in Path("/proc/self/maps").read_text()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1 << 20


ODD = {
    "parameter": torch.nn.Parameter(torch.arange(6.0).reshape(3, 2)),
    "byte_float": torch.arange(6.0).reshape(3, 2).to(torch.float8_e5m2),
    "short": torch.arange(6).reshape(3, 2).to(torch.uint16),
    "column": torch.arange(8.0).reshape(4, 2)[:3],
    "part": torch.arange(12.0).reshape(3, 4)[:, :2],
    "turned": torch.arange(6.0).reshape(2, 3).T,
    "cube": torch.arange(24.0).reshape(2, 3, 4).permute(1, 0, 2),
    "one": torch.arange(2.0),
}


@pytest.mark.parametrize("name", list(ODD))
def test_every_way_to_lie_in_a_file(name, tmp_path) -> None:
    torch.save(
        {"other": torch.ones(5), name: ODD[name], "device": torch.device("cpu"), "dtype": torch.bfloat16},
        tmp_path / "x.pt",
    )
    found = open_checkpoint(tmp_path / "x.pt").open(name)
    wanted = ODD[name].detach().float()
    assert torch.equal(found.read(0, found.count).float(), wanted.reshape(found.count, found.dim))


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (torch.eye(3).to_sparse(), "tensor 'x' is sparse: give a dense tensor"),
        ("quantised", "tensor 'x' is packed by a quantiser"),
        (torch.zeros(1).expand(1 << 20, 4), r"says more numbers than the file holds for it \(strides \(0, 0\)\)"),
        (torch.eye(3).to(torch.complex64), "tensor 'x' is complex"),
    ],
)
@pytest.mark.filterwarnings("ignore::UserWarning")  # torch gives up its quantised tensors
def test_what_is_no_plain_tensor(made, words, tmp_path) -> None:
    if isinstance(made, str):
        made = torch.quantize_per_tensor(torch.eye(3), 0.1, 0, torch.qint8)
    torch.save({"x": made}, tmp_path / "x.pt")
    with pytest.raises(RepcapError, match=words):
        open_source(tmp_path / "x.pt", "x")


def test_state_of_an_object_changes_nothing(tmp_path) -> None:
    """BUILD would set attributes of whatever it is given: of the functions that we lend, too."""
    lent = b"ctorch._utils\n_rebuild_tensor_v2\n"
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("a/data.pkl", b"\x80\x02" + lent + b"N}q\x00X\x0c\x00\x00\x00__defaults__)s\x86b.")
    with pytest.raises(SourceError, match="holds no tensors"):
        read_places(stream, "x.pt")
    assert torch_zip._rebuild.__defaults__ is None


def test_another_byte_order(tmp_path, rng) -> None:
    torch.save({EMBED: torch.randn(9, 4, generator=rng)}, tmp_path / "x.pt")
    with zipfile.ZipFile(tmp_path / "x.pt") as old, zipfile.ZipFile(tmp_path / "y.pt", "w") as new:
        for member in old.namelist():
            new.writestr(member, b"big" if member.endswith("byteorder") else old.read(member))
    with pytest.raises(SourceError) as caught:
        open_source(tmp_path / "y.pt")
    assert str(caught.value) == f"{tmp_path / 'y.pt'} was saved on a big-endian machine: save it again on this one"


def test_tied_by_one_storage(tmp_path, rng) -> None:
    table = torch.randn(9, 4, generator=rng)
    torch.save({EMBED: table, HEAD: table}, tmp_path / "t.bin")
    with open_source(tmp_path / "t.bin") as matrix:
        assert (matrix.info.tied, matrix.info.evidence) == (True, f"{EMBED} and {HEAD} share one storage")


@pytest.mark.parametrize("key", ["state_dict", "model_state_dict", "model", "module"])
def test_trainer_checkpoints(key, tmp_path, rng) -> None:
    table = torch.randn(9, 4, generator=rng)
    state = {"exp_avg": torch.randn(100, 4, generator=rng)}
    torch.save({key: OrderedDict({EMBED: table}), "optimizer": {"state": {0: state}}, "epoch": 3}, tmp_path / "c.ckpt")
    with open_source(tmp_path / "c.ckpt") as matrix:
        assert matrix.info.name == EMBED
        assert torch.equal(matrix.read(0, 9), table)


def test_one_tensor(tmp_path, rng) -> None:
    table = torch.randn(9, 4, generator=rng)
    torch.save(table, tmp_path / "t.pt")
    with open_source(tmp_path / "t.pt") as matrix:
        assert (matrix.info.name, matrix.info.evidence) == ("tensor", "the only tensor of the source")
        assert torch.equal(matrix.read(0, 9), table)


def test_flatten_names_nested_containers() -> None:
    one = torch.zeros(1)
    assert list(flatten({"a": {"b": one, "c": [one, {"d": one}]}, "e": 3, "f": None})) == ["a.b", "a.c.0", "a.c.1.d"]
    assert list(flatten({"model": {"x": one}, "table": torch.zeros(2, 2)})) == ["model.x", "table"]


def test_flatten_stops_at_cycles() -> None:
    loop: dict[str, object] = {"t": torch.zeros(1)}
    loop["self"] = loop
    assert "t" in flatten(loop)


def test_views_and_strides_keep_their_values(tmp_path, rng) -> None:
    base = torch.randn(8, 12, generator=rng)
    torch.save({"w": base.T, "part": base[2:5, 3:9]}, tmp_path / "v.pt")
    with open_source(tmp_path / "v.pt", "w") as matrix:
        assert torch.equal(matrix.read(3, 7), base.T[3:7])
    with open_source(tmp_path / "v.pt", "part") as matrix:
        assert torch.equal(matrix.read(0, 3), base[2:5, 3:9])


@pytest.fixture
def bins(tmp_path, rng):
    """pytorch_model.bin in two shards with an index."""
    table, head = torch.randn(9, 4, generator=rng), torch.randn(9, 4, generator=rng)
    torch.save({EMBED: table}, tmp_path / "pytorch_model-00001-of-00002.bin")
    torch.save({HEAD: head}, tmp_path / "pytorch_model-00002-of-00002.bin")
    index = {EMBED: "pytorch_model-00001-of-00002.bin", HEAD: "pytorch_model-00002-of-00002.bin"}
    (tmp_path / "pytorch_model.bin.index.json").write_text(json.dumps({"weight_map": index}))
    return tmp_path, table, head


def test_shards(bins) -> None:
    folder, table, head = bins
    for matrix, expected in (("embedding", table), ("unembedding", head)):
        with open_source(folder, matrix) as opened:
            assert torch.equal(opened.read(0, 9), expected)
            assert opened.info.tied is False


def test_missing_shard_matters_only_if_it_is_wanted(bins) -> None:
    folder, table, _ = bins
    (folder / "pytorch_model-00002-of-00002.bin").unlink()
    with open_source(folder) as matrix:
        assert torch.equal(matrix.read(0, 9), table)
        assert matrix.info.tied is None
    with pytest.raises(SourceError, match=r"pytorch_model-00002-of-00002\.bin is missing: the index names it"):
        open_source(folder, "unembedding")


def test_shards_without_an_index(bins) -> None:
    folder, table, _ = bins
    (folder / "pytorch_model.bin.index.json").unlink()
    with open_source(folder) as matrix:
        assert torch.equal(matrix.read(0, 9), table)
        assert matrix.info.tied is False


@pytest.mark.parametrize("kept", [1, 2, 3])
def test_how_many_shards_are_missing(kept, tmp_path, rng) -> None:
    for part in range(1, kept + 1):
        made = {EMBED if part == 1 else f"w{part}": torch.randn(9, 4, generator=rng)}
        torch.save(made, tmp_path / f"pytorch_model-{part:05d}-of-00003.bin")
    with open_source(tmp_path) as matrix:
        assert matrix.info.tied is (True if kept == 3 else None)
        assert matrix.info.warnings == (() if kept == 3 else (f"{3 - kept} of 3 shards are missing",))


def test_a_shard_that_lies_outside(bins) -> None:
    folder, _, _ = bins
    (folder / "pytorch_model.bin.index.json").write_text(json.dumps({"weight_map": {EMBED: "../x.bin"}}))
    with pytest.raises(UnsafeFileError, match="outside its own directory"):
        open_source(folder)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "is not a PyTorch file: it starts with b''"),
        (b"hello world", "is not a PyTorch file: it starts with b'hell'"),
        (b"version https://git-lfs.github.com/spec/v1\noid", "is a git-lfs pointer"),
        (b"PK\x03\x04" + bytes(60), "is truncated"),
        (b"\x80\x02}q\x00.", "is not a readable PyTorch file"),
        (b"\x80\x02", "is not a readable PyTorch file"),
        (struct.pack("<Q", 2) + b"{}", "is not a PyTorch file"),
    ],
)
def test_damaged(body, words, tmp_path) -> None:
    path = tmp_path / "x.bin"
    path.write_bytes(body)
    with pytest.raises(SourceError, match=words):
        open_source(path)


def test_truncated(tmp_path, rng) -> None:
    path = tmp_path / "x.bin"
    torch.save({EMBED: torch.randn(90, 4, generator=rng)}, path)
    path.write_bytes(path.read_bytes()[:-60])
    with pytest.raises(SourceError) as caught:
        open_source(path)
    assert str(caught.value) == f"{path} is truncated (the directory at its end is missing): fetch it again"


def test_nothing_in_it(tmp_path) -> None:
    torch.save({"epoch": 3, "names": ["a"]}, tmp_path / "x.pt")
    with pytest.raises(SourceError, match="holds no tensors: give a state dict"):
        open_source(tmp_path / "x.pt")
