"""Connections that break or stall, where the token goes, and the disk: one clear line each."""

from __future__ import annotations

import dataclasses
import errno
import os
import threading
import time
from pathlib import Path

import pytest
import torch

from hubmade import checkpoint, line, read
from hubserver import HubServer
from repcap.errors import RemoteError, RepcapError, SourceError
from repcap.sources import open_source
from repcap.sources.remote import hub_repo, ranges

FIRST = "model-00001-of-00003.safetensors"
BODY = 1 << 12
"""Ranges of at least so many bytes are the tensor's, not the header's."""


# Connections


def test_a_connection_that_is_cut_goes_on_where_it_broke(hub: HubServer, model: torch.Tensor) -> None:
    hub.fault("cut", after=100_000, times=2, min_length=BODY)
    assert torch.equal(read(), model)
    asked = [r.range for r in hub.asked("store") if r.range and r.range[1] - r.range[0] >= BODY]
    assert len(asked) == 3
    assert asked[1] is not None
    assert asked[0] is not None
    assert asked[1][0] == asked[0][0] + 100_000  # not from the start
    assert sum(r.sent for r in hub.asked("store")) <= model.nbytes + 1024


def test_a_connection_that_is_always_cut(hub: HubServer, model: torch.Tensor) -> None:
    hub.fault("cut", after=1000, times=None, min_length=BODY)
    with pytest.raises(RemoteError) as error:
        read()
    assert "MB are kept: run again to go on" in line(error)
    hub.heal()
    hub.forget()
    assert torch.equal(read(), model)
    assert sum(r.sent for r in hub.asked("store")) < model.nbytes  # what was kept was not sent again


def test_connections_that_are_dropped(hub: HubServer, model: torch.Tensor) -> None:
    hub.fault("drop", times=2, min_length=BODY)
    assert torch.equal(read(), model)
    assert len([r for r in hub.asked("store") if r.status == 0]) == 2


def test_connections_that_are_always_dropped(hub: HubServer, model: torch.Tensor) -> None:
    hub.fault("drop", times=None)
    with pytest.raises(RemoteError, match="the connection was lost"):
        read()


def test_a_trickle_is_a_dead_connection(hub: HubServer, model: torch.Tensor) -> None:
    """One byte every 10 ms would take 40 minutes, and no read of it ever times out."""
    hub.fault("trickle", after=50_000, delay=0.01, times=1, min_length=BODY)
    started = time.monotonic()
    assert torch.equal(read(), model)
    assert time.monotonic() - started < 20


def test_a_trickle_without_end(hub: HubServer, model: torch.Tensor) -> None:
    hub.fault("trickle", after=0, delay=0.01, times=None, min_length=BODY)
    with pytest.raises(RemoteError, match="next to nothing"):
        read()


