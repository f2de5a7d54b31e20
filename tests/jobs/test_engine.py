"""The engine on this machine: order, isolation, retries, hung and killed workers, interrupts, orphans."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import engine_jobs as jobs
from repcap.errors import InputError, RepcapError
from repcap.jobs.engine import LOST, Report, Unit, parse_engine, run
from repcap.jobs.local import how_it_ended, share_gpus
from repcap.jobs.units import LOCAL_WORKERS, in_order
from repcap.numerics import cpu_count


class Sink:
    """Keeps what the engine hands on, and fails on anything that comes twice."""

    def __init__(self):
        self.results, self.faults = {}, {}

    def result(self, unit, value):
        assert unit.key not in self.results
        assert unit.key not in self.faults
        self.results[unit.key] = value

    def failure(self, unit, fault):
        assert unit.key not in self.results
        assert unit.key not in self.faults
        self.faults[unit.key] = fault


def go(worker, payloads, engine="local:2", **options):
    sink = Sink()
    units = [Unit(str(number), payload) for number, payload in enumerate(payloads)]
    report = run(units, worker, engine, on_result=sink.result, on_failure=sink.failure, **options)
    assert report.done == len(sink.results)
    assert report.failed == len(sink.faults)
    return sink, report


@pytest.mark.parametrize("engine", ["inline", "local:1", "local:2"])
def test_every_unit_once(engine):
    sink, report = go(jobs.square, range(50), engine)
    assert sink.results == {str(n): n * n for n in range(50)}
    assert report == Report(50, 0, 0)


@pytest.mark.parametrize("engine", ["inline", "local:1"])
def test_largest_first(engine, tmp_path):
    sizes = [3, 9, 1, 7, 9]
    units = [Unit(f"{n}", (tmp_path / "log", f"{size}-{n}"), size=size) for n, size in enumerate(sizes)]
    sink = Sink()
    run(units, jobs.order, engine, on_result=sink.result, on_failure=sink.failure)
    assert (tmp_path / "log").read_text().split() == ["9-1", "9-4", "7-3", "3-0", "1-2"]


@given(st.lists(st.floats(allow_nan=False), max_size=20))
def test_order_is_stable_and_complete(sizes):
    ordered = in_order([Unit(str(n), None, size=size) for n, size in enumerate(sizes)])
    assert [u.size for u in ordered] == sorted(sizes, reverse=True)
    for one, other in itertools.pairwise(ordered):
        assert one.size > other.size or int(one.key) < int(other.key)


@pytest.mark.parametrize("engine", ["inline", "local:2"])
def test_an_error_is_that_units_failure_only(engine):
    sink, _ = go(jobs.divide, [1, 0, 2, 4], engine)
    assert sink.results == {"0": 1.0, "2": 0.5, "3": 0.25}
    fault = sink.faults["1"]
    assert fault.error == "ZeroDivisionError"
    assert "division by zero" in fault.reason
    assert "engine_jobs" in fault.reason  # where it happened, for an error that is not of repcap's own


@pytest.mark.parametrize("engine", ["inline", "local:1"])
def test_errors_of_repcap_keep_their_line(engine):
    sink, _ = go(jobs.refuse, ["no such\nmodel"], engine)
    assert sink.faults["0"] == ("SourceError", "no such model")


def test_a_worker_that_dies_is_replaced_and_its_unit_tried_again(tmp_path):
    sink, report = go(jobs.die, [(tmp_path / "a", 0), (tmp_path / "b", 2), (tmp_path / "c", 1)], retries=2)
    assert sink.results == {"0": "alive", "1": "alive", "2": "alive"}
    assert report.lost == 3
    assert len((tmp_path / "b").read_text().split()) == 3


def test_a_unit_that_always_kills_its_worker_fails_alone(tmp_path):
    sink, report = go(jobs.die, [(tmp_path / "a", 99), (tmp_path / "b", 0), (tmp_path / "c", 0)], retries=1)
    assert sink.results == {"1": "alive", "2": "alive"}
    assert sink.faults["0"] == (LOST, "the worker was killed by SIGKILL: perhaps out of memory (2 tries)")
    assert report.lost == 2
    assert len((tmp_path / "a").read_text().split()) == 2


def test_a_hung_unit_is_killed_and_tried_again(tmp_path):
    payloads = [(tmp_path / "a", 1), (tmp_path / "b", 99), (tmp_path / "c", 0)]
    sink, _ = go(jobs.hang, payloads, retries=1, timeout=1.5)
    assert sink.results == {"0": "awake", "2": "awake"}
    assert sink.faults["1"] == (LOST, "no answer within 1.5 s (2 tries)")


def test_sys_exit_in_a_unit_is_a_failure_not_the_end():
    sink, report = go(jobs.leave, [3, 0], "local:1")
    assert {fault.error for fault in sink.faults.values()} == {"SystemExit"}
    assert report.lost == 0


def test_what_libraries_print_does_not_get_between_the_answers(capfd):
    sink, _ = go(jobs.chatter, range(5), "local:1")
    assert sink.results == {str(n): n for n in range(5)}
    out, err = capfd.readouterr()
    assert out == ""
    assert err.count("more noise") == 5


def test_results_larger_than_a_pipe():
    sink, _ = go(jobs.big, [1 << 23, 5], "local:2")
    assert [len(sink.results[key]) for key in "01"] == [1 << 23, 5]


def test_payloads_and_results_that_cannot_travel_fail_alone():
    sink, _ = go(jobs.square, [2, lambda: None, 3], "local:1")
    assert sink.results == {"0": 4, "2": 9}
    assert "cannot be sent" in sink.faults["1"].reason
    sink, _ = go(jobs.unpicklable, [1], "local:1")
    assert set(sink.faults) == {"0"}


def test_workers_share_the_processors(monkeypatch):
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    sink, _ = go(jobs.environment, [["OMP_NUM_THREADS"]], "local:1")
    assert sink.results["0"]["OMP_NUM_THREADS"] == str(cpu_count())
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    sink, _ = go(jobs.environment, [["OMP_NUM_THREADS", "MKL_NUM_THREADS"]], "local:1")
    assert sink.results["0"] == {"OMP_NUM_THREADS": "7", "MKL_NUM_THREADS": "7"}  # MKL goes by its own
    monkeypatch.setenv("MKL_NUM_THREADS", "3")
    sink, _ = go(jobs.environment, [["OMP_NUM_THREADS", "MKL_NUM_THREADS"]], "local:1")
    assert sink.results["0"] == {"OMP_NUM_THREADS": "7", "MKL_NUM_THREADS": "3"}


def test_each_worker_gets_its_gpus(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,7")
    sink, _ = go(jobs.environment, [["CUDA_VISIBLE_DEVICES"]] * 8, "local:8", gpus_per_unit=1)
    assert {value["CUDA_VISIBLE_DEVICES"] for value in sink.results.values()} == {"4", "7"}
    with pytest.raises(InputError, match="3 GPUs for each unit were asked for, this machine offers 2"):
        go(jobs.square, [1], gpus_per_unit=3)


@pytest.mark.parametrize(
    ("gpus", "workers", "each", "expected"),
    [
        ("0 1 2", 8, 1, ["0", "1", "2"]),
        ("0 1 2", 2, 1, ["0", "1"]),
        ("0 1 2", 8, 2, ["0,1"]),
        ("0", 8, 0.25, ["0"] * 4),
        ("0", 8, 0.4, ["0"] * 2),
        ("0 1", 8, 1 / 3, ["0"] * 3 + ["1"] * 3),
    ],
)
def test_gpu_shares(gpus, workers, each, expected):
    assert share_gpus(gpus.split(), workers, each) == expected


def test_no_more_units_are_in_flight_than_workers(tmp_path):
    """A slow writer holds the run back: while it is busy, no further units start."""
    started = []

    def slow_sink(unit, value):
        time.sleep(0.05)
        started.append(len((tmp_path / "log").read_text().split()))

    units = [Unit(str(n), (tmp_path / "log", n)) for n in range(20)]
    run(units, jobs.order, "local:2", on_result=slow_sink, on_failure=pytest.fail)
    # When the n-th result is written, at most n + 1 units (the other worker's) have been started.
    assert all(count <= number + 2 for number, count in enumerate(started))


def test_an_error_of_the_writer_ends_the_workers():
    pids = []

    def sink(unit, value):
        pids.append(value)
        if len(pids) == 3:
            raise OSError("disk full")

    units = [Unit(str(n), 0.05) for n in range(20)]
    with pytest.raises(OSError, match="disk full"):
        run(units, jobs.nap, "local:2", on_result=sink, on_failure=pytest.fail)
    assert len(pids) == 3
    for pid in set(pids):
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


# Bad input


@pytest.mark.parametrize("text", ["", "locall", "local:0", "local:-1", "local:x", "inline:2", "slurm", "local:²"])
def test_unknown_engines(text):
    with pytest.raises(InputError, match="unknown engine"):
        parse_engine(text)


def test_engine_specs():
    assert parse_engine("local").workers == min(cpu_count(), LOCAL_WORKERS)
    assert parse_engine("ray").address is None
    assert parse_engine("ray:ray://head:10001").address == "ray://head:10001"


def test_workers_that_cannot_be_imported_are_refused():
    def inner(x):
        return x

    for worker in (inner, lambda x: x, "square"):
        with pytest.raises(InputError, match="other processes can import"):
            go(worker, [1])


@pytest.mark.parametrize(
    "options",
    [{"retries": -1}, {"timeout": 0}, {"timeout": float("nan")}, {"gpus_per_unit": -1}, {"gpus_per_unit": 1.5}],
)
def test_options_out_of_range(options):
    with pytest.raises(InputError):
        go(jobs.square, [1], **options)


@pytest.mark.parametrize("timeout", [1e12, float("inf")])
def test_a_timeout_beyond_all_clocks_is_none(timeout):
    assert go(jobs.square, [3], timeout=timeout)[0].results == {"0": 9}


def test_repeated_keys():
    with pytest.raises(InputError, match="the key a"):
        run([Unit("a", 1), Unit("a", 2)], jobs.square, "inline", on_result=pytest.fail, on_failure=pytest.fail)


def test_nothing_to_do_starts_nothing():
    assert go(jobs.square, [])[1] == Report(0, 0, 0)


def test_workers_that_never_start_stop_the_run(monkeypatch):
    monkeypatch.setattr("repcap.jobs.local._BOOT", "import sys; sys.exit(5)")
    with pytest.raises(RepcapError, match="do not start: the worker ended with exit status 5"):
        go(jobs.square, [1, 2, 3])


def test_exit_codes_in_words():
    assert how_it_ended(-signal.SIGSEGV) == "the worker was killed by SIGSEGV"
    assert "signal 250" in how_it_ended(-250)


# The driver's own end

DRIVER = """
import sys
sys.path.insert(0, {tests!r})
import engine_jobs as jobs
from repcap.jobs.engine import Unit, run

