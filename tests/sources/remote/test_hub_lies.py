"""Answers that no honest server gives, and caches that somebody has edited: a clear line, or the right rows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

import hubserver
from hubmade import read
from hubserver import HubServer
from repcap.errors import RemoteError, RepcapError
from repcap.sources import open_source
from repcap.sources.remote import hub_repo

FIRST = "model-00001-of-00003.safetensors"
INDEX = "model.safetensors.index.json"
BODY = 1 << 12
"""Ranges of at least so many bytes are the tensor's, not the header's."""


def files_of(hub: HubServer) -> dict[str, bytes | Path]:
    repo = hub.repos["org/model"]
    return repo.commits[repo.refs["main"]]


def replaced_header(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    """Every answer that has this header has this value in it."""
    send = hubserver._Handler.send_header

    def other(self: hubserver._Handler, key: str, given: str) -> None:
        send(self, key, value if key.lower() == name else given)

    monkeypatch.setattr(hubserver._Handler, "send_header", other)


@pytest.mark.parametrize(
    "value", ["bytes 0-7/" + "9" * 5000, f"bytes {'0' * 5000}-7/100", "bytes \xb2-7/9", "bytes 0-7", "", "bytes 7-0/8"]
)
def test_content_ranges_that_are_none(
    hub: HubServer, model: torch.Tensor, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    replaced_header(monkeypatch, "content-range", value)
    with pytest.raises(RemoteError, match="its answers cannot be trusted") as error:
        read()
    assert len(str(error.value)) < 400


@pytest.mark.parametrize("value", ["\xb2", "-1", "9" * 500, "Fri, 31 Dec 9999 23:59:59 GMT"])
def test_a_retry_after_that_is_none(hub: HubServer, model: torch.Tensor, value: str) -> None:
    hub.fault("status", status=429, headers={"Retry-After": value}, times=None, min_length=BODY)
    with pytest.raises(RemoteError, match=r"too many requests \(429\): wait some minutes"):
        read()


@pytest.mark.parametrize("target", ["http://[::1", "http://localhost:99999/x", "https://", "\x7f"])
@pytest.mark.parametrize("file", [FIRST, INDEX])
def test_redirects_to_no_address(hub: HubServer, model: torch.Tensor, file: str, target: str) -> None:
    for method in ("GET", "HEAD"):
        hub.fault("redirect", where="resolve", method=method, path=file, headers={"Location": target}, times=None)
    with pytest.raises(RemoteError) as error:
        read()
    assert "\n" not in str(error.value)
    assert file in str(error.value)


# Small files


@pytest.fixture
def big(tmp_path: Path) -> Path:
    """More bytes than any index, configuration or tokenizer has; a hole on the disk."""
    path = tmp_path / "big"
    with path.open("wb") as out:
        out.truncate(hub_repo.MAX_JSON + 1)
    return path


def test_an_index_without_measure_is_not_read(hub: HubServer, model: torch.Tensor, big: Path) -> None:
    files_of(hub)[INDEX] = big
    with pytest.raises(RemoteError, match=f"{INDEX} has 67 MB or more; .* it is not read"):
        read()
    assert hub.sent < 8_000_000


@pytest.mark.parametrize(
    ("file", "words"),
    [("config.json", "tying is judged without it"), ("tokenizer.json", "rows are shown without their tokens")],
)
def test_a_large_file_beside_the_weights_is_a_warning(
    hub: HubServer, model: torch.Tensor, big: Path, file: str, words: str
) -> None:
    files_of(hub)[file] = big
    with open_source("org/model") as matrix:
        assert torch.equal(matrix.read(0, matrix.count), model)
        assert any(file in warning and words in warning for warning in matrix.info.warnings)
    assert hub.sent < 8_000_000


@pytest.mark.parametrize("file", ["config.json", INDEX])
@pytest.mark.parametrize("status", [429, 500, 503])
def test_small_files_are_asked_for_again(hub: HubServer, model: torch.Tensor, file: str, status: int) -> None:
    headers = {"Retry-After": "0"}
    hub.fault("status", where="resolve", path=file, status=status, headers=headers, times=2)
    assert torch.equal(read(), model)


def test_small_files_are_not_asked_for_without_end(hub: HubServer, model: torch.Tensor) -> None:
    hub.fault("status", where="resolve", path=INDEX, status=503, times=None)
    with pytest.raises(RemoteError, match="the server fails"):
        read()
    assert len([r for r in hub.asked("resolve", INDEX) if r.method == "GET"]) == hub_repo.PATIENCE.tries


# What somebody did to the cache


def kept(tmp_path: Path, pattern: str) -> Path:
    (found,) = [path for path in (tmp_path / "repcap-cache").rglob(pattern) if path.is_file()]
    return found


def test_a_tensor_of_another_shape_in_the_cache(hub: HubServer, model: torch.Tensor, tmp_path: Path) -> None:
    read()
    path = kept(tmp_path, "*.safetensors")
    whole = path.read_bytes()
    start = 8 + int.from_bytes(whole[:8], "little")
    assert b"[2048,64]" in whole[:start]
    path.write_bytes(whole[:start].replace(b"[2048,64]", b"[64,2048]") + bytes(len(whole) - start))
    with open_source("org/model") as matrix:
        assert torch.equal(matrix.read(100, 200), model[100:200])
    assert torch.equal(read(), model)


def test_a_tensor_in_the_cache_that_was_edited(hub: HubServer, model: torch.Tensor, tmp_path: Path) -> None:
    """Same size, same header, other numbers: fetched again, and nothing else is."""
    read()
    path = kept(tmp_path, "*.safetensors")
    body = bytearray(path.read_bytes())
    body[-1000:] = bytes(1000)
    path.write_bytes(body)
    hub.forget()
    assert torch.equal(read(), model)
    assert 1000 <= sum(r.sent for r in hub.asked("store")) <= model.nbytes
    hub.forget()
    assert torch.equal(read(), model)
    assert not hub.asked("store")


@pytest.mark.parametrize(
    "damage",
    [lambda body: b"", lambda body: body[:50], lambda body: body + b"x", lambda body: body.replace(b"2048", b"1024")],
)
def test_a_header_in_the_cache_that_is_not_whole(
    hub: HubServer, model: torch.Tensor, tmp_path: Path, damage: Callable[[bytes], bytes]
) -> None:
    read()
    header = kept(tmp_path, "header")
    before = header.read_bytes()
    header.write_bytes(damage(before))
    assert torch.equal(read(), model)
    assert header.read_bytes() == before


def test_a_gguf_header_in_the_cache_that_is_not_whole(hub: HubServer, gguf_file, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    rows = torch.arange(64.0 * 32).reshape(64, 32)
    hub.add("org/model", {"model.gguf": gguf_file({"token_embd.weight": rows.numpy()}).read_bytes()})
    assert torch.equal(read(), rows)
    header = kept(tmp_path, "header")
    header.write_bytes(header.read_bytes()[:40])
    assert torch.equal(read(), rows)


def test_a_listing_in_the_cache_that_is_no_list(hub: HubServer, model: torch.Tensor, tmp_path: Path) -> None:
    read()
    kept(tmp_path, "files.json").write_text("{")
    assert torch.equal(read(), model)


def test_a_part_with_a_journal_of_another_file(hub: HubServer, model: torch.Tensor, tmp_path: Path) -> None:
    with open_source("org/model") as matrix:
        matrix.read(0, 100)
    kept(tmp_path, "*.part").write_bytes(b"short")
    with open_source("org/model") as matrix:
        assert torch.equal(matrix.read(0, 100), model[:100])


def test_nothing_of_the_token_is_kept(hub: HubServer, model: torch.Tensor, tmp_path: Path) -> None:
    read()
    kept_files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert kept_files
    assert not [path for path in kept_files if b"hf_secret" in path.read_bytes()]


def test_errors_are_of_repcap(hub: HubServer, model: torch.Tensor) -> None:
    """Two faults at once: the connection trickles, breaks, and what comes back is of another kind."""
    hub.fault("trickle", after=50_000, delay=0.01, times=1, min_length=BODY)
    hub.fault("cut", after=70_000, times=1, min_length=BODY)
    hub.fault("gzip", times=1, min_length=BODY)
    with pytest.raises(RepcapError, match="compresses"):
        read()
    hub.heal()
    assert torch.equal(read(), model)
