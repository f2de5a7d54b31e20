"""PyTorch files on the Hub by ranges: the directory of the archive, its pickle, and one tensor's bytes."""

from __future__ import annotations

import io
import json
from collections import OrderedDict
from typing import Any

import pytest
import torch

from hubserver import HubServer
from repcap.errors import RemoteError, SourceError, UnsafeFileError
from repcap.sources import inspect_source, open_source

EMBED, HEAD, OTHER = "model.embed_tokens.weight", "lm_head.weight", "model.layers.0.mlp.up_proj.weight"


def saved(value: Any, **options: Any) -> bytes:
    out = io.BytesIO()
    torch.save(value, out, **options)
    return out.getvalue()


def normal(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)))


def sent(hub: HubServer) -> int:
    return sum(request.sent for request in hub.asked("store"))


def rows_of(source: str, name: str = "embedding") -> torch.Tensor:
    with open_source(source, name) as matrix:
        return matrix.read(0, matrix.count)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_one_tensor_and_little_else(dtype: torch.dtype, hub: HubServer) -> None:
    embedding = normal(2000, 32).to(dtype)
    made = OrderedDict({OTHER: normal(3000, 500), EMBED: embedding, "model.norm.weight": torch.ones(32)})
    commit = hub.add("org/old", {"pytorch_model.bin": saved(made), "config.json": b'{"vocab_size": 2000}'})
    with open_source("org/old") as matrix:
        assert (matrix.info.revision, matrix.info.role, matrix.info.tied) == (commit, "embedding", True)
        assert torch.equal(matrix.read(0, 2000), embedding)
        assert torch.equal(matrix.take([5, 1999]), embedding[[5, 1999]])
    assert sent(hub) < embedding.nbytes + 500_000
    assert sent(hub) < 6_000_000 // 4
    hub.forget()
    assert torch.equal(rows_of("org/old"), embedding)
    assert not hub.asked("store")  # the rows, and what is known of the file, are in the cache


def test_what_it_offers(hub: HubServer) -> None:
    hub.add("org/old", {"pytorch_model.bin": saved({EMBED: normal(50, 4), HEAD: normal(50, 4) + 1})})
    found = inspect_source("org/old")
    assert (found.format, found.tied, found.tensor_count) == ("pytorch", False, 2)
    assert [item.shape for item in found.tensors] == [(50, 4), (50, 4)]


def test_a_trainers_file_and_views_of_one_storage(hub: HubServer) -> None:
    table = normal(60, 4)
    state = {EMBED: torch.nn.Parameter(table[:40]), HEAD: table[20:60], "turned.weight": normal(4, 60).T}
    state["part.weight"] = table[2:9, 1:3]
    hub.add("org/run", {"checkpoint.pt": saved({"state_dict": state, "step": 7})})
    assert torch.equal(rows_of("org/run"), table[:40])
    assert torch.equal(rows_of("org/run", "unembedding"), table[20:60])
    assert torch.equal(rows_of("org/run", "turned.weight"), normal(4, 60).T)
    assert torch.equal(rows_of("org/run", "part.weight"), table[2:9, 1:3])


def test_shards_with_an_index(hub: HubServer) -> None:
    first, second = "pytorch_model-00001-of-00002.bin", "pytorch_model-00002-of-00002.bin"
    files = {first: saved({EMBED: normal(50, 4)}), second: saved({OTHER: normal(9, 4)})}
    index = {"weight_map": {EMBED: first, OTHER: second}}
    hub.add("org/old", {**files, "pytorch_model.bin.index.json": json.dumps(index).encode()})
    assert torch.equal(rows_of("org/old"), normal(50, 4))
    assert not hub.asked(path=second)


class Code:
    def __reduce__(self) -> tuple[Any, ...]:
        return eval, ("print('run')",)  # not print itself: ray puts its own in its place


@pytest.mark.parametrize("hidden", [Code(), [Code()], {"a": {"b": Code()}}])
def test_code_is_refused(hidden: object, hub: HubServer, capsys: pytest.CaptureFixture[str]) -> None:
    hub.add("org/bad", {"pytorch_model.bin": saved({EMBED: normal(50, 4), "x": hidden})})
    with pytest.raises(UnsafeFileError, match=r"asks for __builtin__\.eval to be called; repcap runs no code"):
        open_source("org/bad")
    assert capsys.readouterr().out == ""


def test_a_file_that_is_cut_short(hub: HubServer) -> None:
    hub.add("org/short", {"pytorch_model.bin": saved({EMBED: normal(500, 4)})[:-2000]})
    words = r"^org/short/pytorch_model.bin is truncated \(the directory at its end is missing\): use another revision"
    with pytest.raises(SourceError, match=words):
        open_source("org/short")


def test_an_old_pickle_is_no_archive(hub: HubServer) -> None:
    hub.add("org/older", {"pytorch_model.bin": saved({EMBED: normal(50, 4)}, _use_new_zipfile_serialization=False)})
    with pytest.raises(
        RemoteError, match="no part of a file of this old kind can be read alone, so this would download"
    ):
        open_source("org/older")
