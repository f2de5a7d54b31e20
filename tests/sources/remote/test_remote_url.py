"""Files at plain addresses."""

from __future__ import annotations

import errno
import io
from pathlib import Path

import pytest
import torch

from hubmade import shard
from hubserver import HubServer
from repcap.errors import RemoteError, SourceError
from repcap.sources import open_source
from repcap.sources.remote import ranges


@pytest.fixture
def embedding(hub: HubServer) -> torch.Tensor:
    """Served at /loose/dir/model.safetensors, 64 kB, before 1 MB of something else."""
    rows = torch.randn(1000, 16)
    tensors = {"model.embed_tokens.weight": rows, "model.layers.0.weight": torch.zeros(500, 500)}
    hub.loose["dir/model.safetensors"] = shard(tensors)
    return rows


def address(hub: HubServer, name: str = "model.safetensors") -> str:
    return f"{hub.store}/loose/dir/{name}"


def read(source: str, **options: object) -> torch.Tensor:
    with open_source(source, **options) as matrix:  # type: ignore[arg-type]
        return matrix.read(0, matrix.count)


def test_reads_by_ranges(hub: HubServer, embedding: torch.Tensor) -> None:
    assert torch.equal(read(address(hub)), embedding)
    assert hub.sent < embedding.nbytes + 1000
    assert torch.equal(read(address(hub) + "::model.embed_tokens.weight"), embedding)
    assert all("authorization" not in request.headers for request in hub.requests)


def test_the_second_run_asks_for_the_version_alone(hub: HubServer, embedding: torch.Tensor) -> None:
    read(address(hub))
    hub.forget()
    assert torch.equal(read(address(hub)), embedding)
    assert hub.sent == 8


def test_a_new_version_is_another_file(hub: HubServer, embedding: torch.Tensor) -> None:
    assert torch.equal(read(address(hub)), embedding)
    changed = embedding.flip(0)
    hub.loose["dir/model.safetensors"] = shard({"model.embed_tokens.weight": changed})
    assert torch.equal(read(address(hub)), changed)  # another length, so another version


def test_a_file_that_changes_meanwhile(hub: HubServer, embedding: torch.Tensor) -> None:
    hub.fault("other_etag", times=None, min_length=1 << 12)
    with pytest.raises(RemoteError, match="the file changed while it was read"):
        read(address(hub))


def test_no_version_no_reuse(hub: HubServer, embedding: torch.Tensor) -> None:
    hub.etags = False
    read(address(hub))
    hub.forget()
    assert torch.equal(read(address(hub)), embedding)
    assert hub.sent > embedding.nbytes


def test_offline(hub: HubServer, embedding: torch.Tensor, monkeypatch: pytest.MonkeyPatch) -> None:
    from huggingface_hub import constants

    read(address(hub))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert torch.equal(read(address(hub)), embedding)
    with pytest.raises(RemoteError, match="HF_HUB_OFFLINE is set"):
        read(address(hub, "other.safetensors"))


def test_a_server_without_ranges(hub: HubServer, embedding: torch.Tensor) -> None:
    hub.fault("ignore_range", times=None)
    with pytest.raises(RemoteError, match="would download 1 MB: pass --allow-full-download"):
        read(address(hub))
    calls: list[tuple[int, int]] = []
    told = {"allow_full_download": True, "on_progress": lambda done, total: calls.append((done, total))}
    assert torch.equal(read(address(hub), **told), embedding)
    size = len(hub.loose["dir/model.safetensors"])  # type: ignore[arg-type]
    assert calls[-1] == (size, size)
    hub.forget()
    assert torch.equal(read(address(hub), allow_full_download=True), embedding)
    assert hub.sent < 1 << 20  # it was kept: only the beginning was sent before the connection was cut


