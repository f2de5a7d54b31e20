"""How fast and how lean the exact pass is, against plain matrix products and against all pairs.

    python benchmarks/moments.py            128256 x 4096 bf16 (1.05 GB, removed afterwards); some minutes on two cores
    python benchmarks/moments.py --small    16032 x 1024; seconds

Everything is timed in this one run, so that a busy machine slows both sides.
"""

from __future__ import annotations

import argparse
import json
import struct
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import torch

from repcap.geometry.measure import measure_matrix
from repcap.geometry.moments import Moments
from repcap.geometry.passes import first_pass
from repcap.geometry.reader import RowReader, default_block_rows
from repcap.geometry.rows import Normaliser
from repcap.matrix import Matrix, TensorMatrix
from repcap.sources import open_source


class PeakMemory:
    """Samples the process's anonymous memory (RssAnon of Linux) every 10 ms."""

    def __init__(self) -> None:
        self.peak = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> PeakMemory:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stop.wait(0.01):
            self.peak = max(self.peak, anonymous_bytes())


def anonymous_bytes() -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon"):
            return int(line.split()[1]) * 1024
    return 0


def write_bf16(path: Path, rows: int, dim: int) -> None:
    """A safetensors file with one bf16 matrix, written block by block."""
    header = {"embedding": {"dtype": "BF16", "shape": [rows, dim], "data_offsets": [0, 2 * rows * dim]}}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    generator = torch.Generator().manual_seed(0)
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for start in range(0, rows, 2048):
            block = torch.randn((min(2048, rows - start), dim), generator=generator) + 0.05
            file.write(block.bfloat16().view(torch.uint8).numpy().tobytes())


def timed(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def reader_of(matrix: Matrix) -> RowReader:
    block = default_block_rows(matrix.dim)
    return RowReader(matrix, torch.arange(matrix.count), torch.device("cpu"), torch.float32, block)


def one_pass(matrix: Matrix) -> Moments:
    """Reading, float32, unit rows, repeats, G: everything that mean, std and epsilon need."""
    return first_pass(reader_of(matrix)).moments()


def plain_products(rows: int, dim: int) -> float:
    """Seconds that full float32 products of the same 2 n d^2 flops take, operands in memory, result discarded."""
    block = torch.randn((min(rows, 4096), dim))
    out = torch.empty((dim, dim))
    torch.mm(block.T, block, out=out)
    whole, rest = divmod(rows, len(block))

    def work() -> None:
        for _ in range(whole):
            torch.mm(block.T, block, out=out)
        if rest:
            torch.mm(block[:rest].T, block[:rest], out=out)

    return timed(work)


def all_pairs(rows: torch.Tensor) -> tuple[float, float]:
    """Mean and std the direct way: every cosine is formed, in blocks of rows against all rows."""
    units = Normaliser(torch.float32)(rows, torch.arange(len(rows))).units
    total = square = 0.0
    for start in range(0, len(units), 2048):
        cosines = units[start : start + 2048] @ units.T
        here = torch.arange(len(cosines))
        cosines[here, start + here] = 0.0
        total += float(cosines.sum(dtype=torch.float64))
        square += float(cosines.square_().sum(dtype=torch.float64))
    pairs = len(units) * (len(units) - 1)
    mean = total / pairs
    return mean, (square / pairs - mean**2) ** 0.5


def against_products(rows: int, dim: int) -> None:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "synthetic.safetensors"
        write_bf16(path, rows, dim)
        print(f"{rows} x {dim} bf16, {path.stat().st_size / 1e9:.2f} GB, {torch.get_num_threads()} threads")
        with PeakMemory() as memory, open_source(f"{path}::embedding") as matrix:
            passed = timed(lambda: one_pass(matrix))
        print(f"  one pass (read, unit rows, repeats, G)  {passed:8.2f} s   peak RssAnon {memory.peak / 1e6:.0f} MB")
        before = plain_products(rows, dim)
        with PeakMemory() as memory, open_source(f"{path}::embedding") as matrix:
            whole = timed(lambda: measure_matrix(matrix, device="cpu"))
        print(f"  measure (with standard error and all)   {whole:8.2f} s   peak RssAnon {memory.peak / 1e6:.0f} MB")
        plain = (before + plain_products(rows, dim)) / 2
    print(f"  plain float32 products of 2 n d^2 flops {plain:8.2f} s")
    print(f"  ratio: one pass {passed / plain:.3f}, measure {whole / plain:.3f}   (aim: at most 0.75)")


def against_all_pairs(rows: int, dim: int) -> None:
    stored = torch.randn((rows, dim), generator=torch.Generator().manual_seed(1)) + 0.05
    moments = one_pass(TensorMatrix(stored))
    passed = min(timed(lambda: one_pass(TensorMatrix(stored))) for _ in range(3))
    whole = timed(lambda: measure_matrix(TensorMatrix(stored), device="cpu"))
    started = time.perf_counter()
    mean, std = all_pairs(stored)
    direct = time.perf_counter() - started
    print(f"{rows} x {dim} float32: mean and std over all pairs")
    print(f"  one pass {passed:.3f} s, measure {whole:.3f} s, every cosine formed {direct:.2f} s")
    print(f"  times faster: one pass {direct / passed:.1f}, measure {direct / whole:.1f}   (aim: at least 25)")
    print(f"  difference: mean {moments.mean - mean:+.1e}, std {moments.std - std:+.1e}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--small", action="store_true", help="1/64 of the work")
    small = parser.parse_args().small
    against_products(16032 if small else 128256, 1024 if small else 4096)
    against_all_pairs(8192 if small else 32768, 512 if small else 1024)


if __name__ == "__main__":
    main()
