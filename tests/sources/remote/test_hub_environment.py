"""What huggingface_hub could not be imported with: one line that names the variable, and exit code 2."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest

from hubserver import HubServer
from repcap.errors import InputError
from repcap.sources.remote.hub_environment import check_environment


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("HF_ENDPOINT", "http://[::1"),
        ("HF_ENDPOINT", "http://localhost:port"),
        ("HF_ENDPOINT", "https://"),
        ("HF_ENDPOINT", "host.example"),
        ("HF_ENDPOINT", "ftp://host"),
        ("HF_ENDPOINT", ""),
        ("HF_HUB_DOWNLOAD_TIMEOUT", "abc"),
        ("HF_HUB_DOWNLOAD_TIMEOUT", "2.5"),
        ("HF_HUB_DOWNLOAD_TIMEOUT", "-1"),
        ("HF_HUB_DOWNLOAD_TIMEOUT", ""),
        ("HF_HUB_ETAG_TIMEOUT", "soon"),
    ],
)
def test_refused_before_it_is_imported(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.delitem(sys.modules, "huggingface_hub.constants", raising=False)
    monkeypatch.setenv(name, value)
    with pytest.raises(InputError, match=f"^{name} is '"):
        check_environment()


def test_what_is_right_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "huggingface_hub.constants", raising=False)
    for name, value in (("HF_ENDPOINT", "http://[::1]:80/hub/"), ("HF_HUB_DOWNLOAD_TIMEOUT", "30")):
        monkeypatch.setenv(name, value)
    check_environment()


@pytest.mark.parametrize("variable", ["HF_ENDPOINT=http://[::1", "HF_HUB_DOWNLOAD_TIMEOUT=abc"])
def test_one_line(variable: str) -> None:
    name, _, value = variable.partition("=")
    command = [sys.executable, "-m", "repcap", "measure", "org/model"]
    done = subprocess.run(command, env={**os.environ, name: value}, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith(f"repcap: error: {name} is '{value}'")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("HF_TOKEN", "hf_\xe4", "check HF_TOKEN"),
        ("HTTPS_PROXY", "nonsense://x", "check HTTPS_PROXY"),
        ("SSL_CERT_FILE", "/nowhere/at/all", "check SSL_CERT_FILE"),
    ],
)
def test_what_the_session_cannot_be_made_with(
    hub: HubServer, monkeypatch: pytest.MonkeyPatch, repcap: Any, name: str, value: str, words: str
) -> None:
    from huggingface_hub.utils import close_session

    monkeypatch.setenv(name, value)
    close_session()  # the next one is made with these variables
    try:
        for source in ("org/model", f"{hub.endpoint}/model.safetensors"):
            found = repcap("measure", source)
            assert found.code == 2
            assert words in found.err
            assert found.err.count("\n") == 1
    finally:
        monkeypatch.undo()
        close_session()


def test_a_cache_in_no_home(hub: HubServer, monkeypatch: pytest.MonkeyPatch, repcap: Any) -> None:
    hub.add("org/model", {})
    monkeypatch.setenv("REPCAP_CACHE", "~nobody-of-that-name/cache")
    found = repcap("measure", "org/model")
    assert found.code == 2
    assert "there is no such home directory" in found.err
