"""Small checkpoints for the tests of surveys, and the real workers with a log of when they start and end."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np


def make_checkpoint(folder, rows=40, d=8, seed=0, *, head=None, extra=None):
    """A checkpoint directory like a small Llama; returns (path, embedding, unembedding or None).

    head: None (tied, no tensor), "own" or "copy".
    """
    from safetensors.numpy import save_file

    rng = np.random.default_rng(seed)
    embedding = rng.normal(size=(rows, d)).astype(np.float32) + rng.normal(size=d).astype(np.float32)
    tensors = {"model.embed_tokens.weight": embedding}
    if head is not None:
        own = rng.normal(size=(rows, d)).astype(np.float32)
        tensors["lm_head.weight"] = own if head == "own" else embedding.copy()
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    save_file({**tensors, **(extra or {})}, folder / "model.safetensors")
    config = {"model_type": "llama", "hidden_size": d, "vocab_size": rows, "tie_word_embeddings": head is None}
    (folder / "config.json").write_text(json.dumps(config))
    return folder, embedding, tensors.get("lm_head.weight")


def epsilon_of(matrix, z=2.0):
    """mean + z std over all ordered pairs, by forming them."""
    x = matrix.astype(np.float64)
    u = x / np.linalg.norm(x, axis=1, keepdims=True)
    cosines = (u @ u.T)[~np.eye(len(u), dtype=bool)]
    return cosines.mean() + z * cosines.std()


def _log(event, what):
    with Path(os.environ["SURVEY_LOG"]).open("a") as file:
        file.write(f"{event} {what}\n")


def logged_measure(payload):
    """`measure_unit`, which says when it starts and ends."""
    from repcap.verbs.survey.study import measure_unit

    _log("start", payload["source"])
    found = measure_unit(payload)
    _log("end", payload["source"])
    return found


def logged_pack(payload):
    """`pack_unit`, which says when it starts and ends."""
    from repcap.verbs.sweep.study import pack_unit

    what = f"{payload['k']}-{payload['d']}-{payload['seed']}"
    _log("start", what)
    found = pack_unit(payload)
    _log("end", what)
    return found
