"""How fast and how lean the exact pass is, against plain matrix products and against all pairs.

    python benchmarks/moments.py            128256 x 4096 bf16 (1.05 GB, removed afterwards); some minutes on two cores
    python benchmarks/moments.py --quick    16032 x 1024; seconds

Everything is timed in this one run, and the products in turns with the pass, so that a busy machine slows both sides.
"""

from __future__ import annotations

import argparse
import json
import struct
import tempfile
from collections.abc import Callable
from pathlib import Path

import torch
from measured import Measured, PeakMemory, seconds_of

from repcap.geometry.epsilon.moments import Moments
from repcap.geometry.epsilon.passes import Collector, first_pass
from repcap.geometry.measurement.measuring import MeasureOptions, measure_matrix
from repcap.geometry.rows.reader import RowReader, default_block_rows
from repcap.geometry.rows.unit_rows import Normaliser
from repcap.matrix import Matrix, TensorMatrix
from repcap.sources import open_source

PRODUCTS = "plain float32 products of 2 n d² operations"
EVERY_COSINE = "forming every cosine"


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


def side_by_side(matrix: Matrix) -> tuple[float, float]:
    """Seconds of the whole pass and of plain products, in turns over eighths of the rows."""
    reader = reader_of(matrix)
    block, out = torch.randn((min(4096, matrix.count), matrix.dim)), torch.empty((matrix.dim, matrix.dim))
    plain_products(len(block), block, out)  # the first call sets up threads and buffers
    collector = Collector(reader, matrix.count, find_repeats=True)
    passed = plain = 0.0

    def collect(rows: torch.Tensor) -> None:
        for units in reader.replaced(rows=rows).units():
            collector.add(units)

    for rows in reader.rows.split(-(-matrix.count // 8)):
        passed += seconds_of(lambda rows=rows: collect(rows))
        plain += seconds_of(lambda rows=rows: plain_products(len(rows), block, out))
    return passed + seconds_of(lambda: collector.result().moments().epsilon()), plain


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


def stated_bytes(rows: int, dim: int) -> int:
    """What `measure_matrix` says it takes: G and two copies, three blocks of rows, 200 bytes a row."""
    return 3 * 8 * dim**2 + 3 * 4 * dim * default_block_rows(dim) + 200 * rows


def whole(matrix: Matrix) -> Callable[[], object]:
    return lambda: measure_matrix(matrix, MeasureOptions(device="cpu"))


def against_products(rows: int, dim: int) -> list[Measured]:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "synthetic.safetensors"
        write_bf16(path, rows, dim)
        with open_source(f"{path}::embedding") as matrix, PeakMemory() as memory:
            everything = seconds_of(whole(matrix))
        with open_source(f"{path}::embedding") as matrix:
            passed, plain = side_by_side(matrix)
    size = f"{rows} x {dim} bf16"
    return [
        Measured("one pass: mean, std, epsilon", size, passed, plain, PRODUCTS),
        Measured(
            "measure: standard error and all", size, everything, plain, PRODUCTS,
            memory=memory.used, bound=stated_bytes(rows, dim),
        ),
    ]  # fmt: skip


def against_all_pairs(rows: int, dim: int) -> list[Measured]:
    stored = torch.randn((rows, dim), generator=torch.Generator().manual_seed(1)) + 0.05
    moments = one_pass(TensorMatrix(stored))
    passed = seconds_of(lambda: one_pass(TensorMatrix(stored)), 3)
    everything = seconds_of(whole(TensorMatrix(stored)))
    found: list[tuple[float, float]] = []
    direct = seconds_of(lambda: found.append(all_pairs(stored)))
    mean, std = found[0]
    assert abs(moments.mean - mean) < 1e-7, (moments.mean, mean)
    assert abs(moments.std - std) < 1e-7, (moments.std, std)
    size = f"{rows} x {dim} float32"
    return [
        Measured("one pass: mean, std, epsilon", size, passed, reference=direct, reference_is=EVERY_COSINE),
        Measured("measure: standard error and all", size, everything, reference=direct, reference_is=EVERY_COSINE),
    ]


def rows(quick: bool) -> list[Measured]:
    return [
        *against_products(16032 if quick else 128256, 1024 if quick else 4096),
        *against_all_pairs(8192 if quick else 32768, 512 if quick else 1024),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="1/64 of the work")
    parser.add_argument("--threads", type=int, help="processors to use (default: all)")
    options = parser.parse_args()
    if options.threads:
        torch.set_num_threads(options.threads)
    print(*rows(options.quick), sep="\n")


if __name__ == "__main__":
    main()