def on_result(unit, value):
    print(value, flush=True)

# No `if __name__ == "__main__"`: workers must not run this file again.
run([Unit(str(n), {seconds}) for n in range({units})], jobs.nap, "local:2", on_result=on_result, on_failure=print)
print("end", flush=True)
"""


def driver(tmp_path, seconds, units, **options):
    script = tmp_path / "driver.py"
    script.write_text(DRIVER.format(tests=str(Path(__file__).parents[1]), seconds=seconds, units=units))
    return subprocess.Popen(
        [sys.executable, script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options
    )


def gone(pid, within=10.0):
    """Whether the process ends within so many seconds (an ended process that nobody waits for is gone too)."""
    end = time.monotonic() + within
    while time.monotonic() < end:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except OSError:
            return True
        time.sleep(0.02)
    return False


def test_a_script_without_a_main_guard(tmp_path):
    process = driver(tmp_path, 0, 4)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, "")
    assert out.split()[-1] == "end"
    assert len(out.split()) == 5


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks at processes through /proc")
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_no_worker_outlives_its_driver(tmp_path, how):
    process = driver(tmp_path, 0.3, 1000, start_new_session=True)
    pids = {int(process.stdout.readline()) for _ in range(4)}
    if how == signal.SIGINT:
        os.killpg(process.pid, how)  # as a terminal sends it: to driver and workers
    else:
        process.send_signal(how)
    _, err = process.communicate(timeout=30)
    assert all(gone(pid) for pid in pids)
    if how == signal.SIGINT:
        assert err.count("Traceback") == 1  # the driver's KeyboardInterrupt; the workers say nothing
        assert err.rstrip().endswith("KeyboardInterrupt")