def test_a_server_without_ranges_that_stops_early(hub: HubServer, embedding: torch.Tensor) -> None:
    hub.fault("ignore_range", times=1)
    hub.fault("cut", after=5000, times=None)
    with pytest.raises(RemoteError, match=r"model\.safetensors: the connection"):
        read(address(hub), allow_full_download=True)


def test_a_server_without_ranges_that_compresses(hub: HubServer, embedding: torch.Tensor) -> None:
    hub.fault("ignore_range", times=1)
    hub.fault("gzip", times=None)
    with pytest.raises(RemoteError, match="compresses what it sends"):
        read(address(hub), allow_full_download=True)


def test_a_server_without_ranges_and_a_full_disk(
    hub: HubServer, embedding: torch.Tensor, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: ranges.RangeFile, write: ranges.Write) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(ranges.RangeFile, "whole", full)
    hub.fault("ignore_range", times=None)
    with pytest.raises(SourceError, match=r"cannot write .*: no space left on device"):
        read(address(hub), allow_full_download=True)


def test_gguf(hub: HubServer, tmp_path: Path) -> None:
    import numpy as np
    from gguf import GGUFWriter

    rows = np.random.default_rng(0).standard_normal((50, 32), dtype=np.float32)
    writer = GGUFWriter(tmp_path / "made.gguf", "llama")
    writer.add_tensor("token_embd.weight", rows)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    hub.loose["dir/m.gguf"] = (tmp_path / "made.gguf").read_bytes()
    assert np.array_equal(read(address(hub, "m.gguf")).numpy(), rows)


def test_pytorch_files(hub: HubServer) -> None:
    """An archive by ranges; an older pickle whole, where that is allowed."""
    rows, out = torch.randn(50, 32), io.BytesIO()
    torch.save({"wte.weight": rows, "h.0.weight": torch.zeros(1 << 20)}, out)
    hub.loose["dir/m.bin"] = out.getvalue()
    assert torch.equal(read(address(hub, "m.bin")), rows)
    assert hub.sent < 500_000
    out = io.BytesIO()
    torch.save({"wte.weight": rows, "h.0.weight": torch.zeros(1 << 20)}, out, _use_new_zipfile_serialization=False)
    hub.loose["dir/old.bin"] = out.getvalue()
    with pytest.raises(
        RemoteError, match=r"of this old kind can be read alone, so this would download 4 MB: pass --al"
    ):
        read(address(hub, "old.bin"))
    assert torch.equal(read(address(hub, "old.bin"), allow_full_download=True), rows)


def test_pytorch_files_of_a_server_without_ranges(hub: HubServer) -> None:
    rows, out = torch.randn(50, 32), io.BytesIO()
    torch.save({"wte.weight": rows}, out)
    hub.loose["dir/m.pt"] = out.getvalue()
    hub.fault("ignore_range", times=None)
    with pytest.raises(RemoteError, match="the server sends whole files only"):
        read(address(hub, "m.pt"))
    assert torch.equal(read(address(hub, "m.pt"), allow_full_download=True), rows)


def test_what_is_not_there(hub: HubServer) -> None:
    with pytest.raises(RemoteError, match="no such file"):
        read(address(hub, "nothing.safetensors"))


def test_addresses_that_say_nothing_of_their_kind(hub: HubServer) -> None:
    with pytest.raises(SourceError, match=r"must end in \.safetensors or \.bin or \.pt or \.pth or \.ckpt or \.gguf"):
        read(f"{hub.store}/loose/dir/download?id=7")
    assert not hub.requests


def test_the_hubs_own_addresses_get_the_token(hub: HubServer) -> None:
    rows = torch.randn(100, 16)
    hub.add("org/model", {"model.safetensors": shard({"wte.weight": rows})})
    hub.repos["org/model"].gated = True
    hub.repos["org/model"].readers = ("hf_secret",)
    assert torch.equal(read(f"{hub.endpoint}/org/model/resolve/main/model.safetensors"), rows)
    assert all("authorization" not in request.headers for request in hub.asked("store"))
