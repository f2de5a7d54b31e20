"""Tying is judged by the values, then by what is missing; the config is contradicted aloud."""

from __future__ import annotations

import pytest
import torch

from repcap.errors import MatrixNotFound
from repcap.sources import open_source
from repcap.sources.roles.tying import config_says

V, D = 300, 8
EMBED, HEAD = "model.embed_tokens.weight", "lm_head.weight"


def info_of(path, matrix="embedding"):
    with open_source(path, matrix) as opened:
        return opened.info


@pytest.mark.parametrize(
    "config", [None, {}, {"tie_word_embeddings": True}, {"text_config": {"tie_word_embeddings": True}}]
)
def test_missing_head_is_tied(config, save, rng) -> None:
    info = info_of(save({EMBED: torch.randn(V, D, generator=rng)}, config=config))
    assert (info.tied, info.evidence, info.warnings) == (True, "no unembedding in the source", ())


@pytest.mark.parametrize("config", [{"tie_word_embeddings": False}, {"text_config": {"tie_word_embeddings": False}}])
def test_missing_head_against_the_config(config, save, rng) -> None:
    info = info_of(save({EMBED: torch.randn(V, D, generator=rng)}, config=config))
    assert info.tied is True
    assert info.warnings == (
        "the config says tie_word_embeddings = false, but there is no unembedding in the source: taken as tied",
    )


def test_equal_copies_are_tied(save, rng) -> None:
    table = torch.randn(V, D, generator=rng)
    info = info_of(save({EMBED: table, HEAD: table.clone()}))
    assert (info.tied, info.evidence) == (True, f"{EMBED} and {HEAD} are equal in every value")


def test_equal_copies_with_nan_rows_are_tied(save, rng) -> None:
    table = torch.randn(V, D, generator=rng)
    table[7] = float("nan")
    assert info_of(save({EMBED: table, HEAD: table.clone()})).tied is True


def test_equal_copies_against_the_config(save, rng) -> None:
    table = torch.randn(V, D, generator=rng)
    info = info_of(save({EMBED: table, HEAD: table.clone()}, config={"tie_word_embeddings": False}))
    assert info.tied is True
    assert info.warnings == (
        f"the config says tie_word_embeddings = false, but {EMBED} and {HEAD} are equal in every value: tied",
    )


def test_different_values_against_the_config(save, rng) -> None:
    made = {EMBED: torch.randn(V, D, generator=rng), HEAD: torch.randn(V, D, generator=rng)}
    info = info_of(save(made, config={"tie_word_embeddings": True}))
    assert info.tied is False
    assert info.warnings == (
        f"the config says tie_word_embeddings = true, but {EMBED} and {HEAD} differ in values: not tied",
    )


@pytest.mark.parametrize("row", [0, 1, 40, 155, V - 1])
def test_one_different_row_anywhere_is_seen(row, save, rng) -> None:
    table = torch.randn(V, D, generator=rng)
    other = table.clone()
    other[row, D - 1] += 1e-3
    assert info_of(save({EMBED: table, HEAD: other})).tied is False


def test_different_shapes(save, rng) -> None:
    made = {EMBED: torch.randn(V, D, generator=rng), HEAD: torch.randn(V + 3, D, generator=rng)}
    info = info_of(save(made))
    assert (info.tied, info.evidence) == (False, f"{EMBED} and {HEAD} differ in shape (300 x 8 and 303 x 8)")


def test_copies_in_two_precisions_compare_by_value(save, rng) -> None:
    table = torch.randn(V, D, generator=rng).bfloat16()
    assert info_of(save({EMBED: table, HEAD: table.float()})).tied is True


def test_unembedding_of_a_tied_model_is_the_embedding(save, rng) -> None:
    table = torch.randn(V, D, generator=rng)
    with open_source(save({EMBED: table}), "unembedding") as matrix:
        assert (matrix.info.name, matrix.info.role, matrix.info.tied) == (EMBED, "unembedding", True)
        assert matrix.info.evidence == "tied (no unembedding in the source): the embedding is measured"
        assert torch.equal(matrix.read(0, V), table)


def test_a_packed_head_is_not_a_missing_one(save, rng) -> None:
    made = {EMBED: torch.randn(V, D, generator=rng), "lm_head.qweight": torch.zeros(1, V, dtype=torch.int32)}
    info = info_of(save(made))
    assert info.tied is None
    assert "lm_head.qweight cannot be compared with model.embed_tokens.weight" in info.evidence
    assert "packed (GPTQ or AWQ, int32 1 x 300)" in info.evidence


def test_one_shard_alone_proves_nothing(save, rng) -> None:
    path = save({EMBED: torch.randn(V, D, generator=rng)}, name="model-00001-of-00002.safetensors")
    info = info_of(path)
    assert (info.tied, info.evidence) == (None, "1 of 2 shards are missing; the config does not say")
    with pytest.raises(MatrixNotFound, match="1 of 2 shards are missing"):
        open_source(path, "unembedding")


def test_one_shard_of_one_is_whole(save, rng) -> None:
    path = save({EMBED: torch.randn(V, D, generator=rng)}, name="model-00001-of-00001.safetensors")
    assert info_of(path).tied is True


def test_a_family_without_an_unembedding(save, rng) -> None:
    path = save({"text_model.embeddings.token_embedding.weight": torch.randn(V, D, generator=rng)})
    info = info_of(path)
    assert (info.tied, info.evidence) == (None, "the clip family has no unembedding")


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({}, None),
        ({"tie_word_embeddings": "yes"}, None),
        ({"tie_word_embeddings": True}, True),
        ({"text_config": {"tie_word_embeddings": False}}, False),
        ({"thinker_config": {"text_config": {"tie_word_embeddings": True}}}, True),
        ({"tie_word_embeddings": False, "text_config": {"tie_word_embeddings": True}}, False),
        ({"text_config": None, "llm_config": {"tie_word_embeddings": True}}, True),
    ],
)
def test_config_says(config, expected) -> None:
    assert config_says(config) is expected


@pytest.mark.parametrize("change", [0.0, 1.0])
def test_an_unembedding_in_columns_is_compared_by_rows(change, save, rng) -> None:
    table = torch.randn(V, D, generator=rng)
    info = info_of(save({"embed.W_E": table, "unembed.W_U": table.T + change}))
    assert info.tied is (change == 0)


@pytest.mark.parametrize("head", ["model.lm_head.weight", "wrapped.head.weight", "model.output.weight"])
def test_a_head_of_an_unlisted_name_is_not_missing(head, save, rng) -> None:
    made = {"model.transformer.wte.weight": torch.randn(V, D, generator=rng), head: torch.randn(V, D, generator=rng)}
    info = info_of(save(made))
    assert (info.tied, info.evidence) == (False, f"model.transformer.wte.weight and {head} differ in values")


def test_a_head_of_another_shape_under_an_unlisted_name_is_none(save, rng) -> None:
    made = {EMBED: torch.randn(V, D, generator=rng), "classifier.head.weight": torch.randn(3, D, generator=rng)}
    assert info_of(save(made)).tied is True
