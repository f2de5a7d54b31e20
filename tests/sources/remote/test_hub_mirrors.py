"""Repositories with a new name, mirrors under a path, headers near 100 000 bytes: reports that were right."""

from __future__ import annotations

import json

import pytest
import torch

from hubmade import checkpoint, read, shard
from hubserver import HubServer
from repcap.sources import open_source


def test_a_renamed_repository(hub: HubServer, model: torch.Tensor) -> None:
    hub.renamed["org/former"] = "org/model"
    with open_source("org/former") as matrix:
        assert torch.equal(matrix.read(0, matrix.count), model)
        assert matrix.info.revision == hub.repos["org/model"].refs["main"]
    hub.forget()
    with open_source("org/former@" + hub.repos["org/model"].refs["main"]) as matrix:
        assert torch.equal(matrix.read(0, matrix.count), model)
    assert not hub.asked("store")  # in the cache, under the name that was asked for
    assert torch.equal(read(), model)


def test_a_mirror_under_a_path(hub: HubServer, model: torch.Tensor, monkeypatch: pytest.MonkeyPatch) -> None:
    from huggingface_hub import constants

    hub.prefix = "/mirrors/hub"
    monkeypatch.setattr(constants, "ENDPOINT", hub.endpoint + hub.prefix)
    template = hub.endpoint + hub.prefix + "/{repo_id}/resolve/{revision}/{filename}"
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
    assert torch.equal(read(), model)
    assert all(request.path.startswith(("/api/", "/org/", "/blob/")) for request in hub.requests)
    files, other = checkpoint(rows=64, dim=8, seed=5)
    hub.add("org/other", files)
    hub.renamed["org/former"] = "org/other"
    with open_source("org/former") as matrix:
        assert torch.equal(matrix.read(0, 64), other)


@pytest.mark.parametrize("size", [99_990, 99_991, 99_992, 99_999, 100_000, 100_001, 100_008, 100_009, 100_010])
def test_a_header_of_about_100_000_bytes(size: int, hub: HubServer, tmp_path) -> None:
    """Tools fetch the first 100 000 bytes and take the header to be among them."""
    table = torch.randn(20, 4)
    body = shard({"model.embed_tokens.weight": table})
    length = int.from_bytes(body[:8], "little")
    header = json.loads(body[8 : 8 + length]) | {"__metadata__": {"padding": ""}}
    short = len(json.dumps(header).encode())
    header["__metadata__"]["padding"] = "x" * (size - short)
    text = json.dumps(header).encode()
    whole = len(text).to_bytes(8, "little") + text + body[8 + length :]
    assert len(text) == size
    hub.add("org/long", {"model.safetensors": whole})
    (tmp_path / "model.safetensors").write_bytes(whole)
    for source in ("org/long", tmp_path / "model.safetensors"):
        with open_source(source) as matrix:
            assert torch.equal(matrix.read(0, 20), table)
