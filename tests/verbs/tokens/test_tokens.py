"""Never-trained tokens: planted ones are found, trained ones are not, and the real model's are those of its makers."""

from __future__ import annotations

import json

import pytest
import torch
from safetensors.torch import save_file

from demo import SMOLLM2, needs_demo
from repcap import tokens
from repcap.errors import VectorsError

EMBED, HEAD = "model.embed_tokens.weight", "lm_head.weight"
N, D = 3000, 48


def trained(seed: int) -> torch.Tensor:
    """Rows of different lengths around a common mean, as trained embeddings are."""
    rng = torch.Generator().manual_seed(seed)
    lengths = torch.exp(0.2 * torch.randn(N, 1, generator=rng))
    return torch.randn(N, D, generator=rng) * lengths + torch.randn(D, generator=rng)


def planted(rows: torch.Tensor, ids: list[int], seed: int) -> torch.Tensor:
    """`rows` with those of `ids` pushed further along the mean than others, and a little noise."""
    rng = torch.Generator().manual_seed(seed)
    place = 1.7 * rows.mean(dim=0) + 0.3 * torch.randn(D, generator=rng)
    out = rows.clone()
    out[ids] = place + 0.05 * torch.randn(len(ids), D, generator=rng)
    return out


def initial(rows: torch.Tensor, ids: list[int], seed: int) -> torch.Tensor:
    """`rows` with those of `ids` as they were drawn at the start, small, and never touched."""
    out = rows.clone()
    out[ids] = 0.02 * torch.randn(len(ids), D, generator=torch.Generator().manual_seed(seed))
    return out


@pytest.fixture
def model(tmp_path):
    def write(tensors, vocabulary: int | None = None):
        save_file(tensors, tmp_path / "model.safetensors")
        if vocabulary is not None:
            (tmp_path / "vocab.json").write_text(json.dumps({f"t{place}": place for place in range(vocabulary)}))
        return tmp_path

    return write


IDS = [3, 17, 500, 501, 502, 1999, 2500, 2990, *range(2992, 3000)]


@pytest.mark.parametrize("plant", [planted, initial])
def test_planted_tokens_of_a_tied_model(plant, model) -> None:
    found = tokens(model({EMBED: plant(trained(1), IDS, 2)}, vocabulary=2992))
    (part,) = found.matrices
    named = {item.row for item in part.candidates}
    assert set(IDS) <= named
    assert len(named) <= len(IDS) + 1  # one in a hundred may be false
    assert {item.row for item in part.candidates if item.padding} == set(range(2992, 3000))
    assert next(item.text for item in part.candidates if item.row == 17) == "t17"
    assert part.tied is True
    assert all(item.distance <= part.threshold for item in part.candidates)


def test_planted_tokens_of_an_untied_model(model) -> None:
    """The embedding was never read at IDS; the unembedding was pushed away at those and two more."""
    made = {EMBED: initial(trained(1), IDS, 2), HEAD: planted(trained(3), [*IDS, 70, 71], 4)}
    found = tokens(model(made))
    assert [part.role for part in found.matrices] == ["embedding", "unembedding"]
    assert set(IDS) <= set(found.both)
    assert {70, 71} <= {item.row for item in found.matrices[1].candidates} - set(found.both)
    assert "are in both" in found.reading


@pytest.mark.parametrize("seed", range(5))
def test_nothing_is_found_where_nothing_is(seed, model) -> None:
    (part,) = tokens(model({EMBED: trained(seed)})).matrices
    assert len(part.candidates) <= 2


def test_rows_that_are_no_numbers_are_left_out(model) -> None:
    rows = planted(trained(1), IDS, 2)
    rows[100] = float("nan")
    (part,) = tokens(model({EMBED: rows})).matrices
    assert 100 not in {item.row for item in part.candidates}
    assert set(IDS) <= {item.row for item in part.candidates}


def test_rows_that_are_equal(model) -> None:
    """A distance of exactly 0, and a share that the rate decides."""
    rows = trained(1)
    rows[IDS] = 1.7 * rows.mean(dim=0)
    (part,) = tokens(model({EMBED: rows})).matrices
    assert {item.row for item in part.candidates} == set(IDS)
    assert part.candidates[0].distance == 0.0


def test_refusals_and_json(model, repcap) -> None:
    path = model({EMBED: planted(trained(1), IDS, 2)})
    record = repcap("tokens", str(path), "--json").json
    assert (record["kind"], record["fdr"], record["matrices"][0]["role"]) == ("tokens", 0.01, "embedding")
    assert set(IDS) <= set(record["both"])
    assert repcap("tokens", str(path), "--fdr", "2").code == 2
    with pytest.raises(VectorsError, match="has 20 rows of finite numbers: 100 make a bulk"):
        tokens(model({EMBED: torch.randn(20, 4)}))


@needs_demo
def test_smollm2() -> None:
    """Its makers' markers of code and notebooks, which a model of prose never saw."""
    (part,) = tokens(SMOLLM2).matrices
    texts = {item.text for item in part.candidates}
    assert {"<file_sep>", "<gh_stars>", "<jupyter_start>", "<jupyter_code>", "<empty_output>", "\x00"} <= texts
    assert 20 < len(texts) < 150
    assert not {" the", " and", "The", " John", " yoga"} & texts
