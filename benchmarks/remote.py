"""The embedding of a 2 GB checkpoint at a Hub on loopback: bytes over the wire, time, memory.

    python benchmarks/remote.py [--latency SECONDS] [--quick]

The server (of the tests) is in this process and the reader in one of its own, so its memory is its own. `--latency` is
added to every 64 kB that the server sends, as a far server would. Read: a sample of 4000 rows, the rest of the matrix,
all of it again from the cache, and all of it at once into another cache.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path
from typing import NamedTuple

from measured import Measured, seconds_of

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from hubmade import environment, sparse_shard
from hubserver import HubServer

ROWS, DIM, SIZE = 31_250, 1024, 2_000_000_000
EMBEDDING = 2 * ROWS * DIM

READ = """
import sys
import time
from repcap.sources import open_source
from pathlib import Path
def peak():
    status = Path("/proc/self/status")
    if not status.exists():
        return 0
    return int(next(line.split()[1] for line in status.read_text().splitlines() if line.startswith("VmHWM")))
import torch
before, began = peak(), time.perf_counter()
with open_source("org/large") as matrix:
    n = int(sys.argv[1]) or matrix.count
    step = matrix.count // 100
    spans = [(0, n)] if n == matrix.count else [(i * step, i * step + n // 100) for i in range(100)]
    matrix.prefetch(spans)
    for start, stop in spans:
        for at in range(start, stop, 4096):
            matrix.read(at, min(at + 4096, stop))
print(time.perf_counter() - began, before, peak())
"""


class Reading(NamedTuple):
    """What one process read: bytes over the wire, requests, seconds, peak bytes in all and of them torch."""

    label: str
    sent: int
    requests: int
    seconds: float
    peak: int
    torch: int


def get(url: str) -> None:
    """Fetches a whole file with plain Python and drops it."""
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(url) as answer:
        while answer.read(1 << 20):
            pass


def study(size: int, latency: float = 0.0) -> tuple[list[Reading], float, float]:
    """What each reading took; seconds of one plain request for as many bytes as the embedding has, and for the file."""
    found = []
    cases = (("4000 rows in 100 blocks", 4000, ""), ("the rest", 0, ""), ("again", 0, ""), ("all at once", 0, "2"))
    with tempfile.TemporaryDirectory() as made, HubServer() as hub:
        home = Path(made)
        sparse_shard(home / "model.safetensors", ROWS, DIM, size)
        files = {"model.safetensors": home / "model.safetensors", "config.json": b"{}", "plain.bin": bytes(EMBEDDING)}
        hub.add("org/large", files)
        if latency:
            hub.fault("slow", delay=latency, times=None, min_length=4096)
        for label, rows, cache in cases:
            hub.forget()
            command = [sys.executable, "-c", READ, str(rows)]
            variables = {**os.environ, **environment(hub, home / f"cache{cache}")}
            done = subprocess.run(command, env=variables, capture_output=True, text=True, check=True)
            seconds, torch, peak = done.stdout.split()
            found.append(
                Reading(label, hub.sent, len(hub.requests), float(seconds), 1024 * int(peak), 1024 * int(torch))
            )
        place = f"{hub.endpoint}/org/large/resolve/main"
        least, whole = (seconds_of(lambda n=name: get(f"{place}/{n}")) for name in ("plain.bin", "model.safetensors"))
    return found, least, whole


def rows(quick: bool) -> list[Measured]:
    size = SIZE // 10 if quick else SIZE
    found, least, whole = study(size)
    sample, rest, again, once = found
    of = f"{EMBEDDING / 1e6:.0f} MB of {size / 1e9:g} GB"
    return [
        Measured(
            "far checkpoint, 4000 rows: bytes", of, sample.sent / 1e6, 4000 * 2 * DIM / 1e6, "the bytes of the rows",
            size / 1e6, "the whole file", unit="MB",
        ),
        Measured(
            "far checkpoint, embedding: bytes", of, (sample.sent + rest.sent) / 1e6, EMBEDDING / 1e6,
            "the bytes of the embedding", size / 1e6, "the whole file", unit="MB",
        ),
        Measured(
            "far checkpoint, embedding: time", f"{of}, loopback", once.seconds, least,
            "one plain request for its bytes", whole, "a plain download of the file", memory=once.peak - once.torch,
        ),
        Measured(
            "far checkpoint, from the cache: time", f"{of}, {again.sent / 1e6:.2f} MB sent", again.seconds,
            reference=once.seconds, reference_is="the first reading",
        ),
    ]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--latency", type=float, default=0.0)
    parser.add_argument("--quick", action="store_true", help="a checkpoint of 200 MB")
    options = parser.parse_args()
    size = SIZE // 10 if options.quick else SIZE
    print(f"embedding {EMBEDDING / 1e6:.1f} MB of {size / 1e6:.0f} MB")
    for one in study(size, options.latency)[0]:
        print(
            f"{one.label:24} {one.sent / 1e6:8.2f} MB in {one.requests:3} requests, {one.seconds:5.1f} s, "
            f"peak {one.peak / 1e6:.0f} MB ({one.torch / 1e6:.0f} MB of it torch)"
        )


if __name__ == "__main__":
    main()
