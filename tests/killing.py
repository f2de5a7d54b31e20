"""Runs a driver again and again, killing it at random moments, and looks at the store in between."""

from __future__ import annotations

import contextlib
import random
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

from repcap.jobs.store import Store


def stored(path):
    """Number of results in a store that another process is writing; 0 while there is none."""
    try:
        with contextlib.closing(sqlite3.connect(f"{Path(path).as_uri()}?mode=ro", uri=True)) as db:
            return db.execute("SELECT count(*) FROM results").fetchone()[0]
    except sqlite3.OperationalError:
        return 0


def kill_at_random(script, store, environment, *, times, most, seed):
    """Start `script`, let it store 0 to `most` new results and a random instant more, SIGKILL it; `times` times.

    After each kill the store must pass SQLite's check and hold all that it held before. Returns the last count.
    """
    rng = random.Random(seed)
    before: set[str] = set()
    for _ in range(times):
        process = subprocess.Popen([sys.executable, script], env=environment, stdout=subprocess.DEVNULL)
        goal = len(before) + rng.randint(1, most)
        end = time.monotonic() + 120
        while stored(store) < goal and process.poll() is None and time.monotonic() < end:
            time.sleep(0.002)
        time.sleep(rng.uniform(0.0, 0.03))
        assert process.poll() is None, f"the driver ended by itself with {process.returncode}"
        process.send_signal(signal.SIGKILL)
        process.wait()
        with Store(store, "read") as opened:
            opened.check()
            now = {result.key for result in opened.records()}
        assert before <= now
        assert len(now) >= goal
        before = now
    return len(before)