def test_a_head_in_a_trickle(hub: HubServer, model: torch.Tensor, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every read of it brings a byte, so no time-out of the HTTP library ends it."""
    hub.fault("trickled_head", delay=0.01, times=1, min_length=BODY)
    assert torch.equal(read(), model)
    hub.fault("trickled_head", delay=0.01, times=None, min_length=BODY)
    monkeypatch.setenv("REPCAP_CACHE", str(Path(os.environ["REPCAP_CACHE"]) / "another"))
    started = time.monotonic()
    with pytest.raises(RemoteError, match=r"does not come to the point in .* HF_HUB_DOWNLOAD_TIMEOUT"):
        read()
    assert time.monotonic() - started < 20


@pytest.mark.parametrize(
    ("where", "path", "kind"),
    [
        ("api", "", "trickled_head"),
        ("api", "", "trickle"),
        ("resolve", "config.json", "trickled_head"),
        ("resolve", "config.json", "trickle"),
    ],
)
def test_small_answers_in_a_trickle(
    hub: HubServer, model: torch.Tensor, monkeypatch: pytest.MonkeyPatch, where: str, path: str, kind: str
) -> None:
    monkeypatch.setattr(hub_repo, "PATIENCE", dataclasses.replace(hub_repo.PATIENCE, call=0.1, least_rate=1e8))
    config = b'{"model_type": "llama"}' + b" " * 5000
    hub.repos["org/model"].commits[hub.repos["org/model"].refs["main"]]["config.json"] = config
    hub.fault(kind, where=where, path=path, delay=0.02, times=None)
    started = time.monotonic()
    with pytest.raises(RemoteError, match=r"does not come to an end in .* HF_HUB_DOWNLOAD_TIMEOUT"):
        read()
    assert time.monotonic() - started < 10


def test_a_server_that_hangs(hub: HubServer, model: torch.Tensor, monkeypatch: pytest.MonkeyPatch) -> None:
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_DOWNLOAD_TIMEOUT", 0.3)
    monkeypatch.setattr(ranges, "PATIENCE", dataclasses.replace(ranges.PATIENCE, answer=3.0))
    hub.fault("hang", delay=2.0, times=None, min_length=BODY)
    with pytest.raises(RemoteError, match="time-out"):
        read()


def test_nobody_listens(hub: HubServer, monkeypatch: pytest.MonkeyPatch) -> None:
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(RemoteError) as error:
        open_source("org/model")
    assert "cannot be reached" in line(error)


def test_an_endpoint_that_is_no_address(hub: HubServer, monkeypatch: pytest.MonkeyPatch) -> None:
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "ENDPOINT", "nonsense")
    with pytest.raises(RemoteError, match=r"the address is none .*: check HF_ENDPOINT"):
        open_source("org/model")


def test_one_failure_ends_the_transfer(hub: HubServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other workers stop; they do not fetch the rest for nothing."""
    from repcap.sources.remote import transfer

    monkeypatch.setattr(transfer, "PLAN", transfer.Plan(workers=2, chunk_least=1 << 16, chunk_most=1 << 16))
    files, embedding = checkpoint(rows=1 << 15, dim=128)  # 8 MB in 128 chunks
    hub.add("org/model", files)
    hub.fault("status", status=404, skip=4, times=None, min_length=BODY)
    with pytest.raises(RemoteError, match="no such file"):
        read()
    assert sum(r.sent for r in hub.asked("store")) < embedding.nbytes // 4
    assert not [t for t in threading.enumerate() if t.name.startswith("repcap-range")]


# The token


def test_the_token_stays_with_the_hub(hub: HubServer, model: torch.Tensor) -> None:
    assert torch.equal(read(), model)
    assert {r.headers.get("authorization") for r in hub.asked("resolve")} == {"Bearer hf_secret"}
    assert hub.asked("store")
    assert all("authorization" not in r.headers for r in hub.asked("store"))


def test_a_redirect_to_another_host_gets_no_token(hub: HubServer, model: torch.Tensor) -> None:
    with HubServer() as evil:
        evil.loose["model.safetensors"] = b"x" * 64
        where = f"{evil.endpoint}/org/model/resolve/main/model.safetensors"
        hub.fault("redirect", where="resolve", path=FIRST, headers={"Location": where}, times=None)
        with pytest.raises(RemoteError):
            read()
        assert evil.requests
        assert all("authorization" not in r.headers for r in evil.requests)


def test_the_full_download_sends_no_token_to_another_host(hub: HubServer, model: torch.Tensor) -> None:
    hub.fault("ignore_range", times=None)
    with open_source("org/model", allow_full_download=True) as matrix:
        matrix.read(0, 1)
    assert all("authorization" not in r.headers for r in hub.asked("store"))


@pytest.mark.parametrize("target", ["ftp://127.0.0.1/x", "file:///etc/passwd", "http://127.0.0.1:port/x"])
def test_a_redirect_to_what_is_no_web_address(hub: HubServer, model: torch.Tensor, target: str) -> None:
    hub.fault("redirect", where="resolve", path=FIRST, headers={"Location": target}, times=None)
    with pytest.raises(RemoteError, match=r"which is no web address|what is no address|Invalid port"):
        read()


def test_redirects_in_a_circle(hub: HubServer, model: torch.Tensor) -> None:
    hub.fault("redirect", where="resolve", path=FIRST, headers={"Location": "?again"}, times=None)
    with pytest.raises(RemoteError, match="redirects more than 10 times"):
        read()


def test_a_signed_address_that_expires_is_asked_for_again(hub: HubServer, monkeypatch: pytest.MonkeyPatch) -> None:
    from repcap.sources.remote import transfer

    monkeypatch.setattr(transfer, "PLAN", transfer.Plan(workers=1, chunk_least=1 << 16, chunk_most=1 << 16))
    files, embedding = checkpoint(rows=4096, dim=64)
    hub.add("org/model", files)
    hub.fault("status", status=403, skip=3, times=1, min_length=BODY)
    assert torch.equal(read(), embedding)
    assert len(hub.asked("resolve", FIRST)) == 2


# The disk


def test_a_cache_that_cannot_be_written(
    hub: HubServer, model: torch.Tensor, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    monkeypatch.setenv("REPCAP_CACHE", str(blocked))
    with pytest.raises(RepcapError, match="REPCAP_CACHE"):
        read()


def test_a_disk_that_is_too_small(hub: HubServer, model: torch.Tensor, monkeypatch: pytest.MonkeyPatch) -> None:
    import shutil
    from collections import namedtuple

    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage(1, 1, 1000))
    with pytest.raises(SourceError, match=r"0 MB free.*REPCAP_CACHE"):
        read()


def test_a_cache_that_may_only_be_read_is_enough_when_it_is_full(
    hub: HubServer, model: torch.Tensor, tmp_path: Path
) -> None:
    read()
    (refs,) = (tmp_path / "repcap-cache").rglob("refs")
    (refs / "main").unlink()
    refs.rmdir()
    refs.write_text("in the way")
    hub.forget()
    assert torch.equal(read(), model)
    assert not hub.asked("store")


def test_a_disk_that_is_full_says_which(hub: HubServer, model: torch.Tensor, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: Path, body: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(RepcapError, match=r"cannot write the cache .*header: no space left .*; set REPCAP_CACHE"):
        read()


def test_the_other_cache_that_cannot_be_written(
    hub: HubServer, model: torch.Tensor, monkeypatch: pytest.MonkeyPatch
) -> None:
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_CACHE", "/dev/null/hub")
    with pytest.raises(RemoteError, match=r"cannot use its own files .*: set HF_HOME"):
        read()
