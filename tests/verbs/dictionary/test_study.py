"""A sparse autoencoder's decoder against brute force over all pairs."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from repcap.errors import InputError, VectorsError
from repcap.verbs.dictionary.study import dictionary
from repcap.verbs.readout.study import readout


def cosines(a, b):
    unit = torch.nn.functional.normalize
    return unit(a.double(), dim=1) @ unit(b.double(), dim=1).T


@pytest.fixture
def files(tmp_path):
    torch.manual_seed(0)
    decoder = torch.randn(60, 10)
    decoder[[3, 17]] = 0.0
    decoder[21] = float("nan")
    decoder[40] *= 1e-6
    embedding = torch.randn(80, 10)
    save_file({"W_dec": decoder, "b_enc": torch.zeros(60), "b_dec": torch.zeros(10)}, tmp_path / "sae.safetensors")
    save_file({"model.embed_tokens.weight": embedding}, tmp_path / "model.safetensors")
    return tmp_path / "sae.safetensors", tmp_path / "model.safetensors", decoder, embedding


def test_against_brute_force(files):
    sae, model, decoder, embedding = files
    found = dictionary(str(sae), str(model), top=4)
    keep = [row for row in range(60) if row not in (3, 17, 21, 40)]
    alive = decoder[keep]
    assert (found.alive, found.zero, found.non_finite, found.tiny, found.dead) == (56, 2, 1, 1, 4)
    between = cosines(alive, alive).abs().fill_diagonal_(0)
    assert found.coherence == pytest.approx(float(between.max()), abs=1e-6)
    i, j = (keep.index(row) for row in found.pair)
    assert float(between[i, j]) == pytest.approx(found.coherence, abs=1e-6)
    tokens = cosines(embedding, embedding)[~torch.eye(80, dtype=torch.bool)]
    epsilon = float(tokens.mean() + 2 * tokens.std(correction=0))
    part = found.against
    assert part.epsilon == pytest.approx(epsilon, abs=1e-6)
    largest = cosines(alive, embedding).abs().amax(1)
    assert part.rows_within == pytest.approx(float((largest <= epsilon).double().mean()))
    assert dict(part.largest)[0.5] == pytest.approx(float(largest.quantile(0.5)), abs=1e-6)
    pairs = between[~torch.eye(56, dtype=torch.bool)]
    assert part.pairs_within == pytest.approx(float((pairs <= epsilon).double().mean()), abs=1e-12)
    row, other, token, cosine = part.strongest[0]
    assert cosine == pytest.approx(float(largest.max()), abs=1e-6)
    assert float(cosines(decoder[[row]], embedding[[other]]).abs()) == pytest.approx(cosine, abs=1e-6)
    assert token is None
    assert part.budget == 56 + 80
    room = found.measured.capacity
    assert found.filled == pytest.approx(
        {key: 56 / 10 ** room[key]["log10_k"] for key in ("explicit", "exists", "law", "upper")}
    )
    assert found.measured.count == 57  # epsilon is of all rows with a direction
    assert found.measured.info.role == "decoder"


def test_orthonormal_rows_are_as_good_as_can_be():
    found = dictionary(torch.eye(8))
    assert (found.alive, found.dead) == (8, 0)
    assert found.coherence == pytest.approx(0.0, abs=1e-7)
    assert found.coherence_bound == 0.0
    assert found.against is None


def test_a_set_that_attains_its_bound():
    """Six diagonals of the icosahedron: coherence 1/sqrt(5), which no six lines in R^3 can undercut."""
    g = (1 + 5**0.5) / 2
    lines = torch.tensor([[0, 1, g], [0, 1, -g], [1, g, 0], [1, -g, 0], [g, 0, 1], [-g, 0, 1]], dtype=torch.float64)
    found = dictionary(lines)
    assert found.coherence == pytest.approx(5**-0.5, abs=1e-6)
    assert found.coherence_bound == pytest.approx(5**-0.5, abs=1e-9)


def test_random_dictionary_has_the_coherence_of_random_lines():
    found = dictionary(torch.randn(400, 64, generator=torch.Generator().manual_seed(1)))
    assert found.coherence == pytest.approx(found.coherence_random, rel=0.12)
    assert found.coherence_bound < found.coherence


def test_rows_of_the_embedding_itself_are_not_within(files):
    _, model, _, embedding = files
    found = dictionary(embedding[:20].clone(), str(model))
    assert found.against.rows_within == 0.0
    assert [row for row, other, _, _ in found.against.strongest if row == other]


def test_refusals(files):
    sae, model, _, _ = files
    with pytest.raises(VectorsError, match="different spaces"):
        dictionary(torch.randn(20, 7), str(model))
    with pytest.raises(InputError, match="top = -1: give 0 or more"):
        dictionary(str(sae), top=-1)
    with pytest.raises(VectorsError):
        dictionary(torch.cat([torch.ones(1, 3), torch.zeros(4, 3)]))


def test_command(files, repcap):
    sae, model, _, _ = files
    done = repcap("dictionary", sae, "--against", model, "--json")
    assert done.code == 0, done.err
    record = done.json
    assert record["dead"] == {"rows": 4, "zero": 2, "non_finite": 1, "tiny": 1}
    assert record["against"]["count"] == 80
    assert record["epsilon"] > 0
    assert record["reading"].startswith("56 of 60 rows are alive; their epsilon is ")
    text = repcap("dictionary", sae, "--against", model)
    assert text.code == 0
    assert max(map(len, text.out.splitlines())) <= 80
    assert "alive rows" in text.out
    assert "k over capacity" in text.out


def test_the_matrix_of_the_model_can_be_named(files, repcap):
    sae, model, _, _ = files
    named = repcap("dictionary", sae, "--against", model, "--against-matrix", "model.embed_tokens.weight", "--json")
    assert named.json["against"]["matrix"] == "model.embed_tokens.weight"
    assert repcap("dictionary", sae, "--against", model, "--against-matrix", "nothing").code == 2


def test_transposed_decoder(tmp_path, files):
    _, _, decoder, _ = files
    state = {"decoder.weight": decoder.T.contiguous(), "encoder.weight": torch.zeros(60, 10)}
    save_file({**state, "encoder.bias": torch.zeros(60)}, tmp_path / "t.safetensors")
    found = dictionary(str(tmp_path / "t.safetensors"))
    assert (found.alive, found.dead) == (56, 4)
    assert np.isfinite(found.coherence)


def test_at_once_is_the_readout_of_the_alive_rows(files):
    sae, _, decoder, _ = files
    keep = [row for row in range(60) if row not in (3, 17, 21, 40)]
    found = dictionary(str(sae), theta=0.7, delta=0.02).at_once
    alone = readout(decoder[keep], theta=0.7, delta=0.02, active=(1,))
    assert (found.theta, found.delta) == (0.7, 0.02)
    for name in ("direct", "best"):
        here, there = getattr(found, name), getattr(alone, name)
        assert here.interference == pytest.approx(there.interference, rel=1e-9)
        assert here.most == there.most
    assert found.welch_dim == pytest.approx(10 * 55 / 46)  # d (k - 1)/(k - d)
    squares = cosines(decoder[keep], decoder[keep]).square().fill_diagonal_(0)
    assert found.direct.effective_dim == pytest.approx(56 * 55 / float(squares.sum()))


@pytest.mark.parametrize(("rows", "most"), [(torch.eye(8), 8), (torch.eye(2), None)])
def test_orthonormal_rows_are_all_read_and_two_say_nothing(rows, most):
    found = dictionary(rows)
    assert (found.at_once and found.at_once.best.most) == most
    assert ("at once" in found.reading) == (most is not None)
    assert found.values()["at_once"] is None or found.at_once.welch_dim is None
