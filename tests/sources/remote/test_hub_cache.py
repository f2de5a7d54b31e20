"""What was read from the Hub is not read again; a few rows cost a few rows; tokenizers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from hubmade import checkpoint
from hubserver import HubServer
from repcap.errors import InputError, RemoteError
from repcap.sources import open_source

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
    from repcap.geometry.measurement.measuring import MeasureOptions, measure_matrix

    files, _ = checkpoint(rows=6000, dim=48)
    hub.add("org/model", files)
    with open_source("org/model", rows=1000) as matrix:
        sample = measure_matrix(matrix, MeasureOptions(rows=1000, seed=7))
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
