"""Advice that cannot help is not given: options that the verb does not have, tokens where none is sent."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

import repcap
from hubserver import HubServer
from repcap.cli import _flags
from repcap.console.failing import NO_HELP, helpful
from repcap.errors import MissingExtraError, RemoteError
from repcap.verbs import VERBS

EMBED, HEAD = "model.embed_tokens.weight", "lm_head.weight"
OPENING = [verb for verb in VERBS if "open_source" in "".join(
    path.read_text() for path in (Path(repcap.__file__).parent / "verbs" / verb).glob("*.py")
)]  # fmt: skip


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def refusal(outcome) -> str:
    assert outcome.code == 2
    assert outcome.err.count("\n") == 1
    return outcome.err.removeprefix("repcap: error: ").rstrip()


def test_a_truncated_file(here, repcap) -> None:
    save_file({EMBED: torch.randn(20, 4)}, "m.safetensors")
    whole = Path("m.safetensors").read_bytes()
    Path("m.safetensors").write_bytes(whole[:-8])
    said = f"m.safetensors is truncated: {len(whole) - 8} bytes of {len(whole)}; fetch it again"
    assert refusal(repcap("measure", "m.safetensors")) == (
        f"{said}, or pass --allow-truncated to read the tensors that are whole"
    )
    assert refusal(repcap("pairs", "m.safetensors")) == said
    assert refusal(repcap("compare", "m.safetensors", "m.safetensors")) == said


def test_matrices_by_name(here, repcap) -> None:
    save_file({"a": torch.randn(40, 4), "b": torch.randn(30, 4)}, "m.safetensors")
    said = "m.safetensors has no embedding under a known name; 2-d tensors of a vocabulary-like shape: "
    said += "a (40 x 4), b (30 x 4)"
    assert refusal(repcap("pairs", "m.safetensors")) == f"{said}; pick one with --matrix NAME"
    assert refusal(repcap("tokens", "m.safetensors")) == (
        f"{said}; repcap measure can measure those, with --matrix NAME"
    )


def test_a_part_that_holds_the_head(here, repcap) -> None:
    save_file({HEAD: torch.randn(40, 4)}, "model-00002-of-00002.safetensors")
    said = ".: 1 of 2 shards are missing, and none here holds the embedding; the unembedding lm_head.weight is here"
    assert refusal(repcap("pairs", ".")) == (
        f"{said}: --matrix unembedding; fetch the whole checkpoint, or name a tensor with --matrix"
    )
    assert (
        helpful(f"{said}: --matrix unembedding; fetch the whole checkpoint, or name a tensor with --matrix", {})
        == f"{said}; fetch the whole checkpoint"
    )


def test_a_download_that_the_verb_cannot_be_told_to_do(hub: HubServer, repcap) -> None:
    hub.add("org/old", {"a.npz": b"PK" + bytes(2_000_000)})
    said = "org/old has its weights in a.npz, of which no part can be read alone, so this would download 2 MB: "
    assert refusal(repcap("measure", "org/old")) == f"{said}pass --allow-full-download to do that"
    assert refusal(repcap("pairs", "org/old")) == f"{said}repcap measure can, with --allow-full-download"


def test_every_option_that_sources_speak_of_is_looked_at() -> None:
    """What a message names is known to NO_HELP, or every verb that opens a source has it."""
    folder = Path(repcap.__file__).parent
    texts = [path.read_text() for name in ("sources", "geometry") for path in (folder / name).rglob("*.py")]
    code = re.sub(r'"""(.|\n)*?"""|#.*', "", "\n".join(texts))
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", code))
    lenient = {option for option, _, _ in NO_HELP} | {"--no-deps"}
    for option in named - lenient:
        lacking = [verb for verb in OPENING if option not in _flags(verb).values()]
        assert len(lacking) < len(OPENING), option  # at least one has it, and it alone can meet that message
    assert {"--allow-truncated", "--allow-full-download", "--matrix"} <= named


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (401, "the server wants a login (401): give an address that needs none"),
        (403, "the server refuses access (403): the address may have expired"),
    ],
)
def test_no_token_where_none_is_sent(status: int, said: str, hub: HubServer) -> None:
    address = f"{hub.store}/loose/dir/m.safetensors"
    hub.loose["dir/m.safetensors"] = b"x"
    hub.fault("status", status=status, times=None)
    with pytest.raises(RemoteError) as caught:
        repcap_open(address)
    assert str(caught.value) == f"{address}: {said}"


def test_a_server_that_is_away_is_no_matter_of_the_hub(hub: HubServer) -> None:
    with pytest.raises(RemoteError) as caught:
        repcap_open("http://127.0.0.1:9/m.safetensors")
    assert str(caught.value).endswith(": check the network, the proxy and the address")
    assert "HF_" not in str(caught.value)


def repcap_open(source: str) -> None:
    from repcap.sources import open_source

    open_source(source)


def test_an_extra_that_is_installed() -> None:
    missing = "Parquet needs an optional package: pip install 'repcap[parquet]'"
    assert str(MissingExtraError("Parquet", "parquet")) == missing
    for error, said in (
        (ModuleNotFoundError("No module named 'pyarrow'"), missing),
        (
            ImportError("libarrow.so: cannot open shared object file"),
            "Parquet: a package that it needs is installed and cannot be imported (libarrow.so: cannot open shared "
            "object file): pip install --force-reinstall 'repcap[parquet]'",
        ),
    ):
        try:
            raise error
        except ImportError:  # noqa: PERF203
            assert str(MissingExtraError("Parquet", "parquet")) == said


def test_memory(monkeypatch, repcap) -> None:
    assert helpful("out of memory; try a smaller --block-rows", {}) == "out of memory"
    assert "--block-rows" in helpful("out of memory; try a smaller --block-rows", _flags("measure"))
