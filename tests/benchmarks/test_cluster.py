"""The survey of made checkpoints on a Ray cluster of which a node dies, in little; and that a wrong store is seen."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("ray", reason="the extra [ray] is not installed")
pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parents[2]

COMPARE = """
import shutil, sqlite3, sys
sys.path.insert(0, "benchmarks")
from pathlib import Path
import cluster
place = Path(sys.argv[1])
models = cluster.make(place / "models", 3)
one, many = place / "one.sqlite", place / "many.sqlite"
cluster.survey(models, one, "inline")
def said(change):
    shutil.copy(one, many)
    with sqlite3.connect(many) as db:
        db.execute(change)
    db.close()
    return cluster.compare(one, many, models)
import json
print(json.dumps([
    said("SELECT 1"),
    said("DELETE FROM results WHERE key = (SELECT max(key) FROM results WHERE key LIKE '%-embedding')"),
    said("UPDATE results SET record = json_set(record, '$.mean', 0.5) WHERE rowid = 1"),
]))
"""


def run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *command], cwd=ROOT, capture_output=True, text=True, timeout=240)


def test_a_node_dies_and_every_row_is_there_once():
    done = run("benchmarks/cluster.py", "--checkpoints", "12", "--nodes", "2")
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert "12 checkpoints, 15 rows" in done.stdout
    assert "Failures: 0." in done.stdout
    assert "Checked: every row once, and equal to that of the one worker." in done.stdout


def test_a_missing_or_another_row_is_seen(tmp_path):
    done = run("-c", COMPARE, str(tmp_path))
    assert done.returncode == 0, done.stderr
    right, missing, other = json.loads(done.stdout)
    assert right == []
    assert missing == ["2 embeddings of 2 models stored, 3 asked for", "1 keys are in one store only"]
    assert other == ["1 rows differ, in mean"]
