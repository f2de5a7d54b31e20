"""Bars run once from 0 to 100 %: what a verb tells of how far it is never goes back, and ends at the whole."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch

import repcap
from repcap.console import common
from repcap.matrix import stages

ROWS = np.random.default_rng(0).standard_normal((400, 8)).astype(np.float32)


def latents(on_progress):
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2, "num_attention_heads": 2}
    model = transformers.LlamaModel(transformers.LlamaConfig(vocab_size=40, max_position_embeddings=64, **sizes)).eval()
    ids = np.random.default_rng(0).integers(0, 40, 200)
    return repcap.latents(model, ids=ids, window=32, on_progress=on_progress)


CALLS = {
    "interference, all methods": lambda told: repcap.interference(40, 8, (1, 2), trials=5, steps=20, on_progress=told),
    "interference, no optimiser": lambda told: repcap.interference(
        40, 8, (1, 2), methods=["random"], trials=5, on_progress=told
    ),
    "interference, rows given": lambda told: repcap.interference(vectors=ROWS, active=(1,), trials=5, on_progress=told),
    "neighbours": lambda told: repcap.neighbours(ROWS, on_progress=told),
    "neighbours of one token": lambda told: repcap.neighbours(ROWS, tokens=["#1"], on_progress=told),
    "compare": lambda told: repcap.compare(ROWS, ROWS[::-1].copy(), on_progress=told),
    "dictionary": lambda told: repcap.dictionary(ROWS, on_progress=told),
    "dictionary against": lambda told: repcap.dictionary(ROWS[:50], ROWS, on_progress=told),
    "measure": lambda told: repcap.measure(ROWS, block_rows=50, centre=True, on_progress=told),
    "measure, class high": lambda told: repcap.measure(ROWS + 3.0, on_progress=told),
    "latents": latents,
}


@pytest.mark.parametrize("name", CALLS)
def test_it_runs_once_from_0_to_100_percent(name):
    seen = []
    CALLS[name](lambda done, total: seen.append((done, total)))
    shares = [done / total for done, total in seen]
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    assert (name.startswith("interference, ") and "all" not in name) or shares[0] < 1.0  # not 0 up to the end


def test_stages_left_out_and_stages_of_nothing():
    seen = []
    first, second, third = stages(lambda *at: seen.append(at), 2, 0, 2)
    first(1, 2)
    third(0, 0)  # the first never said that it was done
    second(1, 1)
    third(3, 3)
    assert seen == [(25, 100), (50, 100), (50, 100), (100, 100)]
    stages(None, 1)[0](1, 1)


@pytest.mark.parametrize(
    ("speed", "unit", "shown"),
    [
        (0.25, "cells", "4.0 s each"),
        (0.04, "blocks", "25.0 s each"),
        (3.0, "cells", "3 cells/s"),
        (4.2e6, "rows", "4.2 Mrows/s"),
        (7.0, "%", ""),
        (None, "rows", ""),
    ],
)
def test_rates_below_one_are_seconds_each(speed, unit, shown):
    task = SimpleNamespace(finished_speed=None, speed=speed, fields={"unit": unit})
    assert common._Rate().render(task).plain == shown
