"""Checkpoints on a Hub of our own on loopback: the right rows, and no more bytes than they take."""

from __future__ import annotations

import torch

from hubserver import HubServer, checkpoint
from repcap.sources import open_source


def test_reads_the_embedding_and_little_else(hub: HubServer) -> None:
    files, embedding = checkpoint(rows=4096, dim=128)
    commit = hub.add("org/model", files)
    with open_source("org/model") as matrix:
        assert torch.equal(matrix.read(0, matrix.count), embedding)
        assert (matrix.info.revision, matrix.info.role, matrix.info.tied) == (commit, "embedding", True)
        assert matrix.bytes_read == embedding.nbytes
    header = 8 + int.from_bytes(files["model-00001-of-00003.safetensors"][:8], "little")
    small = len(files["config.json"]) + len(files["model.safetensors.index.json"])
    assert hub.sent <= header + small + 1.01 * embedding.nbytes
    assert not hub.asked(path="model-00002")
    assert not hub.asked(path="model-00003")
