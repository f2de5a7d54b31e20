"""`pack`: arguments, the better of search and construction, baselines, degenerate sizes."""

from __future__ import annotations

import dataclasses
import json
import math
import sys
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import settings as options
from hypothesis import strategies as st

from repcap.errors import InputError
from repcap.options import parameters
from repcap.packing import pack
from repcap.packing.coherence import coherence
from repcap.packing.search import METHODS
from repcap.packing.search.adam_pnorm import AdamPnorm, exponent
from repcap.packing.search.method import Found, Task
from repcap.packing.search.random_lines import largest_cosine
from repcap.packing.search.starts import generator_for, random_start


@options(max_examples=12)
@given(k=st.integers(2, 30), d=st.integers(1, 12), constructions=st.booleans(), seed=st.integers(0, 50))
def test_any_size_gives_unit_vectors_no_better_than_proven(k, d, constructions, seed):
    packing = pack(k, d, steps=20, seed=seed, constructions=constructions)
    assert packing.vectors.shape == (k, d)
    assert torch.allclose(packing.vectors.norm(dim=1), torch.ones(k, dtype=packing.vectors.dtype), atol=1e-6)
    assert packing.coherence == pytest.approx(coherence(packing.vectors).value, abs=1e-15)
    assert packing.lower_bound - 1e-9 <= packing.coherence <= 1.0
    record = packing.to_dict()
    assert {"k", "d", "seed", "coherence", "lower_bound", "seconds", "steps", "path", "method"} <= set(record)
    json.dumps(record)


def test_construction_wins_where_it_is_better():
    packing = pack(500, 64, steps=15)
    assert packing.method == "construction: Kerdock"
    assert packing.coherence == pytest.approx(0.125, abs=1e-12)
    assert packing.optimised is not None
    assert packing.optimised > 0.125
    alone = pack(500, 64, steps=15, constructions=False)
    assert alone.coherence == packing.optimised
    assert alone.constructed is None


def test_subset_of_a_larger_set():
    packing = pack(64, 8, steps=5)
    assert packing.coherence == pytest.approx(0.5, abs=1e-12)
    assert "E8" in packing.method


def test_no_search_where_the_bound_is_attained():
    packing = pack(28, 7)
    assert (packing.steps, packing.optimised) == (0, None)
    assert packing.coherence == pytest.approx(1 / 3, abs=1e-12)


def test_better_sets_that_are_not_built_are_named():
    packing = pack(300, 12, steps=5)  # 378 lines at 1/2: the Coxeter-Todd lattice
    assert packing.details["better_known"]["coherence"] == pytest.approx(0.5)
    assert packing.coherence > 0.5


def test_random_baseline_against_its_prediction():
    packing = pack(300, 24, method="random", trials=40, seed=2)
    assert packing.steps == 0
    assert packing.coherence == pytest.approx(packing.details["predicted"], rel=0.04)
    draws = [
        float(np.abs(np.triu((r := random_start(300, 24, generator_for(2, t)).numpy()) @ r.T, 1)).max())
        for t in range(40)
    ]
    assert packing.coherence == pytest.approx(min(draws), abs=1e-6)
    assert packing.details["median_draw"] == pytest.approx(sorted(draws)[20], abs=1e-6)


def test_largest_cosine_over_block_borders(monkeypatch):
    monkeypatch.setattr("repcap.packing.search.random_lines.BLOCK", 7)
    rows = random_start(30, 6, generator_for(0, 0))
    assert largest_cosine(rows) == pytest.approx(coherence(rows).value, abs=1e-6)


def test_published_exponents():
    # min(int(m / ln d), 20): over the published grid 5 to 17.
    assert [exponent(128, m) for m in (40, 50, 60)] == [8, 10, 12]
    assert exponent(2, 60) == 20
    assert exponent(4096, 50) == int(50 / math.log(4096))


def test_adam_descends_the_p_norm():
    trace = []
    task = Task(60, 8, report=lambda step, fraction, now, best: trace.append((now, best)))
    found = AdamPnorm(steps=150, multiplier=40).run(task)
    assert (found.steps, found.details) == (150, {"exponent": exponent(8, 40), "multiplier": 40})
    assert coherence(found.rows).value == pytest.approx(min(now for now, _ in trace), abs=1e-6)
    assert trace[-1][1] < 0.8 * trace[0][0]
    assert [best for _, best in trace] == sorted((best for _, best in trace), reverse=True)
    packing = pack(60, 8, method="adam-pnorm", steps=20, multiplier=40)
    assert packing.method == f"adam-pnorm p={exponent(8, 40)}"


