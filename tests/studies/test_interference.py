"""The interference study: sets of directions are what they claim, and read as the bounds say."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import torch

from repcap.cli.common import jsonable
from repcap.errors import DomainError, InputError
from repcap.studies.interference import interference


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
    assert interference(**arguments).to_dict() == interference(**arguments).to_dict()
    assert interference(**arguments, seed=1).to_dict() != interference(**arguments).to_dict()


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
