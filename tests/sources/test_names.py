"""The table of names, against expectations written down from the families' own checkpoints."""

from __future__ import annotations

import pytest
import torch

from repcap.errors import MatrixNotFound
from repcap.sources import names, open_source
from repcap.sources.checkpoint import TensorEntry
from repcap.sources.roles.roles import find_roles

V, D = 24, 6

# family, embedding, unembedding (None: the family ties), and what else such a checkpoint holds
FAMILIES = [
    ("llama", "model.embed_tokens.weight", "lm_head.weight", ["model.layers.0.mlp.up_proj.weight"]),
    ("gemma 3n", "model.language_model.embed_tokens.weight", None,
     ["model.language_model.embed_tokens_per_layer.weight"]),
    ("llava", "language_model.model.embed_tokens.weight", "language_model.lm_head.weight", []),
    ("qwen2.5-vl", "model.language_model.embed_tokens.weight", "lm_head.weight", ["visual.patch_embed.proj.weight"]),
    ("old qwen-vl", "language_model.embed_tokens.weight", "lm_head.weight", []),
    ("idefics", "model.text_model.embed_tokens.weight", "lm_head.weight", []),
    ("gpt2 hub", "wte.weight", None, ["wpe.weight"]),
    ("gptj", "transformer.wte.weight", "lm_head.weight", ["transformer.wpe.weight"]),
    ("phi-2 old", "transformer.embd.wte.weight", "lm_head.linear.weight", []),
    ("phi-1 old", "layers.0.wte.weight", "layers.25.linear.weight", []),
    ("pythia", "gpt_neox.embed_in.weight", "embed_out.weight", []),
    ("opt", "model.decoder.embed_tokens.weight", None, ["model.decoder.embed_positions.weight"]),
    ("opt hub", "decoder.embed_tokens.weight", None, ["decoder.embed_positions.weight"]),
    ("bloom", "word_embeddings.weight", None, ["word_embeddings_layernorm.weight"]),
    ("falcon", "transformer.word_embeddings.weight", "lm_head.weight", []),
    ("t5", "shared.weight", "lm_head.weight", ["encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight"]),
    ("t5 copies", "shared.weight", None, ["encoder.embed_tokens.weight", "decoder.embed_tokens.weight"]),
    ("bart", "model.shared.weight", None, ["model.encoder.embed_positions.weight"]),
    ("bert", "bert.embeddings.word_embeddings.weight", "cls.predictions.decoder.weight",
     ["bert.embeddings.position_embeddings.weight", "bert.embeddings.token_type_embeddings.weight"]),
    ("bert bare", "embeddings.word_embeddings.weight", None, ["embeddings.position_embeddings.weight"]),
    ("roberta", "roberta.embeddings.word_embeddings.weight", "lm_head.decoder.weight", []),
    ("distilbert", "distilbert.embeddings.word_embeddings.weight", "vocab_projector.weight", []),
    ("modernbert", "model.embeddings.tok_embeddings.weight", "decoder.weight", ["head.dense.weight"]),
    ("mamba", "backbone.embeddings.weight", "lm_head.weight", []),
    ("mamba original", "backbone.embedding.weight", None, []),
    ("rwkv hub", "rwkv.embeddings.weight", "head.weight", []),
    ("rwkv original", "emb.weight", "head.weight", []),
    ("rwkv 7", "model.embeddings.weight", "lm_head.weight", []),
    ("chatglm", "transformer.embedding.word_embeddings.weight", "transformer.output_layer.weight", []),
    ("internlm2", "model.tok_embeddings.weight", "output.weight", []),
    ("openelm", "transformer.token_embeddings.weight", None, []),
    ("persimmon", "language_model.embedding.word_embeddings.weight", "word_embeddings_for_head.weight", []),
    ("bailing", "model.word_embeddings.weight", "lm_head.weight", []),
    ("llada", "model.transformer.wte.weight", "model.transformer.ff_out.weight",
     ["model.transformer.blocks.0.ff_out.weight"]),
    ("meta", "tok_embeddings.weight", "output.weight", ["layers.0.attention.wq.weight"]),
    ("gguf", "token_embd.weight", "output.weight", ["token_embd_norm.weight", "per_layer_token_embd.weight"]),
    ("decoder alone", "embed_tokens.weight", None, ["layers.0.mlp.up_proj.weight"]),
    ("unknown wrapper", "policy.model.embed_tokens.weight", "policy.lm_head.weight", ["value_head.weight"]),
]  # fmt: skip


