"""What every hostile file has to bear with."""

from __future__ import annotations

import resource
import sys
import time

import pytest


@pytest.fixture(autouse=True)
def quick():
    """Whatever the file says: an answer within seconds, and no gigabyte of memory."""
    before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.monotonic()
    yield
    assert time.monotonic() - start < 10
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < (1 << 30 if sys.platform == "darwin" else 1 << 20)  # bytes there, kilobytes here
