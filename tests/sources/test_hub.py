"""Checkpoints on a Hub of our own on loopback: the right rows, no more bytes than they take, and none a second time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from hubserver import HubServer, checkpoint, shard
from repcap.errors import InputError, MatrixNotFound, RemoteError, SourceError
from repcap.sources import inspect_source, open_source, transfer
from repcap.sources.hub import open_hub

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
    with pytest.raises(SourceError, match=r"2 .safetensors files \(model.fp16.safetensors.*name one"):
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
    assert open_hub("org/model", revision="v1.0").revision == hub.repos["org/model"].refs["v1.0"]


# The cache


def cached_tensors(tmp_path: Path) -> list[Path]:
    return sorted(path for path in (tmp_path / "repcap-cache").rglob("*.safetensors") if path.is_file())


def test_the_second_run_reads_nothing(hub: HubServer, tmp_path: Path) -> None:
    files, embedding = checkpoint(rows=2048, dim=32)
    hub.add("org/model", files)
    rows_of("org/model")
    hub.forget()
    assert torch.equal(rows_of("org/model"), embedding)
    assert not hub.asked("store")
    assert not hub.asked("resolve")
    assert len(hub.asked("api")) == 1  # what main stands for today


def test_what_is_kept_is_a_safetensors_file_with_that_tensor_alone(hub: HubServer, tmp_path: Path) -> None:
    from safetensors import safe_open

    files, embedding = checkpoint(rows=2048, dim=32)
    hub.add("org/model", files)
    rows_of("org/model")
    (path,) = cached_tensors(tmp_path)
    with safe_open(path, "pt") as opened:
        assert list(opened.keys()) == ["model.embed_tokens.weight"]
        assert torch.equal(opened.get_tensor("model.embed_tokens.weight"), embedding)
        assert opened.metadata() == {"file": f"org/model/{FIRST}", "tensor": "model.embed_tokens.weight"}
    assert not list(path.parent.glob("*.part"))
    assert not list(path.parent.glob("*.journal"))
    assert torch.equal(rows_of(str(path)), embedding)


def test_offline(hub: HubServer, monkeypatch: pytest.MonkeyPatch) -> None:
    from huggingface_hub import constants

    files, embedding = checkpoint(rows=512, dim=32)
    commit = hub.add("org/model", files)
    rows_of("org/model")
    hub.forget()
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    for source in ("org/model", f"org/model@{commit}"):
        with open_source(source) as matrix:
            assert torch.equal(matrix.read(0, matrix.count), embedding)
            assert matrix.info.revision == commit
            assert not matrix.info.warnings
    assert not hub.requests
    with pytest.raises(RemoteError, match="HF_HUB_OFFLINE is set"):
        open_source("org/other")
    with pytest.raises(RemoteError, match="HF_HUB_OFFLINE is set"):
        open_source("org/model@another-branch")


def test_offline_in_the_middle_of_a_tensor(hub: HubServer, monkeypatch: pytest.MonkeyPatch) -> None:
    from huggingface_hub import constants

    files, embedding = checkpoint(rows=512, dim=32)
    hub.add("org/model", files)
    with open_source("org/model") as matrix:
        matrix.read(0, 100)
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
        assert torch.equal(matrix.read(0, 100), embedding[:100])
        with pytest.raises(RemoteError, match=f"{FIRST} is not in the cache, and HF_HUB_OFFLINE is set"):
            matrix.read(0, 200)


def test_a_hub_that_is_down_gives_what_is_known(hub: HubServer, monkeypatch: pytest.MonkeyPatch) -> None:
    from huggingface_hub import constants

    files, embedding = checkpoint(rows=512, dim=32)
    commit = hub.add("org/model", files)
    rows_of("org/model")
    hub.fault("status", where="any", status=503, times=None)
    with open_source("org/model") as matrix:
        assert torch.equal(matrix.read(0, matrix.count), embedding)
        assert any("the Hub cannot be reached" in w and commit[:12] in w for w in matrix.info.warnings)
    with pytest.raises(RemoteError, match="the server fails"):
        open_source("org/other")
    assert constants.HF_HUB_OFFLINE is False


def test_a_shard_in_the_hub_cache_is_read_there(hub: HubServer, tmp_path: Path) -> None:
    from huggingface_hub import hf_hub_download

    files, embedding = checkpoint(rows=512, dim=32)
    commit = hub.add("org/model", files)
    hf_hub_download("org/model", FIRST, revision=commit, endpoint=hub.endpoint)
    hub.forget()
    assert torch.equal(rows_of("org/model"), embedding)
    assert not hub.asked("store")
    assert not cached_tensors(tmp_path)


def test_a_snapshot_of_huggingface_hub_alone_serves_offline(hub: HubServer, monkeypatch: pytest.MonkeyPatch) -> None:
    from huggingface_hub import constants, hf_hub_download

    files, embedding = checkpoint(rows=512, dim=32)
    hub.add("org/model", files)
    for file in files:
        hf_hub_download("org/model", file, endpoint=hub.endpoint)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert torch.equal(rows_of("org/model"), embedding)


def test_two_hubs_with_one_name_do_not_mix(hub: HubServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from huggingface_hub import constants

    one, here = checkpoint(rows=64, dim=16, seed=1)
    two, there = checkpoint(rows=64, dim=16, seed=2)
    commit = hub.add("org/model", one, commit="a" * 40)
    assert torch.equal(rows_of("org/model"), here)
    with HubServer() as mirror:
        mirror.add("org/model", two, commit=commit)
        monkeypatch.setattr(constants, "ENDPOINT", mirror.endpoint)
        monkeypatch.setattr(
            constants, "HUGGINGFACE_CO_URL_TEMPLATE", mirror.endpoint + "/{repo_id}/resolve/{revision}/{filename}"
        )
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub-cache-2"))
        assert torch.equal(rows_of("org/model"), there)


# A few rows


def test_only_the_rows_that_are_read_are_fetched(hub: HubServer) -> None:
    files, embedding = checkpoint(rows=10_000, dim=64)
    hub.add("org/model", files)
    width = 64 * 2
    with open_source("org/model", rows=500) as matrix:
        assert matrix.contiguous
        before = weights_sent(hub)
        blocks = [(100, 150), (5000, 5200), (9900, 10_000)]
        matrix.prefetch(blocks)
        assert weights_sent(hub) - before == width * sum(stop - start for start, stop in blocks)
        for start, stop in blocks:
            assert torch.equal(matrix.read(start, stop), embedding[start:stop])
        assert weights_sent(hub) - before == width * sum(stop - start for start, stop in blocks)
    with open_source("org/model") as matrix:  # the rest, later
        assert torch.equal(matrix.read(0, matrix.count), embedding)
    assert weights_sent(hub) - before == embedding.nbytes


def test_scattered_rows_come_in_few_requests(hub: HubServer) -> None:
    files, embedding = checkpoint(rows=10_000, dim=64)
    hub.add("org/model", files)
    chosen = [9999, 3, 5, 4, 7000, 7001, 7005, 3]
    with open_source("org/model") as matrix:
        hub.forget()
        assert torch.equal(matrix.take(chosen), embedding[chosen])
        assert len(hub.asked("store")) == 3
        with pytest.raises(InputError, match="outside"):
            matrix.take([10_000])
        assert matrix.take([]).shape == (0, 64)


def test_a_sample_measures_what_was_sampled(hub: HubServer) -> None:
    """`--rows` through geometry: an estimate that agrees with the whole, from a part of the bytes."""
    from repcap.geometry.measure import measure_matrix

    files, _ = checkpoint(rows=6000, dim=48)
    hub.add("org/model", files)
    with open_source("org/model", rows=1000) as matrix:
        sample = measure_matrix(matrix, rows=1000, seed=7)
    sent = weights_sent(hub)
    assert sent <= header_bytes(files[FIRST]) + 1050 * 48 * 2
    with open_source("org/model") as matrix:
        whole = measure_matrix(matrix)
    assert abs(sample.epsilon - whole.epsilon) < 5 * sample.epsilon_se
    assert sample.epsilon != whole.epsilon


# The tokenizer


def tokenizer(count: int) -> bytes:
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel

    return Tokenizer(WordLevel({f"t{i}": i for i in range(count)}, "t0")).to_str().encode()


def test_tokens(hub: HubServer) -> None:
    files, _ = checkpoint(rows=512, dim=16)
    hub.add("org/model", {**files, "tokenizer.json": tokenizer(500)})
    with open_source("org/model", rows=100) as matrix:
        assert matrix.tokens is None  # a quick look does not download it
    assert not hub.asked(path="tokenizer.json")
    with open_source("org/model") as matrix:
        assert matrix.tokens is not None
        assert matrix.tokens.count == 500
        assert matrix.tokens.text(17) == "t17"
    with open_source("org/model", rows=100) as matrix:
        assert matrix.tokens is not None  # it is in the cache now


def test_a_damaged_tokenizer_is_a_warning(hub: HubServer) -> None:
    files, embedding = checkpoint(rows=512, dim=16)
    hub.add("org/model", {**files, "tokenizer.json": b"{}"})
    with open_source("org/model") as matrix:
        assert matrix.tokens is None
        assert any("tokenizer.json" in warning for warning in matrix.info.warnings)
        assert torch.equal(matrix.read(0, matrix.count), embedding)


# Inspection


def test_inspect_reads_headers_alone(hub: HubServer) -> None:
    files, _ = checkpoint(rows=20_000, dim=32)
    commit = hub.add("org/model", files)
    seen = inspect_source("org/model")
    assert (seen.revision, seen.tied, seen.tensor_count) == (commit, True, 4)
    assert (seen.candidates[0].name, seen.candidates[0].shape) == ("model.embed_tokens.weight", (20_000, 32))
    assert weights_sent(hub) == sum(header_bytes(files[file]) for file in (FIRST, SECOND, THIRD))


# GGUF and pickles


def gguf(tmp_path: Path, vocabulary: int = 3000, dim: int = 64) -> tuple[bytes, np.ndarray]:
    """(file, embedding as dequantised) of a GGUF with Q8_0 rows and a vocabulary."""
    from gguf import GGMLQuantizationType, GGUFWriter
    from gguf.quants import dequantize, quantize

    rng = np.random.default_rng(5)
    stored = quantize(rng.standard_normal((vocabulary, dim), dtype=np.float32), GGMLQuantizationType.Q8_0)
    path = tmp_path / "made.gguf"
    writer = GGUFWriter(path, "llama")
    writer.add_token_list([f"token-number-{i}" for i in range(vocabulary)])
    writer.add_tokenizer_model("gpt2")
    writer.add_tensor("token_embd.weight", stored, raw_dtype=GGMLQuantizationType.Q8_0)
    writer.add_tensor("blk.0.ffn_up.weight", np.zeros((1024, 1024), dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path.read_bytes(), dequantize(stored, GGMLQuantizationType.Q8_0)


@pytest.mark.parametrize("vocabulary", [300, 40_000])  # the header fits into the first piece, and does not
def test_gguf_by_ranges(hub: HubServer, tmp_path: Path, vocabulary: int) -> None:
    content, wanted = gguf(tmp_path, vocabulary, 32)
    hub.add("org/gguf", {"model-q8_0.gguf": content})
    with open_source("org/gguf") as matrix:
        assert (matrix.info.dtype, matrix.info.role, matrix.info.tied) == ("Q8_0", "embedding", True)
        assert np.array_equal(matrix.read(0, matrix.count).numpy(), wanted)
        assert matrix.tokens is not None
        assert matrix.tokens.text(7) == "token-number-7"
        stored = matrix.bytes_read
    assert stored == vocabulary * 34
    assert weights_sent(hub) <= stored + max(1 << 19, 2 * 25 * vocabulary)
    assert weights_sent(hub) < len(content) // 2
    hub.forget()
    with open_source("org/gguf") as matrix:
        assert np.array_equal(matrix.read(0, matrix.count).numpy(), wanted)
        assert matrix.tokens is not None
    assert not hub.asked("store")


def test_gguf_in_parts(hub: HubServer, tmp_path: Path) -> None:
    from gguf import GGUFWriter

    rng = np.random.default_rng(5)
    tensors = {f"{name}.weight": rng.standard_normal((400, 32), dtype=np.float32) for name in ("output", "token_embd")}
    writer = GGUFWriter(tmp_path / "made.gguf", "llama", split_max_tensors=1)
    for name, rows in tensors.items():
        writer.add_tensor(name, rows)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    parts: dict[str, bytes | Path] = {path.name: path.read_bytes() for path in tmp_path.glob("made-*.gguf")}
    assert len(parts) == 2
    hub.add("org/parts", parts)
    with open_source("org/parts") as matrix:
        assert np.array_equal(matrix.read(0, 400).numpy(), tensors["token_embd.weight"])
        assert matrix.info.tied is False
    assert np.array_equal(rows_of("org/parts", matrix="unembedding").numpy(), tensors["output.weight"])
    del hub.repos["org/parts"].commits[hub.repos["org/parts"].refs["main"]][max(parts)]
    hub.add("org/lacking", {min(parts): parts[min(parts)]})
    assert any("parts are missing" in warning for warning in inspect_source("org/lacking").warnings)


def test_several_gguf_files_are_a_choice_for_the_user(hub: HubServer, tmp_path: Path) -> None:
    content, wanted = gguf(tmp_path)
    hub.add("org/gguf", {"m-Q4_0.gguf": content, "m-Q8_0.gguf": content})
    with pytest.raises(SourceError, match=r"2 GGUF files \(m-Q4_0.gguf, m-Q8_0.gguf\): name one"):
        open_source("org/gguf")
    assert np.array_equal(rows_of("hf://org/gguf/m-Q8_0.gguf").numpy(), wanted)


def test_gguf_that_is_cut_short(hub: HubServer, tmp_path: Path) -> None:
    content, wanted = gguf(tmp_path)
    hub.add("org/gguf", {"m.gguf": content[:-1000]})
    with pytest.raises(SourceError, match="truncated"):
        open_source("org/gguf")
    assert np.array_equal(rows_of("org/gguf", allow_truncated=True).numpy(), wanted)
    hub.add("org/short", {"m.gguf": content[:3000]})
    with pytest.raises(SourceError, match="truncated inside its header"):
        open_source("org/short")


def pickled(tmp_path: Path, tensors: dict[str, torch.Tensor]) -> bytes:
    path = tmp_path / "made.bin"
    torch.save(tensors, path)
    return path.read_bytes()


def test_pickles_only_where_allowed(hub: HubServer, tmp_path: Path) -> None:
    embedding = torch.randn(100, 8)
    content = pickled(tmp_path, {"model.embed_tokens.weight": embedding, "x": torch.zeros(1_000_000)})
    commit = hub.add("org/old", {"pytorch_model.bin": content, "config.json": b'{"tie_word_embeddings": true}'})
    with pytest.raises(RemoteError, match=r"would download 4 MB: pass --allow-full-download"):
        open_source("org/old")
    assert not hub.asked("store")
    calls: list[tuple[int, int]] = []
    with open_source(
        "org/old", allow_full_download=True, on_progress=lambda done, total: calls.append((done, total))
    ) as matrix:
        assert torch.equal(matrix.read(0, matrix.count), embedding)
        assert matrix.info.revision == commit
    assert calls[-1] == (len(content), len(content))
    assert torch.equal(rows_of("org/old"), embedding)  # it is in the cache now


def test_sharded_pickles_download_the_shard_that_holds_it(hub: HubServer, tmp_path: Path) -> None:
    embedding = torch.randn(100, 8)
    files: dict[str, bytes | Path] = {
        "pytorch_model-00001-of-00002.bin": pickled(tmp_path, {"model.embed_tokens.weight": embedding}),
        "pytorch_model-00002-of-00002.bin": pickled(tmp_path, {"model.norm.weight": torch.zeros(8)}),
    }
    index = {
        "model.embed_tokens.weight": "pytorch_model-00001-of-00002.bin",
        "model.norm.weight": "pytorch_model-00002-of-00002.bin",
    }
    files["pytorch_model.bin.index.json"] = json.dumps({"weight_map": index}).encode()
    hub.add("org/old", files)
    with pytest.raises(RemoteError, match="--allow-full-download"):
        open_source("org/old")
    assert torch.equal(rows_of("org/old", allow_full_download=True), embedding)
    assert not hub.asked(path="pytorch_model-00002-of-00002.bin")
