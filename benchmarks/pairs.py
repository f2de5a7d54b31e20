"""All pairwise cosines against their floor: the symmetric half of one float32 product, n^2 d operations.

    python benchmarks/pairs.py [--small]

The floor is timed in the same run: a plain torch GEMM of the same inner dimension, in cache-sized output blocks, scaled
to n^2 d operations. Prints the ratio of `count_pairs` and of `nearest_rows` to it, and the peak anonymous memory. Mean
and spread come first, in closed form, so that pairs beyond epsilon can be counted: they are timed apart.
"""

from __future__ import annotations

import argparse
import threading
import time
from pathlib import Path

import torch

from repcap.geometry.epsilon.spread import spread_of
from repcap.geometry.nearest.neighbours import nearest_rows
from repcap.geometry.pairs.count import count_pairs
from repcap.geometry.pairs.histogram import Wanted
from repcap.geometry.rows.reader import plain_reader
from repcap.matrix import TensorMatrix


def gemm_rate(d: int, rows: int = 8192) -> float:
    """float32 operations a second of a plain (rows, d) x (d, rows) product, the best of five."""
    a = torch.randn(rows, d)
    out = torch.empty(rows, rows)
    best = float("inf")
    for _ in range(5):
        start = time.perf_counter()
        torch.mm(a, a.mT, out=out)
        best = min(best, time.perf_counter() - start)
    return 2 * rows * rows * d / best


class Memory:
    """Peak anonymous resident memory of this process while the block runs, in MB, sampled (Linux only)."""

    def __enter__(self) -> Memory:
        self.start = self.peak = self._now()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stop.wait(0.02):
            self.peak = max(self.peak, self._now())

    @staticmethod
    def _now() -> float:
        status = Path("/proc/self/status")
        if not status.exists():
            return 0.0
        line = next(line for line in status.read_text().splitlines() if line.startswith("RssAnon"))
        return int(line.split()[1]) / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true", help="8192 rows: seconds")
    n = 8192 if parser.parse_args().small else 49152
    d = 576
    print(f"{n} x {d} bfloat16 rows, {torch.get_num_threads()} threads, torch {torch.__version__}")
    rows = torch.randn(n, d, generator=torch.Generator().manual_seed(0)).bfloat16()
    floor = n * n * d / gemm_rate(d)
    print(f"floor: {floor:.2f} s for n^2 d operations at the measured GEMM rate")
    start = time.perf_counter()
    spread = spread_of(plain_reader(TensorMatrix(rows), "cpu"), "all", 2.0)
    assert spread is not None
    print(f"mean and spread: {time.perf_counter() - start:.2f} s")
    wanted = Wanted(10, spread.mean, spread.epsilon)
    for name, scan in (
        ("count_pairs", lambda matrix: count_pairs(matrix, wanted=wanted, device="cpu")),
        ("nearest_rows", lambda matrix: nearest_rows(matrix, epsilon=spread.epsilon, device="cpu")),
    ):
        with Memory() as memory:
            start = time.perf_counter()
            scan(TensorMatrix(rows))
            took = time.perf_counter() - start
        print(
            f"{name}: {took:.2f} s, {took / floor:.2f} x the floor ({floor / took:.0%} of the GEMM rate), "
            f"peak memory over the rows {memory.peak - memory.start:.0f} MB"
        )
    again = n * n * d / gemm_rate(d)
    print(f"floor timed again afterwards: {again:.2f} s (a large difference means a busy machine)")


if __name__ == "__main__":
    main()