@pytest.mark.parametrize(("family", "embedding", "unembedding", "others"), FAMILIES, ids=[row[0] for row in FAMILIES])
def test_family(family, embedding, unembedding, others, save, rng) -> None:
    made = {name: torch.randn(V, D, generator=rng) for name in (embedding, unembedding, *others) if name}
    path = save(made)
    with open_source(path) as matrix:
        assert (matrix.info.name, matrix.info.role, matrix.info.tied) == (embedding, "embedding", unembedding is None)
        assert torch.equal(matrix.read(0, V), made[embedding])
    with open_source(path, "unembedding") as matrix:
        assert (matrix.info.name, matrix.info.role) == (unembedding or embedding, "unembedding")
        assert torch.equal(matrix.read(0, V), made[unembedding or embedding])


@pytest.mark.parametrize(
    "prefix", ["module.", "_orig_mod.", "base_model.model.", "_fsdp_wrapped_module.", "module._orig_mod."]
)
def test_wrapper_prefixes_are_stripped(prefix, save, rng) -> None:
    made = {
        f"{prefix}model.embed_tokens.weight": torch.randn(V, D, generator=rng),
        f"{prefix}lm_head.weight": torch.randn(V, D, generator=rng),
    }
    path = save(made)
    with open_source(path) as matrix:
        assert matrix.info.name == f"{prefix}model.embed_tokens.weight"
        assert matrix.info.tied is False
    with open_source(path, "lm_head") as matrix:
        assert matrix.info.name == f"{prefix}lm_head.weight"


@pytest.mark.parametrize(
    ("stored", "expected"),
    [
        ("model._fsdp_wrapped_module.embed_tokens.weight", "model.embed_tokens"),
        ("base_model.model.model.embed_tokens.base_layer.weight", "model.embed_tokens"),
        ("base_model.model.model.embed_tokens.modules_to_save.default.weight", "model.embed_tokens"),
        ("_orig_mod.module.model.embed_tokens.weight", "model.embed_tokens"),
        ("model.layers.3._checkpoint_wrapped_module.mlp.weight", "model.layers.3.mlp"),
        ("W_dec", "W_dec"),
        ("embed.W_E", "embed.W_E"),
    ],
)
def test_plain(stored, expected) -> None:
    assert names.plain(stored) == expected


def test_peft_keeps_the_trained_copy_and_leaves_the_frozen_one(save, rng) -> None:
    stem = "base_model.model.model.embed_tokens"
    made = {
        f"{stem}.original_module.weight": torch.randn(V, D, generator=rng),
        f"{stem}.modules_to_save.default.weight": torch.randn(V, D, generator=rng),
    }
    with open_source(save(made)) as matrix:
        assert matrix.info.name == f"{stem}.modules_to_save.default.weight"


def test_an_unmerged_adapter_is_named(save, rng) -> None:
    stem = "base_model.model.model.embed_tokens"
    made = {
        f"{stem}.base_layer.weight": torch.randn(V, D, generator=rng),
        f"{stem}.lora_embedding_A.default": torch.randn(2, V, generator=rng),
        f"{stem}.lora_embedding_B.default": torch.randn(D, 2, generator=rng),
    }
    with open_source(save(made)) as matrix:
        assert matrix.info.name == f"{stem}.base_layer.weight"
        assert matrix.info.warnings == (f"a LoRA adapter on {stem} is not merged: the base weight is measured",)


