"""The embedding of a 2 GB checkpoint at a Hub on loopback: bytes over the wire, time, memory.

    python benchmarks/remote.py [--latency SECONDS]

The server (of the tests) is in this process and the reader in one of its own, so its memory is its own. `--latency` is
added to every 64 kB that the server sends, as a far server would. Read: a sample of 4000 rows, the rest of the matrix,
and all of it again from the cache.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from hubmade import environment, sparse_shard
from hubserver import HubServer

ROWS, DIM, SIZE = 31_250, 1024, 2_000_000_000

READ = """
import sys
from repcap.sources import open_source
from pathlib import Path
def peak():
    status = Path("/proc/self/status")
    if not status.exists():
        return 0
    return int(next(line.split()[1] for line in status.read_text().splitlines() if line.startswith("VmHWM")))
import torch
before = peak()
with open_source("org/large") as matrix:
    n = int(sys.argv[1]) or matrix.count
    step = matrix.count // 100
    spans = [(0, n)] if n == matrix.count else [(i * step, i * step + n // 100) for i in range(100)]
    matrix.prefetch(spans)
    for start, stop in spans:
        for at in range(start, stop, 4096):
            matrix.read(at, min(at + 4096, stop))
print(before, peak())
"""


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--latency", type=float, default=0.0)
    latency = options.parse_args().latency
    with tempfile.TemporaryDirectory() as made, HubServer() as hub:
        home = Path(made)
        header = sparse_shard(home / "model.safetensors", ROWS, DIM, SIZE)
        hub.add("org/large", {"model.safetensors": home / "model.safetensors", "config.json": b"{}"})
        if latency:
            hub.fault("slow", delay=latency, times=None, min_length=4096)
        print(f"embedding {ROWS * DIM * 2 / 1e6:.1f} MB of {SIZE / 1e6:.0f} MB, header {header} bytes")
        for label, rows in (("4000 rows in 100 blocks", 4000), ("the rest", 0), ("again", 0)):
            hub.forget()
            began = time.perf_counter()
            command = [sys.executable, "-c", READ, str(rows)]
            variables = {**os.environ, **environment(hub, home)}
            done = subprocess.run(command, env=variables, capture_output=True, text=True, check=True)
            seconds = time.perf_counter() - began
            before, peak = (int(word) / 1000 for word in done.stdout.split())
            print(
                f"{label:24} {hub.sent / 1e6:8.2f} MB in {len(hub.requests):3} requests, {seconds:5.1f} s, "
                f"peak {peak:.0f} MB ({before:.0f} MB of it torch)"
            )


if __name__ == "__main__":
    main()
