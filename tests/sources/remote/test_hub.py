"""Checkpoints on a Hub of our own on loopback: the right rows, and no more bytes than they take."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from hubmade import checkpoint, shard
from hubserver import HubServer
from repcap.errors import MatrixNotFound, SourceError
from repcap.sources import inspect_source, open_source
from repcap.sources.opening import open_checkpoint
from repcap.sources.remote import transfer

FIRST, SECOND, THIRD = (f"model-0000{part}-of-00003.safetensors" for part in (1, 2, 3))


def header_bytes(content: bytes | Path) -> int:
    """Length prefix and header of a safetensors file."""
    assert isinstance(content, bytes)
    return 8 + int.from_bytes(content[:8], "little")


def rows_of(source: str, **options: Any) -> torch.Tensor:
    with open_source(source, **options) as matrix:
        return matrix.read(0, matrix.count)


def weights_sent(hub: HubServer) -> int:
    return sum(request.sent for request in hub.asked("store"))


# What is read


@pytest.mark.parametrize(("rows", "dim"), [(4096, 128), (50_000, 16)])
def test_reads_the_embedding_and_little_else(hub: HubServer, rows: int, dim: int) -> None:
    files, embedding = checkpoint(rows, dim)
    commit = hub.add("org/model", files)
    with open_source("org/model") as matrix:
        assert torch.equal(matrix.read(0, matrix.count), embedding)
        assert (matrix.info.revision, matrix.info.role, matrix.info.tied) == (commit, "embedding", True)
        assert matrix.info.dtype == "bfloat16"
        assert matrix.bytes_read == embedding.nbytes
    small = len(files["config.json"]) + len(files["model.safetensors.index.json"])  # type: ignore[arg-type]
    assert hub.sent <= header_bytes(files[FIRST]) + small + 1.01 * embedding.nbytes
    assert not hub.asked(path=SECOND)
    assert not hub.asked(path=THIRD)


def test_many_chunks_at_once(hub: HubServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transfer, "PLAN", transfer.Plan(workers=5, chunk_least=10_007, chunk_most=10_007, commit=3000))
    files, embedding = checkpoint(rows=8192, dim=64)
    hub.add("org/model", files)
    calls: list[tuple[int, int]] = []
    with open_source("org/model", on_progress=lambda done, total: calls.append((done, total))) as matrix:
        matrix.prefetch([(0, matrix.count)])
        assert torch.equal(matrix.read(0, matrix.count), embedding)
    assert len([r for r in hub.asked("store") if r.range and r.range[0] > 8]) == -(-embedding.nbytes // 10_007)
    assert calls[-1] == (embedding.nbytes, embedding.nbytes)
    assert [done for done, _ in calls] == sorted(done for done, _ in calls)


def test_one_file_without_an_index(hub: HubServer) -> None:
    embedding = torch.randn(300, 24)
    hub.add(
        "org/small", {"model.safetensors": shard({"wte.weight": embedding, "h.0.attn.weight": torch.zeros(500, 500)})}
    )
    assert torch.equal(rows_of("org/small"), embedding)
    assert weights_sent(hub) < embedding.nbytes + 1000
    assert torch.equal(rows_of("hf://org/small/model.safetensors"), embedding)
    assert torch.equal(rows_of("org/small::wte.weight"), embedding)


def test_consolidated_and_odd_indexes(hub: HubServer) -> None:
    embedding = torch.randn(64, 8)
    hub.add("org/a", {"consolidated.safetensors": shard({"tok_embeddings.weight": embedding})})
    index = json.dumps({"weight_map": {"model.embed_tokens.weight": "part.safetensors"}}).encode()
    part = shard({"model.embed_tokens.weight": embedding})
    hub.add("org/b", {"weights.safetensors.index.json": index, "part.safetensors": part})
    assert torch.equal(rows_of("org/a"), embedding)
    assert torch.equal(rows_of("org/b"), embedding)


def test_several_files_are_a_choice_for_the_user(hub: HubServer) -> None:
    one = shard({"model.embed_tokens.weight": torch.randn(64, 8)})
    hub.add("org/variants", {"model.fp16.safetensors": one, "model.int8.safetensors": one})
    with pytest.raises(
        SourceError,
        match=r"^hf://org/variants holds 2 safetensors files .*name one, hf://org/variants/m",
    ):
        open_source("org/variants")
    assert rows_of("hf://org/variants/model.fp16.safetensors").shape == (64, 8)


def test_shards_without_an_index(hub: HubServer) -> None:
    files, embedding = checkpoint(rows=512, dim=16)
    del files["model.safetensors.index.json"]
    hub.add("org/model", files)
    assert torch.equal(rows_of("org/model"), embedding)


def test_a_folder_of_a_repository(hub: HubServer) -> None:
    embedding = torch.randn(64, 8)
    files = {"sub/model.safetensors": shard({"wte.weight": embedding}), "sub/config.json": b"{}", "README.md": b""}
    hub.add("org/many", files)
    assert torch.equal(rows_of("hf://org/many/sub"), embedding)
    with pytest.raises(SourceError, match="no folder or file 'other'"):
        open_source("hf://org/many/other")
    with pytest.raises(SourceError, match=r"hf://org/many/FOLDER: sub"):
        open_source("org/many")


def test_unembedding_and_unknown_names(hub: HubServer) -> None:
    files, embedding = checkpoint(rows=2048, dim=32, tied=False)
    hub.add("org/model", files)
    head = rows_of("org/model", matrix="unembedding")
    assert head.shape == embedding.shape
    assert not torch.equal(head, embedding)
    with pytest.raises(MatrixNotFound, match=r"no tensor 'nothing\.like\.this'"):
        open_source("org/model", "nothing.like.this")


def test_an_index_that_lies(hub: HubServer) -> None:
    """The index places the embedding in the third shard; the first one holds it."""
    files, embedding = checkpoint(rows=512, dim=16)
    index = json.loads(files["model.safetensors.index.json"])  # type: ignore[arg-type]
    index["weight_map"]["model.embed_tokens.weight"] = THIRD
    files["model.safetensors.index.json"] = json.dumps(index).encode()
    hub.add("org/model", files)
    assert torch.equal(rows_of("org/model"), embedding)
    index["weight_map"]["model.extra.weight"] = SECOND
    hub.add("org/other", {**files, "model.safetensors.index.json": json.dumps(index).encode()})
    with pytest.raises(SourceError, match=f"model.extra.weight.*{SECOND}"):
        rows_of("org/other", matrix="model.extra.weight")


def test_fp8_with_block_scales(hub: HubServer) -> None:
    generator = torch.Generator().manual_seed(3)
    stored = torch.randn(256, 256, generator=generator).to(torch.float8_e4m3fn)
    scale = torch.rand(2, 2, generator=generator) + 0.5
    tensors = {"model.embed_tokens.weight": stored, "model.embed_tokens.weight_scale_inv": scale}
    config = {"quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]}}
    hub.add("org/fp8", {"model.safetensors": shard(tensors), "config.json": json.dumps(config).encode()})
    wanted = stored.float() * scale.repeat_interleave(128, 0).repeat_interleave(128, 1)
    assert torch.equal(rows_of("org/fp8"), wanted)


# Tying, from samples


@pytest.mark.parametrize("equal", [True, False])
def test_tying_by_sampled_rows(hub: HubServer, equal: bool) -> None:
    files, embedding = checkpoint(rows=40_000, dim=32, tied=False)
    if equal:
        files[THIRD] = shard({"lm_head.weight": embedding})
    hub.add("org/model", files)
    with open_source("org/model") as matrix:
        assert matrix.info.tied is equal
        assert ("sampled row blocks" if equal else "differ in values") in matrix.info.evidence
        assert any("config" in warning for warning in matrix.info.warnings) is equal  # it says false
        compared = weights_sent(hub)
        assert torch.equal(matrix.read(0, matrix.count), embedding)
    headers = sum(header_bytes(files[file]) for file in (FIRST, THIRD))
    assert compared <= headers + (0.02 * embedding.nbytes if equal else 4096)
    assert weights_sent(hub) <= headers + 1.01 * embedding.nbytes


# Revisions


def test_a_revision_that_moves(hub: HubServer) -> None:
    """Everything is read at the commit that was resolved first, whatever main stands for meanwhile."""
    files, old = checkpoint(rows=512, dim=16, seed=1)
    first = hub.add("org/model", files)
    with open_source("org/model") as matrix:
        moved, new = checkpoint(rows=512, dim=16, seed=2)
        second = hub.add("org/model", moved)
        assert first != second
        assert torch.equal(matrix.read(0, matrix.count), old)
        assert matrix.info.revision == first
    with open_source("org/model") as matrix:
        assert torch.equal(matrix.read(0, matrix.count), new)
        assert matrix.info.revision == second
    assert torch.equal(rows_of(f"org/model@{first}"), old)
    assert all(f"/resolve/{first}/" in r.path or f"/resolve/{second}/" in r.path for r in hub.asked("resolve"))


def test_branches_tags_and_pull_requests(hub: HubServer) -> None:
    for seed, ref in enumerate(("main", "v1.0", "refs/pr/3")):
        files, embedding = checkpoint(rows=64, dim=16, seed=seed)
        hub.add("org/model", files, ref=ref)
        source = "org/model" if ref == "main" else f"hf://org/model@{ref}"
        assert torch.equal(rows_of(source), embedding)
    assert open_checkpoint("org/model@v1.0").revision == hub.repos["org/model"].refs["v1.0"]


# Inspection


def test_inspect_reads_headers_alone(hub: HubServer) -> None:
    files, _ = checkpoint(rows=20_000, dim=32)
    commit = hub.add("org/model", files)
    seen = inspect_source("org/model")
    assert (seen.revision, seen.tied, seen.tensor_count) == (commit, True, 4)
    assert (seen.candidates[0].name, seen.candidates[0].shape) == ("model.embed_tokens.weight", (20_000, 32))
    assert weights_sent(hub) == sum(header_bytes(files[file]) for file in (FIRST, SECOND, THIRD))
