"""From words to rows."""

from __future__ import annotations

import pytest
import torch

from repcap.errors import InputError
from repcap.geometry.nearest.words import Term, TokenIndex, load_word_pairs, parse_analogy
from repcap.matrix import TensorMatrix


class Texts:
    def __init__(self, texts):
        self._texts = texts
        self.count = len(texts)

    def text(self, index):
        return self._texts[index] if index < len(self._texts) else None


def index_of(*texts, rows=None):
    return TokenIndex(TensorMatrix(torch.ones(rows or len(texts), 2), tokens=Texts(texts)))


def test_the_form_with_a_leading_space_comes_first():
    index = index_of("cat", " cat", " Cat", "dog", None)
    assert index.find("cat") == 1
    assert index.find('"cat"') == 0
    assert index.find("dog") == 3
    assert index.find("#4") == 4
    assert index.has("Cat")
    assert not index.has("bird")


def test_rows_beyond_the_tokenizer_have_no_text():
    index = index_of("a", rows=3)
    assert index.texts == ["a", None, None]
    assert index.find("#2") == 2


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("cats", 'no single token reads "cats"; there are "cat", " Cat"'),
        ('"Dog"', 'no token reads exactly "Dog"; there are "dog"'),
        ("zebra", 'no single token reads "zebra"; it is cut into several tokens'),
        ("#9", r"row 9 is not in 0\.\.2"),
    ],
)
def test_what_is_not_there(word, message):
    with pytest.raises(InputError, match=message):
        index_of("cat", " Cat", "dog").find(word)


def test_forms_of_a_word():
    index = index_of("cat", " Cats", "dog", " CAT", "<s>", "<s>")
    assert index.forms_of([0]) == {0, 1, 3}
    assert index.forms_of([4]) == {4}


def test_no_tokenizer():
    with pytest.raises(InputError, match="has no tokenizer beside it, so words cannot be found"):
        TokenIndex(TensorMatrix(torch.ones(2, 2)))


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("king - man + woman", [(1, "king"), (-1, "man"), (1, "woman")]),
        ("-a+b", [(-1, "a"), (1, "b")]),
        ('" New" + #12 - well-known', [(1, '" New"'), (1, "#12"), (-1, "well-known")]),
    ],
)
def test_analogies(text, terms):
    assert parse_analogy(text) == [Term(*term) for term in terms]


@pytest.mark.parametrize("text", ["", "king", "king man", "king - - man", "+", "king -"])
def test_no_analogy(text):
    with pytest.raises(InputError, match="is no analogy: write it as"):
        parse_analogy(text)


def test_shipped_pairs_are_of_three_kinds():
    pairs = load_word_pairs()
    assert {pair.kind for pair in pairs} == {"lexical", "semantic", "unrelated"}
    assert len(set(pairs)) == len(pairs)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "no such file"),
        ("a,b\n1,2\n", "line 2: word pairs need the columns kind, left, right"),
        ("kind,left,right\nx,y,\n", "line 2: word pairs need"),
        ("kind,left,right\n", "holds no word pairs"),
    ],
)
def test_bad_files(tmp_path, content, message):
    path = tmp_path / "pairs.csv"
    if content is not None:
        path.write_text(content)
    with pytest.raises(InputError, match=message):
        load_word_pairs(path)
