"""The engine on a real cluster of several Ray nodes on this machine, one of which is killed in the middle of a run."""

from __future__ import annotations

import collections
import json
import subprocess
import sys
import threading

import pytest

import engine_jobs as jobs
from repcap.errors import InputError, RepcapError
from repcap.jobs.engine import LOST, Unit, run
from repcap.jobs.store import Store
from survey_jobs import make_checkpoint

ray = pytest.importorskip("ray", reason="the extra [ray] is not installed")
pytestmark = pytest.mark.slow

STORE_BYTES = 80 * 1024**2


class Sink:
    """Keeps what the engine hands on, and counts how often."""

    def __init__(self):
        self.results, self.faults, self.calls = {}, {}, collections.Counter()

    def result(self, unit, value):
        self.calls[unit.key] += 1
        self.results[unit.key] = value

    def failure(self, unit, fault):
        self.calls[unit.key] += 1
        self.faults[unit.key] = fault


@pytest.fixture(scope="module")
def cluster():
    from ray.cluster_utils import Cluster

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("RAY_DISABLE_IMPORT_WARNING", "1")
        head = {"num_cpus": 1, "object_store_memory": STORE_BYTES, "include_dashboard": False}
        made = Cluster(initialize_head=True, head_node_args=head)
        made.others = [made.add_node(num_cpus=2, object_store_memory=STORE_BYTES) for _ in range(2)]
        made.wait_for_nodes()
        try:
            yield made
        finally:
            ray.shutdown()
            made.shutdown()


def go(cluster, worker, units, sink=None, **options):
    sink = sink or Sink()
    report = run(units, worker, f"ray:{cluster.address}", on_result=sink.result, on_failure=sink.failure, **options)
    assert all(count == 1 for count in sink.calls.values())
    assert set(sink.calls) == {unit.key for unit in units}
    assert (report.done, report.failed) == (len(sink.results), len(sink.faults))
    return sink, report


def test_results_and_failures(cluster, tmp_path):
    sink, _ = go(cluster, jobs.divide, [Unit(str(n), n) for n in range(5)])
    assert sink.results == {"1": 1.0, "2": 0.5, "3": 1 / 3, "4": 0.25}
    assert sink.faults["0"].error == "ZeroDivisionError"
    assert not ray.is_initialized()  # what we connected, we disconnect

    sink, report = go(
        cluster, jobs.die, [Unit("once", (tmp_path / "a", 1)), Unit("ever", (tmp_path / "b", 99))], retries=1
    )
    assert sink.results == {"once": "alive"}
    assert sink.faults["ever"].error == LOST
    assert sink.faults["ever"].reason.endswith("(2 tries)")
    assert report.lost == 3

    sink, _ = go(cluster, jobs.unpicklable, [Unit("a", 0)])
    assert set(sink.faults) | set(sink.results) == {"a"}


def test_a_hung_unit_is_cancelled_and_tried_again(cluster, tmp_path):
    sink, report = go(cluster, jobs.hang, [Unit("a", (tmp_path / "a", 1)), Unit("b", (tmp_path / "b", 0))], timeout=15)
    assert sink.results == {"a": "awake", "b": "awake"}
    assert report.lost >= 1  # on a busy machine a worker may take longer than that to start


def test_gpus_that_the_cluster_does_not_have(cluster):
    with pytest.raises(InputError, match="the Ray cluster has 0"):
        go(cluster, jobs.square, [Unit("a", 1)], gpus_per_unit=1)


@pytest.mark.parametrize(("units", "strategy"), [(1, "SPREAD"), (4, "SPREAD"), (5, "DEFAULT"), (40, "DEFAULT")])
def test_tasks_are_spread_where_they_are_fewer_than_the_processors(cluster, monkeypatch, units, strategy):
    """Where they are more, SPREAD may fill a node that has died again and again, and the survey stands still."""
    real = ray.remote

    def remote(*functions, **options):
        if "scheduling_strategy" in options:  # ours; ray has remote functions of its own
            raise RepcapError(options["scheduling_strategy"])
        return real(*functions, **options)

    monkeypatch.setattr(ray, "remote", remote)
    with pytest.raises(RepcapError, match=f"^{strategy}$"):
        go(cluster, jobs.square, [Unit(str(n), n) for n in range(units)])


