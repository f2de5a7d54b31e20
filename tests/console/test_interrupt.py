"""SIGTERM and SIGHUP end the program as Ctrl-C does, and tools/reliability.py finds nothing lost."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="signals and /proc of Linux")


def started(out, *before):
    """A table of many rows; returns when the first are in its file."""
    words = [*before, sys.executable, "-m", "repcap", "table", "--d", "2..9000", "--eps", "0.3", "--out", str(out)]
    # Tests that run under nohup hand it on: a new process begins with the default.
    process = subprocess.Popen(
        words,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL),
    )
    end = time.monotonic() + 60
    while not out.exists() and process.poll() is None and time.monotonic() < end:
        time.sleep(0.01)
    return process


@pytest.mark.parametrize(
    ("number", "code", "said"),
    [(signal.SIGTERM, 143, "terminated"), (signal.SIGHUP, 129, "the terminal was closed")],
)
def test_a_signal_is_one_line_and_its_code(tmp_path, number, code, said):
    process = started(tmp_path / "a.csv")
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (code, "")
    assert err.splitlines()[-1] == f"repcap: error: {said}"
    assert "Traceback" not in err
    assert [one.name for one in tmp_path.iterdir()] == ["a.csv"]


def test_nohup_is_respected(tmp_path):
    process = started(tmp_path / "a.csv", "nohup")
    process.send_signal(signal.SIGHUP)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.5)
    process.terminate()
    assert process.wait(60) == 143
    process.stdout.close()
    process.stderr.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        ("--commands", "table", *(f"--only={name}" for name in ("SIG", "full", "read", "two", "clock", "row", "NUL"))),
        ("--commands", "sweep", "--only", "KILL"),
    ],
    ids=["table", "sweep"],
)
def test_faults_cost_nothing(words):
    command = [sys.executable, str(ROOT / "tools" / "reliability.py"), "--tries", "1", "--rows", "5", *words]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(command, capture_output=True, text=True, timeout=500, check=False, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 problems, 0 rows lost" in done.stdout
