"""Sparse autoencoders: the decoder's directions are rows, however the file keeps them."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from repcap.sources import inspect_source, open_source
from repcap.sources.formats.stored_rows import TransposedMatrix

K, D = 40, 7


@pytest.fixture
def directions(rng) -> torch.Tensor:
    return torch.randn(K, D, generator=rng)


def check(source, directions: torch.Tensor) -> None:
    for role in ("embedding", "decoder"):  # the default asks for an embedding, which an SAE does not have
        with open_source(source, role) as matrix:
            assert (matrix.info.role, matrix.count, matrix.dim, matrix.info.tied) == ("decoder", K, D, None)
            assert torch.equal(torch.cat([block for _, block in matrix.blocks(9)]), directions)
            assert torch.equal(matrix.take([39, 0, 17, 17]), directions[[39, 0, 17, 17]])


def test_saelens(save, directions) -> None:
    path = save(
        {"W_dec": directions, "W_enc": torch.zeros(D, K), "b_enc": torch.zeros(K), "b_dec": torch.zeros(D)},
        name="sae/sae_weights.safetensors",
    )
    (path.parent / "cfg.json").write_text(json.dumps({"d_in": D, "d_sae": K}))
    check(path, directions)
    check(path.parent, directions)
    found = inspect_source(path.parent)
    assert (found.candidates[0].role, found.config) == ("decoder", {"d_in": D, "d_sae": K})


def test_wide_layers_keep_their_convention(save, rng) -> None:
    """Fewer features than dimensions: only the bias or the convention can tell."""
    narrow = torch.randn(3, 9, generator=rng)
    with open_source(save({"W_dec": narrow})) as matrix:
        assert (matrix.count, matrix.dim) == (3, 9)
        assert matrix.info.evidence == "W_dec keeps one feature a row, as is usual for its name"


def test_linear_decoder_is_turned(save, directions) -> None:
    path = save({"decoder.weight": directions.T, "encoder.weight": torch.zeros(K, D), "encoder.bias": torch.zeros(K)})
    check(path, directions)
    assert open_source(path).info.evidence == (
        "encoder.bias has 40 entries, one for each feature, so decoder.weight keeps one feature a column"
    )
    candidate = inspect_source(path).candidates[0]
    assert (candidate.rows, candidate.dim, candidate.shape) == (K, D, (D, K))


def test_openai_names(save, directions) -> None:
    made = {
        "decoder.weight": directions.T,
        "encoder.weight": torch.zeros(K, D),
        "pre_bias": torch.zeros(D),
        "latent_bias": torch.zeros(K),
    }
    check(save(made), directions)


def test_square_decoder_goes_by_the_convention(save, rng) -> None:
    square = torch.randn(5, 5, generator=rng)
    with open_source(
        save({"decoder.weight": square, "encoder.weight": square.clone(), "b_dec": torch.zeros(5)})
    ) as matrix:
        assert torch.equal(matrix.read(0, 5), square.T)


def test_dictionary_learning_pickle(tmp_path, directions) -> None:
    made = {
        "decoder.weight": directions.T,
        "encoder.weight": torch.zeros(K, D),
        "bias": torch.zeros(D),
        "encoder.bias": torch.zeros(K),
    }
    torch.save(made, tmp_path / "ae.pt")
    check(tmp_path / "ae.pt", directions)
    check(tmp_path, directions)


@pytest.mark.parametrize("save_npz", [np.savez, np.savez_compressed])
def test_gemma_scope_npz(save_npz, tmp_path, directions) -> None:
    save_npz(
        tmp_path / "params.npz",
        W_dec=directions.numpy(),
        W_enc=np.zeros((D, K)),
        b_enc=np.zeros(K),
        threshold=np.zeros(K),
    )
    check(tmp_path / "params.npz", directions)


def test_compressed_npz_decoder_in_columns(tmp_path, directions) -> None:
    np.savez_compressed(tmp_path / "p.npz", **{"decoder.weight": directions.T.numpy(), "b_enc": np.zeros(K)})
    check(tmp_path / "p.npz", directions)


def test_in_half_precision(save, directions) -> None:
    half = directions.bfloat16()
    path = save({"decoder.weight": half.T, "b_enc": torch.zeros(K)})
    with open_source(path) as matrix:
        assert torch.equal(matrix.read(0, K), half)


def test_module_in_memory(directions) -> None:
    module = torch.nn.ModuleDict({"encoder": torch.nn.Linear(D, K), "decoder": torch.nn.Linear(K, D)})
    with torch.no_grad():
        module["decoder"].weight.copy_(directions.T)
    check(module, directions)


def test_a_decoder_alone_is_no_dictionary(save, rng) -> None:
    """`decoder.weight` without an encoder or a bias of its own is any layer: measured as it lies."""
    stored = torch.randn(4, 9, generator=rng)
    with open_source(save({"decoder.weight": stored})) as matrix:
        assert (matrix.info.role, matrix.count) == ("matrix", 4)


def test_turning_without_seeking_reads_the_base_in_blocks(rng, monkeypatch) -> None:
    from repcap.matrix import MatrixInfo, TensorMatrix

    base = torch.randn(11, 6, generator=rng)
    monkeypatch.setattr(TransposedMatrix, "BASE_ELEMENTS", 12)
    turned = TransposedMatrix(TensorMatrix(base), MatrixInfo("t", "t", 6, 11, "float32"))
    assert torch.equal(turned.read(1, 5), base.T[1:5])
    assert torch.equal(turned.take([5, 0, 5]), base.T[[5, 0, 5]])
