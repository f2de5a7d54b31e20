"""What tests of remote sources share: the `hub` fixture, and made checkpoints to put there."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hubserver import HubServer


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[HubServer]:
    """A Hub on loopback that huggingface_hub and repcap talk to, with empty caches; any other address is refused."""
    from huggingface_hub import constants

    from repcap.sources.remote import hub_repo, ranges

    def loopback_only(self: socket.socket, address: Any, connect: Any = socket.socket.connect) -> Any:
        assert self.family == socket.AF_UNIX or address[0] in ("127.0.0.1", "::1", "localhost"), f"call to {address}"
        return connect(self, address)

    with HubServer() as server:
        monkeypatch.setattr(socket.socket, "connect", loopback_only)
        monkeypatch.setattr(constants, "ENDPOINT", server.endpoint)
        template = server.endpoint + "/{repo_id}/resolve/{revision}/{filename}"
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub-cache"))
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
        monkeypatch.setenv("REPCAP_CACHE", str(tmp_path / "repcap-cache"))
        monkeypatch.setenv("HF_TOKEN", "hf_secret")
        # Impatient, so that a test of giving up takes a fraction of a second.
        quick = ranges.Patience(tries=4, first_wait=0.01, longest_wait=0.02, stall=0.05, answer=0.1)
        monkeypatch.setattr(ranges, "PATIENCE", quick)
        monkeypatch.setattr(hub_repo, "PATIENCE", quick)
        yield server


def environment(server: HubServer, tmp_path: Path) -> dict[str, str]:
    """What a process needs in its environment to talk to `server` with caches under `tmp_path`."""
    return {
        "HF_ENDPOINT": server.endpoint,
        "HF_HOME": str(tmp_path / "hf-home"),
        "REPCAP_CACHE": str(tmp_path / "repcap-cache"),
        "HF_TOKEN": "hf_secret",
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "NO_PROXY": "127.0.0.1,localhost",
    }


def shard(tensors: dict[str, Any], metadata: dict[str, str] | None = None) -> bytes:
    """A safetensors file of numpy or torch tensors."""
    import numpy as np
    from safetensors.numpy import save as save_numpy
    from safetensors.torch import save as save_torch

    if all(isinstance(value, np.ndarray) for value in tensors.values()):
        return bytes(save_numpy(tensors, metadata))
    return bytes(save_torch(tensors, metadata))


def checkpoint(
    rows: int = 2048, dim: int = 64, seed: int = 0, tied: bool = True, body: int = 1 << 20
) -> tuple[dict[str, bytes | Path], Any]:
    """(files, embedding) of a small sharded checkpoint in bfloat16; `body` is the bytes of its other weights."""
    import torch

    generator = torch.Generator().manual_seed(seed)
    embedding = (torch.randn(rows, dim, generator=generator) + 0.3).bfloat16()
    tensors: dict[str, dict[str, Any]] = {
        "model-00001-of-00003.safetensors": {
            "model.embed_tokens.weight": embedding,
            "model.norm.weight": torch.ones(dim).bfloat16(),
        },
        "model-00002-of-00003.safetensors": {"model.layers.0.mlp.up_proj.weight": torch.zeros(body // 2).bfloat16()},
        "model-00003-of-00003.safetensors": {"model.layers.1.mlp.up_proj.weight": torch.zeros(body // 2).bfloat16()},
    }
    if not tied:
        head = torch.randn(rows, dim, generator=generator).bfloat16()
        tensors["model-00003-of-00003.safetensors"]["lm_head.weight"] = head
    config = {"model_type": "llama", "vocab_size": rows, "hidden_size": dim, "tie_word_embeddings": tied}
    index = {"metadata": {}, "weight_map": {name: file for file, held in tensors.items() for name in held}}
    files: dict[str, bytes | Path] = {file: shard(held) for file, held in tensors.items()}
    files["model.safetensors.index.json"] = json.dumps(index).encode()
    files["config.json"] = json.dumps(config).encode()
    return files, embedding


def sparse_shard(path: Path, rows: int, dim: int, size: int) -> int:
    """A safetensors file of over `size` bytes, all but its bfloat16 embedding a hole; returns its header's bytes."""
    import numpy as np

    body, tensor = size, rows * dim * 2
    entries = {
        "model.layers.0.weight": {"dtype": "BF16", "shape": [body // 2], "data_offsets": [0, body]},
        "model.embed_tokens.weight": {"dtype": "BF16", "shape": [rows, dim], "data_offsets": [body, body + tensor]},
    }
    text = json.dumps(entries).encode()
    text += b" " * (-len(text) % 8)
    rng = np.random.default_rng(0)
    with path.open("wb") as out:
        out.write(len(text).to_bytes(8, "little") + text)
        out.seek(8 + len(text) + body)
        for start in range(0, rows, 4096):
            block = rng.standard_normal((min(4096, rows - start), dim), dtype=np.float32) + np.float32(0.2)
            out.write((block.view(np.uint32) >> 16).astype(np.uint16).tobytes())  # the upper half is bfloat16
    return 8 + len(text)


def read() -> Any:
    """The embedding of `org/model`, all rows."""
    from repcap.sources import open_source

    with open_source("org/model") as matrix:
        return matrix.read(0, matrix.count)


def line(error: pytest.ExceptionInfo[Exception]) -> str:
    """The message, which must be one line."""
    text = str(error.value)
    assert "\n" not in text
    assert "hf_secret" not in text
    return text
