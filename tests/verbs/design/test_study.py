"""d_model from features: against the laws' own inverses, the proven limits, and the published table."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from repcap.console.common import jsonable
from repcap.constructions.best import best_construction
from repcap.errors import DomainError, OptionError
from repcap.laws import full, ratio
from repcap.laws.limits.bounds import upper_bound
from repcap.laws.limits.existence import gilbert_varshamov
from repcap.verbs.design.study import design, params_in_name


@settings(max_examples=15)
@given(
    features=st.floats(1e3, 1e12),
    eps=st.floats(0.03, 0.3),
    vocab=st.one_of(st.none(), st.integers(1000, 300_000)),
    tied=st.booleans(),
    multiple=st.sampled_from([1, 64, 128, 256]),
)
def test_every_width_is_what_it_says(features, eps, vocab, tied, multiple):
    import math

    tied = tied and vocab is not None
    (row,) = design(features, eps, vocab=vocab, tied=tied, multiple=multiple).points
    k = features + (vocab or 0) * (1 if tied else 2)
    assert row.k == pytest.approx(k)
    for name, law in (("ratio", ratio), ("full", full)):
        width = row.width(name)
        if width.d is not None:
            assert law.log_k(width.d, eps) == pytest.approx(math.log(k), rel=1e-9)
    enough, needed = row.width("enough"), row.width("needed")
    log10_k = math.log10(k) - 1e-9
    if enough.d is not None:
        best = max(best_construction(int(enough.d), eps).log10_k, gilbert_varshamov(int(enough.d), eps))
        assert best >= log10_k
        assert needed.d <= enough.d
    assert upper_bound(int(needed.d), eps).log10_k >= log10_k
    if needed.d > 1:
        assert upper_bound(int(needed.d) - 1, eps).log10_k < log10_k + 2e-9
    for width in row.widths:
        if width.d is not None:
            assert width.rounded % multiple == 0
            assert 0 <= width.rounded - width.d + 1e-6 < multiple + 1e-5


def test_weights_of_the_vocabulary():
    (row,) = design(1e6, 0.07, vocab=1000, params=1e8).points
    (tied,) = design(1e6, 0.07, vocab=1000, tied=True, params=1e8).points
    width = row.width("ratio")
    assert width.embedding_params == 2 * 1000 * width.rounded
    assert width.share == width.embedding_params / 1e8
    assert tied.width("ratio").embedding_params == 1000 * tied.width("ratio").rounded


def test_less_deviation_needs_more_dimensions():
    rows = design(1e7, [0.09, 0.06, 0.075], vocab=128256).points
    assert [row.epsilon for row in rows] == [0.06, 0.075, 0.09]
    for name in ("ratio", "full", "enough", "needed"):
        widths = [row.width(name).d for row in rows]
        assert widths == sorted(widths, reverse=True)


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("Llama 3.1 405B", 4.05e11),
        ("meta-llama/Llama-2-7b-hf", None),
        ("org/Model-1.5B-chat", 1.5e9),
        ("Qwen 3 30B A3B", 3e10),
        ("SmolLM2-135M-Instruct", 1.35e8),
        ("Phi 4", None),
        ("GPT OSS 20B", 2e10),
    ],
)
def test_parameters_in_a_name(name, params):
    assert params_in_name(name) == params


def test_peers_of_8e9_parameters_come_from_the_published_table():
    found = design(1e7, 0.07, params=8e9)
    names = {peer.model for peer in found.peers}
    assert {"Llama 3 8B", "Qwen 3 8B", "Llama 2 7B"} <= names
    assert "Llama 3.1 405B" not in names
    llama = next(peer for peer in found.peers if peer.model == "Llama 2 7B")
    assert (llama.d_model, llama.epsilon) == (4096, 0.0645)
    assert llama.ratio == pytest.approx(0.0645 * 32)


def test_peers_from_a_store(tmp_path):
    from repcap.jobs.store import Store

    record = {"source": "mine-7B", "dim": 4096, "epsilon": 0.0645, "tied": True}
    with Store(tmp_path / "s.sqlite") as store:
        store.put("a", "measure", record)
    (peer,) = design(1e7, 0.07, params=8e9, store=tmp_path / "s.sqlite").peers
    assert (peer.model, peer.params, peer.tied) == ("mine-7B", 7e9, True)


def test_says_what_is_heuristic_and_is_json():
    found = design(1e7, [0.06, 0.09], vocab=128256, params=8e9)
    record = json.loads(json.dumps(jsonable(found)))
    assert "hypothesis" in record["heuristic"]
    assert "1.03e7 directions" in record["reading"]


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((0, 0.1), {}, "features = 0.0 is outside the domain"),
        ((float("nan"), 0.1), {}, "features = nan: give a finite number"),
        ((1e6, []), {}, "give at least one epsilon"),
        ((1e6, 1.5), {}, r"1\.5"),
        ((1e6, 0.1), {"multiple": 0}, "multiple = 0 is outside the domain"),
        ((1e6, 0.1), {"params": -1}, "params = -1.0 is outside the domain"),
        ((1e6, 0.1), {"vocab": 0}, "vocab = 0 is outside the domain"),
    ],
)
def test_bad_numbers(arguments, options, message):
    with pytest.raises((DomainError, OptionError), match=message):
        design(*arguments, **options)


def test_what_is_proven_is_not_said_of_rounded_numbers():
    """1e7 directions fit into 6 dimensions at 0.999: `no set below 128` would be wrong."""
    found = design(1e7, 0.999)
    needed = found.points[0].width("needed")
    assert needed.rounded == 128
    assert needed.d < 10
    assert f"no set exists in fewer than {needed.d:.0f} dimensions" in found.reading
    nothing = design(1e7, 1e-4)
    assert nothing.points[0].width("needed").d is None
    assert "what is needed at least is not known" in nothing.reading


def test_remarks_say_where_a_law_leaves_the_proven_limits():
    found = design(1e7, [0.06, 0.09], vocab=128256, params=1e6)
    text = "; ".join(found.remarks)
    assert "at epsilon 0.06 to 0.09 ratio and full ask for more dimensions than are proven to be enough" in text
    assert "extrapolate beyond the data" in text
    assert "more parameters than `params`" in text
    small = design(10, 0.5, multiple=1)
    row = small.points[0]
    assert row.width("full").rounded < row.width("needed").d
    assert "at epsilon 0.5 full asks for too few dimensions" in small.remarks
    assert any("full asks for 3.0 dimensions, but 4 are proven to be needed" in w for w in row.warnings)
    inside = design(4000, 0.2)  # k/d from 36 to 40 at d near 100: within the data
    assert not any("extrapolate" in remark for remark in inside.remarks)
    assert found.to_dict()["remarks"] == list(found.remarks)


def test_peers_of_a_store_are_embeddings_by_their_names(tmp_path):
    from repcap.jobs.store import Store

    with Store(tmp_path / "s.db") as store:
        for name, role in (("a", "embedding"), ("b", "unembedding"), ("c", "decoder")):
            record = {"name": name, "source": f"org/{name}-1.5B", "role": role, "dim": 2048, "epsilon": 0.1}
            store.put(name, "measure", record)
    found = design(1e7, 0.07, params=2e9, store=tmp_path / "s.db")
    assert [(peer.model, peer.params) for peer in found.peers] == [("a", 1.5e9)]