@pytest.mark.parametrize(
    "name",
    [
        "transformer.wpe.weight", "bert.embeddings.position_embeddings.weight", "embeddings.token_type_embeddings",
        "token_embd_norm.weight", "model.language_model.embed_tokens_per_layer.weight", "per_layer_token_embd.weight",
        "vision_tower.patch_embed.proj.weight", "model.decoder.embed_positions.weight",
    ],
)  # fmt: skip
def test_what_is_no_token_embedding(name) -> None:
    entry = TensorEntry(name, (4096, 8), "float32", "")
    assert find_roles({name: entry}).embedding is None


def test_unknown_names_list_what_could_be_meant(save, rng) -> None:
    path = save(
        {
            "strange.vocab.weight": torch.randn(90, D, generator=rng),
            "strange.table": torch.randn(60, D, generator=rng),
            "strange.position.weight": torch.randn(200, D, generator=rng),
            "strange.square": torch.randn(D, D, generator=rng),
        }
    )
    with pytest.raises(MatrixNotFound) as caught:
        open_source(path)
    assert str(caught.value) == (
        f"{path} has no embedding under a known name; 2-d tensors of a vocabulary-like shape: "
        "strange.vocab.weight (90 x 6), strange.table (60 x 6); pick one with --matrix NAME"
    )


def test_unknown_names_without_a_likely_shape_list_the_largest(save, rng) -> None:
    path = save({"a": torch.randn(4, 4, generator=rng), "b": torch.randn(5, 6, generator=rng)})
    with pytest.raises(MatrixNotFound, match=r"its largest 2-d tensors: b \(5 x 6\), a \(4 x 4\); pick one"):
        open_source(path)


def test_vocab_size_in_the_config_makes_a_shape_likely(save, rng) -> None:
    made = {"a": torch.randn(7, 6, generator=rng), "b": torch.randn(60, 6, generator=rng)}
    path = save(made, config={"text_config": {"vocab_size": 7}})
    with pytest.raises(MatrixNotFound, match=r"vocabulary-like shape: a \(7 x 6\), b \(60 x 6\)"):
        open_source(path)


def test_a_misspelt_tensor_gets_its_neighbour(save, rng) -> None:
    path = save({"model.embed_tokens.weight": torch.randn(V, D, generator=rng), "x": torch.randn(3, generator=rng)})
    with pytest.raises(MatrixNotFound) as caught:
        open_source(path, "model.embed_token.weight")
    assert str(caught.value) == (
        f"{path} holds no tensor 'model.embed_token.weight'; near to it: model.embed_tokens.weight; "
        f"see repcap inspect {path}"
    )


def test_no_matrix_at_all(save) -> None:
    path = save({"a": torch.zeros(3), "b": torch.zeros(4)})
    with pytest.raises(MatrixNotFound, match="holds no 2-d tensor, so nothing to measure"):
        open_source(path)


def test_transformer_lens_keeps_the_unembedding_in_columns(save, rng) -> None:
    embed, unembed = torch.randn(V, D, generator=rng), torch.randn(D, V, generator=rng)
    path = save({"embed.W_E": embed, "unembed.W_U": unembed, "pos_embed.W_pos": torch.randn(50, D, generator=rng)})
    with open_source(path, "unembedding") as matrix:
        assert (matrix.count, matrix.dim) == (V, D)
        assert torch.equal(matrix.read(0, V), unembed.T)


def test_every_name_of_the_table_is_found() -> None:
    for family in names.FAMILIES:
        for embedding in family.embedding:
            name = embedding.replace("*.", "any.").replace("#", "7") + ".weight"
            roles = find_roles({name: TensorEntry(name, (V, D), "float32", "")})
            assert roles.embedding == name, (family.name, name)