@dataclasses.dataclass(frozen=True)
class Spiral:
    """Lines along a spiral: a toy that carries a parameter of its own, and one that `pack` has too."""

    name: ClassVar[str] = "spiral"
    about: ClassVar[str] = "lines along a spiral"
    baseline: ClassVar[bool] = True
    turns: float = 3.0
    steps: int | None = 400

    def run(self, task: Task) -> Found:
        height = torch.linspace(0.05, 0.95, task.k, dtype=torch.float64)
        angle, radius = 2 * math.pi * self.turns * height, (1 - height * height).sqrt()
        rows = torch.stack([radius * angle.cos(), radius * angle.sin(), height], dim=1)
        return Found(rows, f"spiral of {self.turns:g} turns", self.steps or 0)


def test_one_more_optimiser_is_one_class_and_one_line(monkeypatch):
    with pytest.raises(InputError, match="method = spiral: use optimise, random, adam-pnorm"):
        pack(9, 3, method="spiral")
    monkeypatch.setitem(sys.modules, "spirals", SimpleNamespace(Spiral=Spiral))
    monkeypatch.setitem(METHODS, "spiral", "spirals:Spiral")
    parameters.cache_clear()
    packing = pack(9, 3, method="spiral", steps=7)
    assert (packing.method, packing.steps, packing.constructed) == ("spiral of 3 turns", 7, None)
    assert packing.coherence == pytest.approx(coherence(packing.vectors).value)
    with pytest.raises(InputError, match="use optimise, random, adam-pnorm, spiral"):
        pack(9, 3, method="magic")
    assert parameters(pack)["method"].option.help == "optimise, random, adam-pnorm, spiral."
    monkeypatch.undo()
    parameters.cache_clear()
    packing = pack(9, 3, method=Spiral(turns=2.5))
    assert packing.method == "spiral of 2.5 turns"
    assert packing.options["method"] == "Spiral(turns=2.5, steps=400)"


def test_start_from_a_construction_and_from_a_file(tmp_path):
    warm = pack(150, 10, init="construction", steps=60, constructions=False)
    cold = pack(150, 10, steps=60, constructions=False)
    assert warm.coherence < 0.75
    assert warm.coherence != cold.coherence
    path = tmp_path / "start.npy"
    np.save(path, cold.vectors.numpy())
    again = pack(150, 10, init=str(path), steps=60, constructions=False)
    assert again.coherence <= cold.coherence + 1e-3
    with pytest.raises(InputError, match="150 vectors"):
        pack(151, 10, init=str(path))
    with pytest.raises(InputError, match="R\\^10"):
        pack(150, 11, init=str(path))


def test_progress_is_told():
    seen = []
    pack(40, 8, steps=10, constructions=False, on_progress=seen.append)
    assert [state.step for state in seen] == list(range(1, 11))
    assert seen[-1].fraction == 1.0
    assert all(state.best <= state.coherence and state.lower_bound < state.best for state in seen)


@pytest.mark.parametrize("keep", [True, False])
def test_interrupt(keep):
    def stop(state):
        if state.step == 5:
            raise KeyboardInterrupt

    if not keep:
        with pytest.raises(KeyboardInterrupt):
            pack(40, 8, constructions=False, on_progress=stop)
        return
    packing = pack(40, 8, constructions=False, on_progress=stop, keep_on_interrupt=True)
    assert packing.interrupted
    assert packing.steps == 5
    assert packing.coherence < 0.99


def test_checkpoint_goes_on_and_refuses_another_search(tmp_path, monkeypatch):
    monkeypatch.setattr("repcap.packing.search.resume.Checkpoint.__init__.__defaults__", (0.0,))
    path = tmp_path / "search.checkpoint"

    def stop(state):
        if state.step == 12:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        pack(60, 9, steps=40, seed=4, constructions=False, checkpoint=path, on_progress=stop)
    assert path.exists()
    with pytest.raises(InputError, match="another search"):
        pack(60, 9, steps=40, seed=5, constructions=False, checkpoint=path)
    seen = []
    resumed = pack(60, 9, steps=40, seed=4, constructions=False, checkpoint=path, on_progress=seen.append)
    assert seen[0].step in (12, 13)
    assert resumed.steps == 40
    again = pack(60, 9, steps=40, seed=4, constructions=False, checkpoint=path)  # finished: nothing is searched
    assert (again.steps, again.coherence) == (40, resumed.coherence)
    assert torch.equal(again.vectors, resumed.vectors)
    whole = pack(60, 9, steps=40, seed=4, constructions=False)
    assert resumed.coherence == pytest.approx(whole.coherence, abs=1e-6)
    data = bytearray(path.read_bytes())
    data[-5] ^= 1  # a bit of a number
    path.write_bytes(data)
    with pytest.raises(InputError, match="damaged: its content is not what was written"):
        pack(60, 9, steps=40, seed=4, constructions=False, checkpoint=path)
    path.write_bytes(b"rubbish")
    with pytest.raises(InputError, match="no checkpoint of a packing"):
        pack(60, 9, steps=40, seed=4, constructions=False, checkpoint=path)


