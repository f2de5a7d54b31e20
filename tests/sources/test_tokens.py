"""Token texts as a reader would write them, against the tokenizers package's own decoding."""

from __future__ import annotations

import json

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers

from repcap.sources import open_source
from repcap.sources.tokens import BYTE_OF, VocabTokens, decode_piece, find_tokens, load_tokenizer_json

CORPUS = ["the cat sat on the mat", "naïve café — 東京 tower", "x = [1, 2]\n\ty", "the cats and the hats"] * 3


def byte_level() -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=330, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), special_tokens=["<|end|>"]
    )
    tokenizer.train_from_iterator(CORPUS, trainer)
    tokenizer.add_tokens([AddedToken("a  b"), AddedToken("<东>")])
    return tokenizer


def metaspace() -> Tokenizer:
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    tokenizer.train_from_iterator(CORPUS, trainers.UnigramTrainer(vocab_size=60, special_tokens=["<s>", "<0x0A>"]))
    return tokenizer


def test_byte_level_texts_are_what_the_tokenizer_decodes(tmp_path) -> None:
    tokenizer = byte_level()
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    tokens = load_tokenizer_json(tmp_path / "tokenizer.json")
    assert tokens.count == tokenizer.get_vocab_size()
    compared = 0
    for index in range(tokens.count):
        theirs = tokenizer.decode([index], skip_special_tokens=False)
        if "\N{REPLACEMENT CHARACTER}" in theirs:  # part of a character: we show the bytes
            assert "\\x" in tokens.text(index)
        else:
            assert tokens.text(index) == theirs
            compared += 1
    assert compared > 150
    assert tokens.text(tokenizer.token_to_id("Ġcat")) == " cat"
    assert tokens.text(tokens.count) is None
    assert tokens.text(-1) is None


def test_sentencepiece_texts(tmp_path) -> None:
    tokenizer = metaspace()
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    tokens = load_tokenizer_json(tmp_path / "tokenizer.json")
    for index in range(tokens.count):
        assert tokens.text(index) == tokenizer.decode([index], skip_special_tokens=False)
    assert tokens.text(tokenizer.token_to_id("<0x0A>")) == "\n"
    assert any(tokens.text(index).startswith(" ") for index in range(tokens.count))


def test_padding_is_counted_from_the_largest_id(tmp_path) -> None:
    tokenizer = Tokenizer(models.WordLevel({"a": 0, "c": 9}, unk_token="a"))
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    tokens = load_tokenizer_json(tmp_path / "tokenizer.json")
    assert (tokens.count, tokens.text(9), tokens.text(4)) == (10, "c", None)


@given(st.text(max_size=20))
def test_byte_alphabet_is_its_own_inverse(text) -> None:
    char_of = {byte: char for char, byte in BYTE_OF.items()}
    assert len(char_of) == 256
    piece = "".join(char_of[byte] for byte in text.encode("utf-8", errors="surrogatepass"))
    assert decode_piece(piece, "bytelevel") == text.encode("utf-8", errors="surrogatepass").decode(
        "utf-8", "backslashreplace"
    )


def test_byte_alphabet_is_that_of_the_package() -> None:
    assert set(BYTE_OF) == set(pre_tokenizers.ByteLevel.alphabet())


def test_vocab_json_and_txt(tmp_path) -> None:
    (tmp_path / "vocab.txt").write_text("[PAD]\nthe\n##ing\n")
    tokens, warnings = find_tokens(tmp_path)
    assert (tokens.count, tokens.text(2), warnings) == (3, "##ing", ())
    (tmp_path / "vocab.json").write_text(json.dumps({"Ġcat": 1, "a": 0}))
    tokens, warnings = find_tokens(tmp_path)
    assert (tokens.count, tokens.text(1), tokens.origin) == (2, " cat", "vocab.json")


def test_a_broken_tokenizer_is_a_warning_not_an_error(save, rng) -> None:
    path = save({"model.embed_tokens.weight": torch.randn(5, 3, generator=rng)})
    (path.parent / "tokenizer.json").write_text("{")
    with open_source(path) as matrix:
        assert matrix.tokens is None
        assert matrix.count == 5
        assert matrix.info.warnings[0].startswith(
            f"no token texts: {path.parent / 'tokenizer.json'} is no readable tokenizer"
        )


@pytest.mark.parametrize("body", ["[]", '{"a": -1}', '{"a": "b"}', '{"a": 1e9}', '{"a": 99999999999}', "["])
def test_a_hostile_vocab_json_is_a_warning(body, tmp_path) -> None:
    (tmp_path / "vocab.json").write_text(body)
    tokens, warnings = find_tokens(tmp_path)
    assert tokens is None
    assert "is no readable vocabulary" in warnings[0]


def test_tokens_beside_a_single_file(save, rng) -> None:
    path = save({"model.embed_tokens.weight": torch.randn(400, 3, generator=rng)})
    byte_level().save(str(path.parent / "tokenizer.json"))
    with open_source(path) as matrix:
        assert matrix.tokens is not None
        assert 0 < matrix.tokens.count < 400
        assert matrix.tokens.text(0) == "<|end|>"


def test_only_token_matrices_have_tokens(save, rng) -> None:
    path = save(
        {"model.embed_tokens.weight": torch.randn(9, 3, generator=rng), "up.weight": torch.randn(9, 3, generator=rng)}
    )
    byte_level().save(str(path.parent / "tokenizer.json"))
    assert open_source(path, "up.weight").tokens is None


def test_guessed_coding() -> None:
    from repcap.sources.tokens import guess_coding

    assert guess_coding(["Ġa", "b"]) == "bytelevel"
    assert guess_coding(["▁a", "b"]) == "metaspace"
    assert guess_coding(["a", "##b"]) == "plain"
    assert VocabTokens(["a", None], "plain", "x").text(1) is None
