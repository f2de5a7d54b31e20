"""The curves over n, d and k: exponents by hand, and the small run as a whole."""

from __future__ import annotations

import csv
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture
def scale(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import scale

    yield scale
    for name in ("scale", "measured"):
        sys.modules.pop(name, None)


def test_exponents(scale):
    sizes = [10, 20, 40, 80]
    assert scale.exponent(sizes, [99, *(3 * size**1.5 for size in sizes[1:])]) == pytest.approx(1.5)  # the large end
    assert scale.exponent(sizes, [1, 2, 0, 4]) != scale.exponent(sizes, [1, 2, 0, 4])  # nan
    curve = scale.QUICK[0]
    points = [
        scale.Point("measure", "n", n, 64, (n / 1024) ** power, 10**6, 10**6) for power in (2,) for n in curve.values
    ]
    assert scale.above_stated(curve, points)
    assert not scale.above_stated(curve, [one._replace(seconds=one.count / 1024) for one in points])
    line = scale.table({curve: points}).splitlines()[-1]
    assert line == "| measure | n | 1024 | 4096 | d = 64 | 1 to 16 | 2.00 | 1 (n d² a pass) | 1 to 1 | 1 to 1 |"


@pytest.mark.slow
def test_the_small_run(tmp_path):
    command = [sys.executable, str(BENCHMARKS / "scale.py"), "--quick", "--out", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    rows = list(csv.DictReader((tmp_path / "scale.csv").open()))
    assert [(row["job"], row["n_or_k"]) for row in rows] == [
        *(("measure", n) for n in ("1024", "4096")), *(("pack", k) for k in ("250", "1000")),
    ]  # fmt: skip
    assert all(float(row["seconds"]) > 0 for row in rows)
    assert (tmp_path / "scale.png").read_bytes().startswith(b"\x89PNG")
    assert done.stdout.count("\n| ") == 3
