"""The interference study: sets of directions are what they claim, and read as the bounds say."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import torch

from repcap.console.common import jsonable
from repcap.errors import DomainError, InputError
from repcap.verbs.interference.study import interference


def test_three_sets_in_r16():
    found = interference(k=144, d=16, active=[1, 2, 4, 8, 500], trials=100, steps=60, device="cpu")
    assert found.active == (1, 2, 4, 8)
    random, optimised, constructed = found.sets
    # 144 lines at exactly 1/4, a tight frame: Kerdock
    assert constructed.coherence == pytest.approx(0.25, abs=1e-9)
    assert constructed.rms_cosine == pytest.approx(constructed.welch_rms, abs=1e-9)
    assert constructed.guaranteed == 2
    assert constructed.coherence <= optimised.coherence < random.coherence
    for one, bound in zip(found.sets, found.bounds, strict=True):
        assert one.rms_cosine >= one.welch_rms - 1e-12
        assert bound["upper"] >= math.log10(144) - 1e-9
        by_s = {r.active: r for r in one.readouts if r.readout == "direct"}
        assert by_s[1].recovery == 1.0
        assert by_s[8].rms_idle > by_s[1].rms_idle
    assert all(r.recovery == 1.0 for r in constructed.readouts if r.active <= 2 and r.readout == "direct")


def test_rms_cosine_against_all_pairs():
    rows = torch.from_numpy(np.random.default_rng(0).standard_normal((40, 7)))
    (one,) = interference(vectors=rows, active=[2], trials=5, device="cpu").sets
    unit = rows / rows.norm(dim=1, keepdim=True)
    cosines = (unit @ unit.T).numpy()[np.triu_indices(40, 1)]
    assert one.rms_cosine == pytest.approx(np.sqrt((cosines**2).mean()), rel=1e-9)
    assert one.coherence == pytest.approx(np.abs(cosines).max(), rel=1e-9)


def test_orthonormal_directions_never_mix():
    found = interference(vectors=torch.eye(8), active=[1, 4, 8], trials=20, device="cpu")
    (one,) = found.sets
    assert one.guaranteed is None
    assert one.readable == 8
    assert "they are orthogonal" in found.reading


def test_vectors_from_a_file_and_json(tmp_path):
    path = tmp_path / "v.npy"
    np.save(path, np.random.default_rng(0).standard_normal((30, 6)))
    found = interference(vectors=path, active=[1, 2], trials=10, values="ones", device="cpu")
    record = json.loads(json.dumps(jsonable(found), allow_nan=False))
    assert (record["k"], record["d"], record["sets"][0]["method"]) == (30, 6, "file")
    assert record["sets"][0]["readouts"][0]["predicted_idle"] is None


def test_same_seed_same_numbers():
    arguments = {"k": 20, "d": 5, "active": [2], "methods": ["random"], "trials": 10, "device": "cpu"}
    assert interference(**arguments).values() == interference(**arguments).values()
    assert interference(**arguments, seed=1).values() != interference(**arguments).values()


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({}, InputError, "give k and d, or a file of vectors"),
        ({"k": 1, "d": 4}, DomainError, "k >= 2 and d >= 1 are needed"),
        ({"k": 8, "d": 4, "methods": ["magic"]}, InputError, "unknown method 'magic'"),
        ({"k": 8, "d": 4, "methods": ["random"], "active": [9]}, InputError, r"within 1\.\.8"),
        ({"vectors": "none.npy"}, InputError, r"none\.npy"),
    ],
)
def test_bad_input(options, error, message):
    with pytest.raises(error, match=message):
        interference(device="cpu", **options)


def test_all_active_proves_nothing_and_a_guarantee_does_not_exceed_k():
    rows = torch.randn(8, 8, generator=torch.Generator().manual_seed(0))
    (one,) = interference(vectors=rows, active=[1, 8], trials=20, device="cpu").sets
    assert one.readable < 8
    nearly = torch.eye(6) + 1e-6 * torch.randn(6, 6, generator=torch.Generator().manual_seed(1))
    found = interference(vectors=nearly, active=[2], trials=5, device="cpu")
    assert (found.sets[0].guaranteed, found.sets[0].readable) == (None, 6)
    assert "any number active at once" in found.reading


def test_directions_that_float32_cannot_tell_apart_are_not_promised():
    angle = torch.tensor([0.0, 1e-5, 1.0], dtype=torch.float64)
    (one,) = interference(vectors=torch.stack([angle.cos(), angle.sin()], 1), active=[1], trials=50, device="cpu").sets
    assert one.guaranteed == 0
    assert one.readable == 0


def test_nothing_is_packed_before_what_is_asked_is_known_to_be_possible(monkeypatch):
    import repcap.packing

    def never(*_args, **_kwargs):
        raise AssertionError("packed in vain")

    monkeypatch.setattr(repcap.packing, "pack", never)
    for options, message in (
        ({"k": 20, "d": 8, "active": [0]}, "from 1 to k = 20"),
        ({"k": 20, "d": 8, "trials": 0}, "trials"),
        ({"k": 20, "d": 8, "values": "x"}, "unknown values"),
        ({"k": 5, "d": 1}, "leave `constructed` out"),
    ):
        with pytest.raises(InputError, match=message):
            interference(device="cpu", **options)


def test_size_and_vectors_that_disagree():
    with pytest.raises(InputError, match=r"holds 5 directions in R\^3: leave k and d out"):
        interference(k=6, d=3, vectors=torch.randn(5, 3), active=[1], device="cpu")
    with pytest.raises(InputError, match=r"shape \(4,\) is no set of directions"):
        interference(vectors=torch.randn(4), active=[1], device="cpu")


def test_mean_square_over_every_set_and_sign_is_the_closed_form():
    """All 10 pairs of 5 directions in R^3 and all signs, in float64: s q idle, (s - 1) q active."""
    import itertools

    unit = torch.nn.functional.normalize(
        torch.randn(5, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(3)), dim=1
    )
    before = unit.clone()
    (one,) = interference(vectors=unit, active=[2], trials=4, device="cpu").sets
    assert torch.equal(unit, before)  # what is given is left as it is
    direct = next(r for r in one.readouts if r.readout == "direct")
    active, idle = [], []
    for pair in itertools.combinations(range(5), 2):
        for signs in itertools.product((-1.0, 1.0), repeat=2):
            reading = unit @ (torch.tensor(signs, dtype=torch.float64) @ unit[list(pair)])
            active += [(reading[i] - sign).item() ** 2 for i, sign in zip(pair, signs, strict=True)]
            idle += [reading[i].item() ** 2 for i in range(5) if i not in pair]
    assert direct.predicted_active == pytest.approx(np.sqrt(np.mean(active)), rel=1e-6)
    assert direct.predicted_idle == pytest.approx(np.sqrt(np.mean(idle)), rel=1e-6)