def test_no_cluster_there():
    with pytest.raises(RepcapError, match="no Ray cluster at"):
        run([Unit("a", 1)], jobs.square, "ray:127.0.0.1:1", on_result=pytest.fail, on_failure=pytest.fail)


def test_track_on_a_cluster(cluster, tmp_path):
    """The command, run for real: the points, the store and what a second run skips are those of this process."""
    from repcap.verbs.track.study import track

    paths = [str(make_checkpoint(tmp_path / f"run/step{step}", 30, 6, step, head="own")[0]) for step in (1, 2, 3, 4)]
    whole, store = track(paths, matrix="both"), tmp_path / "run.sqlite"
    words = ["track", *paths, "--matrix", "both", "--store", str(store), "--engine", f"ray:{cluster.address}", "--json"]
    command = [sys.executable, "-m", "repcap", *words]
    for _ in range(2):
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=200)
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout)
        assert found["points"] == json.loads(json.dumps([point.to_dict() for point in whole.points]))
        with Store(store, "read") as opened:
            held = [(item.record["step"], item.created) for item in opened.records("step")]
        assert [step for step, _ in sorted(held)] == [1, 2, 3, 4]
    assert not ray.is_initialized()
    again = track(paths, matrix="both", store=store)  # in this process: the key does not hold the engine
    with Store(store, "read") as opened:
        assert held == [(item.record["step"], item.created) for item in opened.records("step")]
    assert again.points == whole.points


def test_a_node_that_dies_in_the_middle_costs_no_result(cluster, tmp_path):
    """The cluster has one node less afterwards."""
    log, answered = tmp_path / "log", tmp_path / "answered"
    victim = cluster.others[0]
    units = [Unit(str(n), (log, n, victim.node_id, answered), size=n) for n in range(40)]
    sink = Sink()
    killed_at = []

    def result(unit, value):
        Sink.result(sink, unit, value)
        if value == victim.node_id:
            answered.touch()
        if answered.exists() and not killed_at and len(sink.results) >= 8:
            killed_at.append(len(sink.results))
            thread.start()

    thread = threading.Thread(target=cluster.remove_node, args=(victim,), kwargs={"allow_graceful": False})
    report = run(units, jobs.doomed_log, f"ray:{cluster.address}", on_result=result, on_failure=sink.failure, retries=3)
    thread.join()
    assert killed_at
    assert killed_at[0] < 40
    assert sink.calls == {str(n): 1 for n in range(40)}
    assert sink.faults == {}
    assert report.lost >= 1
    # Only what the dead node had in hand was done again.
    assert len(log.read_text().split()) <= 40 + report.lost


def test_a_sweep_survives_the_death_of_a_node(cluster, tmp_path):
    """Real cells into a real store, the last node but the head killed in the middle: every cell once."""
    from repcap.verbs.sweep.study import grid, sweep

    path, victim, threads = tmp_path / "cells.sqlite", cluster.others[1], []
    cells = grid([30, 40, 50], [6, 8], seeds=5)

    def on_unit(done, total):
        if done >= 6 and not threads:
            threads.append(
                threading.Thread(target=cluster.remove_node, args=(victim,), kwargs={"allow_graceful": False})
            )
            threads[0].start()

    engine = f"ray:{cluster.address}"
    batch = sweep(cells, path, engine=engine, steps=150, retries=3, device="cpu", on_unit=on_unit)
    threads[0].join()
    assert (batch.done, batch.failures) == (30, ())
    with Store(path, "read") as store:
        store.check()
        held = [(item.record["k"], item.record["d"], item.record["seed"]) for item in store.records("pack")]
    assert sorted(held) == sorted((cell.k, cell.d, cell.seed) for cell in cells)
    assert sweep(cells, path, engine="inline", steps=150).skipped == 30
