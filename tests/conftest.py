"""What every test shares: one profile for hypothesis, no network, a runner for the command line."""

from __future__ import annotations

import dataclasses
import json
import os
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

pytest_plugins = ("hubmade",)

os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
if "PYTEST_XDIST_WORKER" in os.environ:
    # A worker a core: two threads each, and those of the programs that they start, would wait for one another.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
settings.register_profile(
    "repcap", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.load_profile("repcap")


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What a run of the command line left behind."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@pytest.fixture
def repcap(capsys: pytest.CaptureFixture[str]):
    """Run the command line in this process: `repcap("measure", path, "--json").json`."""
    from repcap.cli import run

    def call(*argv: object) -> Outcome:
        capsys.readouterr()
        code = run([str(word) for word in argv])
        out, err = capsys.readouterr()
        return Outcome(code, out, err)

    return call