def test_a_search_stopped_by_hand_goes_on(tmp_path):
    path = tmp_path / "search.checkpoint"

    def stop(state):
        if state.step == 12:
            raise KeyboardInterrupt

    options = {"steps": 40, "seed": 4, "constructions": False, "checkpoint": path}
    stopped = pack(60, 9, **options, keep_on_interrupt=True, on_progress=stop)
    assert (stopped.interrupted, stopped.steps) == (True, 12)
    resumed = pack(60, 9, **options)
    assert (resumed.interrupted, resumed.steps) == (False, 40)
    assert resumed.coherence == pytest.approx(pack(60, 9, steps=40, seed=4, constructions=False).coherence, abs=1e-6)


def test_batches_go_on_after_a_checkpoint(tmp_path, monkeypatch):
    monkeypatch.setattr("repcap.packing.search.resume.Checkpoint.__init__.__defaults__", (0.0,))
    path = tmp_path / "batch.checkpoint"

    def stop(state):
        if state.fraction > 0.6:
            raise KeyboardInterrupt

    options = {"steps": 20, "restarts": 30, "constructions": False, "checkpoint": path}
    with pytest.raises(KeyboardInterrupt):
        pack(20, 7, **options, on_progress=stop)
    resumed = pack(20, 7, **options)
    whole = pack(20, 7, steps=20, restarts=30, constructions=False)
    assert resumed.steps == whole.steps
    assert resumed.coherence == pytest.approx(whole.coherence, abs=1e-9)


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"k": 1}, "at least 2 vectors"),
        ({"d": 0}, "dimension"),
        ({"steps": 0}, "steps"),
        ({"steps": None}, "end"),
        ({"restarts": 0}, "restarts"),
        ({"precision": "float8"}, "precision"),
        ({"method": "magic"}, "method"),
        ({"symmetry": 7}, "multiple"),
        ({"symmetry": "many"}, "symmetry"),
        ({"init": "nowhere.npy"}, "no file"),
        ({"device": "tpu9"}, "device"),
        ({"trials": 0, "method": "random"}, "trials"),
        ({"seed": -1}, "seed"),
        ({"seed": 1.5}, "seed = 1.5: give a whole number"),
        ({"seed": 2**63}, "seed"),
        ({"k": 30.0}, "k 30.0: give a whole number"),
        ({"d": "5"}, "d 5: give a whole number"),
        ({"steps": 2.5}, "steps = 2.5: give a whole number"),
        ({"restarts": True}, "restarts = True: give a whole number"),
        ({"symmetry": 2.5}, "symmetry = 2.5: give a whole number or text"),
        ({"symmetry": None}, "symmetry = None: give"),
        ({"target": 2}, "target = 2.0: a coherence lies between 0 and 1"),
        ({"target": 1.0}, "target = 1.0: a coherence"),
        ({"target": float("nan")}, "target = nan: give a finite number"),
    ],
)
def test_bad_arguments(arguments, match):
    with pytest.raises(InputError, match=match):
        pack(**{"k": 30, "d": 5, "constructions": False, **arguments})


def test_numbers_of_numpy_are_numbers():
    import json

    packing = pack(np.int64(12), np.int32(4), steps=np.int64(5), restarts=np.int8(1), seed=np.uint8(3))
    assert json.loads(json.dumps(packing.to_dict()))["seed"] == 3
    assert packing.coherence == pack(12, 4, steps=5, seed=3).coherence


@pytest.mark.parametrize("precision", ["float32", "float64", "bfloat16"])
def test_every_precision_descends(precision):
    packing = pack(900, 48, steps=15, precision=precision, constructions=False)  # too large for a polish in float64
    assert packing.coherence < 0.45
    assert packing.vectors.dtype == (torch.float64 if precision == "float64" else torch.float32)
