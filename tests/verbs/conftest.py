"""What tests of several verbs share."""

from __future__ import annotations

import json

import pytest
from safetensors.torch import save_file


@pytest.fixture
def checkpoint(tmp_path):
    """Write a checkpoint directory and return its path."""

    def write(name, embedding, unembedding=None, vocab=None):
        folder = tmp_path / name
        folder.mkdir(parents=True)
        tensors = {"model.embed_tokens.weight": embedding.contiguous()}
        if unembedding is not None:
            tensors["lm_head.weight"] = unembedding.contiguous()
        save_file(tensors, folder / "model.safetensors")
        if vocab is not None:
            (folder / "vocab.json").write_text(json.dumps({text: row for row, text in enumerate(vocab)}))
        return str(folder)

    return write
