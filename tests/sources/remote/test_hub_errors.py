"""What goes wrong at a Hub or on the way to it: one clear line each, and never a byte too many."""

from __future__ import annotations

import time

import pytest
import torch

from hubmade import checkpoint, line, read
from hubserver import HubServer
from repcap.errors import RemoteError, SourceError
from repcap.sources import open_source
from repcap.sources.remote import ranges

FIRST = "model-00001-of-00003.safetensors"
BODY = 1 << 12
"""Ranges of at least so many bytes are the tensor's, not the header's."""


# What the Hub says


def test_unknown_repository(hub: HubServer) -> None:
    with pytest.raises(RemoteError) as error:
        open_source("org/nothing")
    assert "org/nothing is not at" in line(error)
    assert "HF_TOKEN" in line(error)


@pytest.mark.parametrize("status", [401, 404])
def test_unknown_repository_in_any_of_the_hubs_words(hub: HubServer, status: int) -> None:
    hub.fault("status", where="api", status=status, times=None)  # no X-Error-Code at all
    with pytest.raises(RemoteError, match=r"org/nothing is not at .*, or is private"):
        open_source("org/nothing")


def test_invalid_token(hub: HubServer, model: torch.Tensor) -> None:
    headers = {"X-Error-Message": "Invalid credentials in Authorization header"}
    hub.fault("status", where="api", status=401, headers=headers, times=None)
    with pytest.raises(RemoteError, match="the token is not valid"):
        open_source("org/model")


def test_gated_before_not_found(hub: HubServer, model: torch.Tensor, monkeypatch: pytest.MonkeyPatch) -> None:
    hub.repos["org/model"].gated = True
    for token in ("hf_secret", ""):  # 403 with a token, 401 without
        monkeypatch.setenv("HF_TOKEN", token)
        with pytest.raises(RemoteError) as error:
            open_source("org/model")
        assert "org/model is gated: ask for access at" in line(error)
        assert "not at" not in line(error)
    monkeypatch.setenv("HF_TOKEN", "hf_reader")
    hub.repos["org/model"].readers = ("hf_reader",)
    assert torch.equal(read(), model)


def test_gate_that_closes_at_the_weights(hub: HubServer, model: torch.Tensor) -> None:
    """Small files open, the weights not: the range reader has to know the Hub's words, too."""
    headers = {"X-Error-Code": "GatedRepo", "X-Error-Message": "Access to model org/model is restricted."}
    hub.fault("status", where="resolve", path=FIRST, status=403, headers=headers, times=None)
    with pytest.raises(RemoteError, match="org/model is gated"):
        read()


def test_disabled_repository(hub: HubServer, model: torch.Tensor) -> None:
    headers = {"X-Error-Message": "Access to this resource is disabled."}
    hub.fault("status", where="resolve", path=FIRST, status=403, headers=headers, times=None)
    with pytest.raises(RemoteError, match="has been disabled"):
        read()


def test_wrong_revision(hub: HubServer, model: torch.Tensor) -> None:
    with pytest.raises(RemoteError) as error:
        open_source("org/model@no-such-branch")
    assert "org/model has no revision 'no-such-branch'" in line(error)


def test_shard_that_is_not_there(hub: HubServer, model: torch.Tensor) -> None:
    del hub.repos["org/model"].commits[hub.repos["org/model"].refs["main"]][FIRST]
    with pytest.raises(RemoteError, match=f"{FIRST}: there is no such file at"):
        read()


def test_a_missing_shard_matters_only_for_what_it_holds(hub: HubServer, model: torch.Tensor) -> None:
    del hub.repos["org/model"].commits[hub.repos["org/model"].refs["main"]]["model-00002-of-00003.safetensors"]
    assert torch.equal(read(), model)


def test_no_weights(hub: HubServer) -> None:
    hub.add("org/readme", {"README.md": b"hello", "config.json": b"{}"})
    with pytest.raises(SourceError, match=r"holds no weights that repcap reads.*README.md"):
        open_source("org/readme")


def test_not_a_hub_at_all(hub: HubServer, model: torch.Tensor) -> None:
    """HF_ENDPOINT points to something that answers every address with a page."""
    commit = hub.repos["org/model"].refs["main"]
    hub.fault("page", where="api", times=None)
    with pytest.raises(RemoteError) as error:
        open_source("org/model")
    assert "HF_ENDPOINT" in line(error)
    assert commit not in line(error)


def test_a_name_that_no_hub_takes(hub: HubServer) -> None:
    with pytest.raises(RemoteError, match="not a name that the Hub takes"):
        open_source("org/a--b")
    assert not hub.requests


# Statuses at the ranges


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (401, "wants a login"),
        (403, "refuses access"),
        (404, "no such file"),
        (416, "beyond the end"),
        (418, "status 418"),
    ],
)
def test_statuses_that_stay(hub: HubServer, model: torch.Tensor, status: int, words: str) -> None:
    hub.fault("status", status=status, times=None, min_length=BODY)
    with pytest.raises(RemoteError) as error:
        read()
    assert words in line(error)
    assert FIRST in line(error)


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
def test_statuses_that_pass(hub: HubServer, model: torch.Tensor, status: int) -> None:
    hub.fault("status", status=status, times=2, min_length=BODY)
    assert torch.equal(read(), model)


