"""Writers of tiny checkpoints, by the format's own reference package where there is one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from hubmade import checkpoint
from hubserver import HubServer


@pytest.fixture
def rng() -> torch.Generator:
    return torch.Generator().manual_seed(20260602)


@pytest.fixture
def save(tmp_path: Path):
    """Write tensors as one safetensors file (and a config) into a directory; gives the file's path."""
    from safetensors.torch import save_file

    def write(tensors: Mapping[str, torch.Tensor], name: str = "model.safetensors", config: Any = None) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        save_file({key: value.contiguous() for key, value in tensors.items()}, path)
        if config is not None:
            (path.parent / "config.json").write_text(json.dumps(config))
        return path

    return write


@pytest.fixture
def shard(tmp_path: Path):
    """Write shards {file: tensors} and an index whose weight_map may be overridden; gives the directory."""
    from safetensors.torch import save_file

    def write(shards: Mapping[str, Mapping[str, torch.Tensor]], weight_map: Mapping[str, str] | None = None) -> Path:
        for file, tensors in shards.items():
            save_file(dict(tensors), tmp_path / file)
        true = {name: file for file, tensors in shards.items() for name in tensors}
        index = {"metadata": {}, "weight_map": dict(weight_map or true)}
        (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
        return tmp_path

    return write


@pytest.fixture
def gguf_file(tmp_path: Path):
    """Write a GGUF file with the gguf package: {name: array or (array, quantisation name)}; gives its path."""
    import gguf

    def write(
        tensors: Mapping[str, Any],
        name: str = "model.gguf",
        tokens: list[str] | None = None,
        model: str = "gpt2",
        extra: Mapping[str, str] | None = None,
    ) -> Path:
        path = tmp_path / name
        writer = gguf.GGUFWriter(str(path), "llama")
        writer.add_vocab_size(64)
        for key, value in (extra or {}).items():
            writer.add_string(key, value)
        if tokens is not None:
            writer.add_tokenizer_model(model)
            writer.add_token_list(tokens)
            writer.add_token_merges(["a b"])
        for key, value in tensors.items():
            array, kind = value if isinstance(value, tuple) else (value, None)
            if kind is None:
                writer.add_tensor(key, np.ascontiguousarray(array))
                continue
            quantisation = gguf.GGMLQuantizationType[kind]
            raw = array if array.dtype == np.uint8 else gguf.quants.quantize(array, quantisation)
            writer.add_tensor(key, np.ascontiguousarray(raw), raw_dtype=quantisation)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        return path

    return write


@pytest.fixture
def model(hub: HubServer) -> torch.Tensor:
    """The embedding of `org/model`, 256 kB."""
    files, embedding = checkpoint(rows=2048, dim=64)
    hub.add("org/model", files)
    return embedding
