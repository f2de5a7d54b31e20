"""Meta's tensor-parallel parts, joined as params.json says, or refused."""

from __future__ import annotations

import json

import pytest
import torch
from safetensors.torch import save_file

from repcap.errors import SourceError
from repcap.sources import open_source

V, D = 24, 8


@pytest.fixture
def table(rng) -> torch.Tensor:
    return torch.randn(V, D, generator=rng)


@pytest.fixture
def head(rng) -> torch.Tensor:
    return torch.randn(V, D, generator=rng)


def write(
    folder, embedding_axis: int | None, table, head, parts: int = 2, params: dict | None = None, norm: bool = False
):
    """consolidated.NN.pth, split as Llama 1/2 (axis 1) or Llama 3 (axis 0) do; None repeats the whole."""
    for part in range(parts):
        own = table.clone() if embedding_axis is None else table.chunk(parts, dim=embedding_axis)[part].clone()
        made = {
            "tok_embeddings.weight": own,
            "output.weight": head.chunk(parts, dim=0)[part].clone(),
            "layers.0.attention.wq.weight": torch.zeros(D // parts, D),
        }
        if norm:
            made["norm.weight"] = torch.ones(D)
        torch.save(made, folder / f"consolidated.{part:02d}.pth")
    if params is not None:
        (folder / "params.json").write_text(json.dumps(params))
    return folder


@pytest.mark.parametrize("parts", [2, 4])
@pytest.mark.parametrize("vocab", [V, -1])
@pytest.mark.parametrize("axis", [0, 1])
def test_parts_are_joined(axis, vocab, parts, table, head, tmp_path) -> None:
    write(tmp_path, axis, table, head, parts, {"dim": D, "vocab_size": vocab})
    with open_source(tmp_path) as matrix:
        assert (matrix.count, matrix.dim, matrix.info.tied) == (V, D, False)
        assert torch.equal(torch.cat([block for _, block in matrix.blocks(5)]), table)
        assert torch.equal(matrix.take([23, 0, 11]), table[[23, 0, 11]])
    with open_source(tmp_path, "unembedding") as matrix:
        assert torch.equal(matrix.read(0, V), head)


@pytest.mark.parametrize("vocab", [V, -1])
def test_repeated_embedding_is_not_doubled(vocab, table, head, tmp_path) -> None:
    write(tmp_path, None, table, head, 2, {"dim": D, "vocab_size": vocab})
    with open_source(tmp_path) as matrix:
        assert (matrix.count, matrix.dim) == (V, D)


def test_width_from_the_norm(table, head, tmp_path) -> None:
    write(tmp_path, 1, table, head, 2, None, norm=True)
    with open_source(tmp_path) as matrix:
        assert torch.equal(matrix.read(0, V), table)


def test_ambiguous_without_params(table, head, tmp_path) -> None:
    write(tmp_path, 1, table, head)
    with pytest.raises(SourceError) as caught:
        open_source(tmp_path)
    assert str(caught.value) == (
        f"{tmp_path}: tok_embeddings.weight is split over 2 files, and without `dim` in params.json it is ambiguous "
        "whether by rows or by columns: put params.json beside the files"
    )


def test_params_that_do_not_fit(table, head, tmp_path) -> None:
    write(tmp_path, 1, table, head, 2, {"dim": 99})
    with pytest.raises(SourceError, match=r"the parts of tok_embeddings.weight \(24 x 4, 24 x 4\) do not fit dim = 99"):
        open_source(tmp_path)


def test_missing_part(table, head, tmp_path) -> None:
    write(tmp_path, 1, table, head, 4, {"dim": D})
    (tmp_path / "consolidated.01.pth").unlink()
    with pytest.raises(SourceError, match=r"lacks consolidated\.01\.pth: fetch all parts"):
        open_source(tmp_path)


def test_other_layers_are_not_guessed(table, head, tmp_path) -> None:
    write(tmp_path, 1, table, head, 2, {"dim": D})
    with pytest.raises(SourceError, match="only the embedding and the output are joined"):
        open_source(tmp_path, "layers.0.attention.wq.weight")
    with open_source(f"{tmp_path / 'consolidated.00.pth'}::layers.0.attention.wq.weight") as matrix:
        assert matrix.count == D // 2


def test_one_part(table, head, tmp_path) -> None:
    write(tmp_path, 0, table, head, 1, {"dim": D})
    with open_source(tmp_path) as matrix:
        assert torch.equal(matrix.read(0, V), table)


def test_mistral_safetensors(table, head, tmp_path) -> None:
    save_file({"tok_embeddings.weight": table, "output.weight": head}, tmp_path / "consolidated.safetensors")
    (tmp_path / "params.json").write_text(json.dumps({"dim": D, "vocab_size": V}))
    with open_source(tmp_path, "unembedding") as matrix:
        assert torch.equal(matrix.read(0, V), head)
        assert matrix.info.tied is False


def test_one_part_alone_says_that_it_is_a_part(table, head, tmp_path) -> None:
    write(tmp_path, 1, table, head, 2, {"dim": D})
    with open_source(tmp_path / "consolidated.00.pth") as matrix:
        assert matrix.info.warnings[0] == (
            "consolidated.00.pth is one of 2 tensor-parallel parts: give the directory to join them"
        )