@pytest.mark.parametrize(("status", "words"), [(429, "too many requests"), (503, "the server fails")])
def test_statuses_that_do_not_pass_in_time(hub: HubServer, model: torch.Tensor, status: int, words: str) -> None:
    hub.fault("status", status=status, times=None, min_length=BODY)
    with pytest.raises(RemoteError, match=words):
        read()
    tried = [r for r in hub.asked("store") if r.range and r.range[1] - r.range[0] >= BODY]
    assert len(tried) == ranges.PATIENCE.tries


@pytest.mark.parametrize("where", ["api", "resolve"])
def test_the_front_fails_in_passing(hub: HubServer, model: torch.Tensor, where: str) -> None:
    hub.fault("status", where=where, path="" if where == "api" else FIRST, status=500, times=2)
    assert torch.equal(read(), model)


def test_retry_after_is_obeyed(hub: HubServer, model: torch.Tensor) -> None:
    hub.fault("status", status=429, headers={"Retry-After": "1"}, times=1, min_length=BODY)
    started = time.monotonic()
    assert torch.equal(read(), model)
    assert time.monotonic() - started >= 1.0


def test_a_long_retry_after_is_for_the_user(hub: HubServer, model: torch.Tensor) -> None:
    hub.fault("status", status=429, headers={"Retry-After": "3600"}, times=None, min_length=BODY)
    with pytest.raises(RemoteError) as error:
        read()
    assert "wait 3600 s" in line(error)
    assert len([r for r in hub.asked("store") if r.status == 429]) == 1


# Servers that lie


def test_a_server_that_ignores_ranges_is_cut_off(hub: HubServer) -> None:
    """The file is 40 MB; what leaves the server before it is cut off fits into the socket's buffers."""
    files, _ = checkpoint(rows=2048, dim=64)
    files[FIRST] = files[FIRST] + bytes(40_000_000)
    hub.add("org/model", files)
    hub.fault("ignore_range", times=None)
    with pytest.raises(ranges.RangesRefused) as error:
        read()
    assert "would download 40 MB: pass --allow-full-download" in line(error)
    wait_until_quiet(hub)
    assert hub.sent < 8_000_000


def test_full_download_where_it_is_allowed(hub: HubServer, model: torch.Tensor) -> None:
    hub.fault("ignore_range", times=None)
    with open_source("org/model", allow_full_download=True) as matrix:
        assert torch.equal(matrix.read(0, matrix.count), model)
    hub.forget()
    assert torch.equal(read(), model)  # from huggingface_hub's cache
    assert not hub.asked("store")


def test_ranges_that_stop_working_between_header_and_rows(hub: HubServer, model: torch.Tensor) -> None:
    hub.fault("ignore_range", times=None, min_length=BODY)
    with pytest.raises(ranges.RangesRefused):
        read()
    with open_source("org/model", allow_full_download=True) as matrix:
        assert torch.equal(matrix.read(0, matrix.count), model)


@pytest.mark.parametrize("kind", ["wrong_content_range", "no_content_range"])
def test_wrong_content_range(hub: HubServer, model: torch.Tensor, kind: str) -> None:
    hub.fault(kind, times=None)
    with pytest.raises(RemoteError, match="its answers cannot be trusted"):
        read()


def test_short_body(hub: HubServer, model: torch.Tensor) -> None:
    hub.fault("short_body", times=None, min_length=BODY)
    with pytest.raises(RemoteError, match="its answers cannot be trusted"):
        read()


def test_compressed_ranges_are_refused(hub: HubServer, model: torch.Tensor) -> None:
    hub.fault("gzip", times=None, min_length=BODY)
    with pytest.raises(RemoteError, match="compresses what it sends"):
        read()


def test_a_file_shorter_than_its_header_says(hub: HubServer, model: torch.Tensor) -> None:
    files = hub.repos["org/model"].commits[hub.repos["org/model"].refs["main"]]
    whole = files[FIRST]
    assert isinstance(whole, bytes)
    files[FIRST] = whole[:-100]  # the embedding comes first in the file, and is whole
    with pytest.raises(SourceError, match="--allow-truncated"):
        read()
    with open_source("org/model", allow_truncated=True) as matrix:
        assert torch.equal(matrix.read(0, matrix.count), model)
        assert any("truncated" in warning for warning in matrix.info.warnings)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n", "git-lfs pointer"),
        (b"<!DOCTYPE html><html>log in</html>", "web page"),
        (b"abc", "3 bytes"),
        (b"\xff" * 64, "not a safetensors file"),
        ((1000).to_bytes(8, "little") + b"{}", "truncated inside its header"),
        ((4).to_bytes(8, "little") + b"nope" + bytes(64), "damaged header"),
    ],
)
def test_what_is_no_safetensors_file(hub: HubServer, content: bytes, words: str) -> None:
    hub.add("org/odd", {"model.safetensors": content})
    with pytest.raises(SourceError) as error:
        open_source("org/odd")
    assert words in line(error)


def test_an_index_that_points_outside(hub: HubServer) -> None:
    index = b'{"weight_map": {"model.embed_tokens.weight": "../../other/repo/model.safetensors"}}'
    hub.add("org/model", {"model.safetensors.index.json": index})
    with pytest.raises(SourceError, match="outside its own directory"):
        open_source("org/model")


def wait_until_quiet(hub: HubServer) -> None:
    """Until the server has noticed that its client is gone."""
    before = -1
    while before != hub.sent:
        before = hub.sent
        time.sleep(0.2)
