"""Every look at a model of the Hub records the commit that it saw."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

from hubserver import HubServer

SIZES: dict[str, Any] = {
    "vocab_size": 40,
    "hidden_size": 16,
    "intermediate_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
}


@pytest.fixture
def commit(hub: HubServer, tmp_path: Path) -> str:
    torch.manual_seed(0)
    transformers.LlamaForCausalLM(transformers.LlamaConfig(**SIZES)).save_pretrained(tmp_path / "model")
    return hub.add("org/model", {path.name: path.read_bytes() for path in (tmp_path / "model").iterdir()})


@pytest.mark.parametrize("verb", ["measure", "pairs", "neighbours", "probes", "track", "compare"])
def test_the_record_names_the_commit(verb: str, commit: str, repcap: Any) -> None:
    done = repcap(verb, "org/model", *(["org/model"] if verb in ("compare", "track") else []), "--json")
    assert done.code == 0, done.err
    record = {"track": lambda found: found["points"][0], "compare": lambda found: found["a"]}.get(verb, dict)(done.json)
    assert record["revision"] == commit


def test_latents_of_a_model_from_the_hub() -> None:
    from repcap import latents

    model = transformers.LlamaModel(transformers.LlamaConfig(**SIZES))
    model.config._commit_hash = "c" * 40
    assert latents(model, ids=list(range(30))).to_dict()["revision"] == "c" * 40
