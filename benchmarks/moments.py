"""How fast and how lean the exact pass is, against plain matrix products and against all pairs.

    python benchmarks/moments.py            128256 x 4096 bf16 (1.05 GB, removed afterwards); some minutes on two cores
    python benchmarks/moments.py --small    16032 x 1024; seconds

Everything is timed in this one run, and the products in turns with the pass, so that a busy machine slows both sides.
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
from typing import NamedTuple

import torch

from repcap.geometry.epsilon.moments import Moments
from repcap.geometry.epsilon.passes import Collector, first_pass
from repcap.geometry.measurement.measuring import MeasureOptions, measure_matrix
from repcap.geometry.rows.reader import RowReader, default_block_rows
from repcap.geometry.rows.unit_rows import Normaliser
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


class Seconds(NamedTuple):
    """Time on the wall, and of all processors together (which other programs disturb less)."""

    wall: float = 0.0
    cpu: float = 0.0

    def plus(self, other: Seconds) -> Seconds:
        return Seconds(self.wall + other.wall, self.cpu + other.cpu)

    def over(self, other: Seconds) -> str:
        return f"{self.wall / other.wall:.3f} (processor time {self.cpu / other.cpu:.3f})"

    def __str__(self) -> str:
        return f"{self.wall:8.2f} s (processors {self.cpu:.2f} s)"


def timed(work: Callable[[], object]) -> Seconds:
    started = time.perf_counter(), time.process_time()
    work()
    return Seconds(time.perf_counter() - started[0], time.process_time() - started[1])


def reader_of(matrix: Matrix) -> RowReader:
    block = default_block_rows(matrix.dim)
    return RowReader(matrix, torch.arange(matrix.count), torch.device("cpu"), torch.float32, block)


def one_pass(matrix: Matrix) -> Moments:
    """Reading, float32, unit rows, repeats, G: everything that mean, std and epsilon need."""
    return first_pass(reader_of(matrix)).moments()


def plain_products(rows: int, block: torch.Tensor, out: torch.Tensor) -> None:
    """Full float32 products of 2 n d^2 flops for n = `rows`, operands in memory, results discarded."""
    for start in range(0, rows, len(block)):
        part = block[: min(len(block), rows - start)]
        torch.mm(part.T, part, out=out)


def side_by_side(matrix: Matrix) -> tuple[Seconds, Seconds]:
    """Seconds of the whole pass and of plain products, in turns over eighths of the rows."""
    reader = reader_of(matrix)
    block, out = torch.randn((min(4096, matrix.count), matrix.dim)), torch.empty((matrix.dim, matrix.dim))
    plain_products(len(block), block, out)  # the first call sets up threads and buffers
    collector = Collector(reader, matrix.count, find_repeats=True)
    passed = plain = Seconds()

    def collect(rows: torch.Tensor) -> None:
        for units in reader.replaced(rows=rows).units():
            collector.add(units)

    for rows in reader.rows.split(-(-matrix.count // 8)):
        passed = passed.plus(timed(lambda rows=rows: collect(rows)))
        plain = plain.plus(timed(lambda rows=rows: plain_products(len(rows), block, out)))
    return passed.plus(timed(lambda: collector.result().moments().epsilon())), plain


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
        print(f"{rows} x {dim} bf16, {path.stat().st_size / 1e9:.2f} GB, {torch.get_num_threads()} threads", flush=True)
        with PeakMemory() as memory, open_source(f"{path}::embedding") as matrix:
            whole = timed(lambda: measure_matrix(matrix, MeasureOptions(device="cpu")))
        print(f"  measure, standard error and all         {whole}, peak RssAnon {memory.peak / 1e6:.0f} MB")
        with open_source(f"{path}::embedding") as matrix:
            passed, plain = side_by_side(matrix)
    print(f"  one pass: read, unit rows, repeats, G   {passed}")
    print(f"  plain float32 products of 2 n d^2 flops {plain}, in turns with the pass")
    print(f"  ratio: one pass {passed.over(plain)}, aim: at most 0.75; measure {whole.over(plain)}", flush=True)


def against_all_pairs(rows: int, dim: int) -> None:
    stored = torch.randn((rows, dim), generator=torch.Generator().manual_seed(1)) + 0.05
    moments = one_pass(TensorMatrix(stored))
    passed = min(timed(lambda: one_pass(TensorMatrix(stored))) for _ in range(3))
    whole = timed(lambda: measure_matrix(TensorMatrix(stored), MeasureOptions(device="cpu")))
    found: list[tuple[float, float]] = []
    direct = timed(lambda: found.append(all_pairs(stored)))
    mean, std = found[0]
    print(f"{rows} x {dim} float32: mean and std over all pairs")
    print(f"  one pass           {passed}\n  measure            {whole}\n  every cosine formed{direct}")
    print(f"  times faster: one pass {direct.over(passed)}, aim: at least 25; measure {direct.over(whole)}")
    print(f"  difference: mean {moments.mean - mean:+.1e}, std {moments.std - std:+.1e}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--small", action="store_true", help="1/64 of the work")
    parser.add_argument("--threads", type=int, help="processors to use (default: all)")
    options = parser.parse_args()
    small = options.small
    if options.threads:
        torch.set_num_threads(options.threads)
    against_products(16032 if small else 128256, 1024 if small else 4096)
    against_all_pairs(8192 if small else 32768, 512 if small else 1024)


if __name__ == "__main__":
    main()
