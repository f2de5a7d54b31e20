"""All pairwise cosines against their floor: the symmetric half of one float32 product, n^2 d operations.

    python benchmarks/pairs.py [--quick]

The floor is timed in the same run: a plain torch GEMM of the same inner dimension, in cache-sized output blocks, scaled
to n^2 d operations, and once more at the end (a large difference means a busy machine). The reference is what one
writes with torch: blocks of rows against all rows, then torch.histc, or the largest of each row. Mean and spread come
first, in closed form, so that pairs beyond epsilon can be counted: they are timed apart.
"""

from __future__ import annotations

import argparse

import torch
from measured import Measured, PeakMemory, seconds_of

from repcap.geometry.epsilon.spread import spread_of
from repcap.geometry.nearest.neighbours import nearest_rows
from repcap.geometry.pairs.blocks import MEMORY, PANEL
from repcap.geometry.pairs.count import count_pairs
from repcap.geometry.pairs.histogram import Wanted
from repcap.geometry.rows.reader import plain_reader
from repcap.matrix import TensorMatrix

FLOOR = "n² d operations at the rate of a plain product"


def gemm_rate(d: int, rows: int = 8192) -> float:
    """float32 operations a second of a plain (rows, d) x (d, rows) product, the best of five."""
    a = torch.randn(rows, d)
    out = torch.empty(rows, rows)
    return 2 * rows * rows * d / seconds_of(lambda: torch.mm(a, a.mT, out=out), 5)


def plain(rows: torch.Tensor, count: bool) -> None:
    """Every cosine by full products; a histogram of them, or the nearest of each row."""
    units = torch.nn.functional.normalize(rows.float())
    for start in range(0, len(units), 1024):
        cosines = units[start : start + 1024] @ units.T
        if count:
            torch.histc(cosines, 4096, -1.0, 1.0)
        else:
            here = torch.arange(len(cosines))
            cosines[here, start + here] = -2.0
            cosines.max(1)


def rows(quick: bool) -> list[Measured]:
    n, d = 8192 if quick else 49152, 576
    stored = torch.randn(n, d, generator=torch.Generator().manual_seed(0)).bfloat16()
    size = f"{n} x {d} bf16, {n * (n - 1) / 2:.2g} pairs"
    floor = n * n * d / gemm_rate(d)
    spread = spread_of(plain_reader(TensorMatrix(stored), "cpu"), "all", 2.0)
    assert spread is not None
    wanted = Wanted(10, spread.mean, spread.epsilon)
    found = []
    for name, count, scan in (
        ("pairs: all of them counted", True, lambda matrix: count_pairs(matrix, wanted=wanted, device="cpu")),
        ("neighbours: nearest of each row", False, lambda m: nearest_rows(m, epsilon=spread.epsilon, device="cpu")),
    ):
        with PeakMemory() as memory:
            took = seconds_of(lambda scan=scan: scan(TensorMatrix(stored)))
        direct = seconds_of(lambda count=count: plain(stored, count))
        found.append(
            Measured(
                name, size, took, floor, FLOOR, direct,
                f"torch, {'histogram' if count else 'maximum'} of full products",
                memory=memory.used, bound=max(MEMORY, 2 * PANEL * 4 * d),
            )
        )  # fmt: skip
    again = n * n * d / gemm_rate(d)
    return [*found, Measured("the floor itself, once more", size, again, floor, FLOOR)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="8192 rows: seconds")
    print(*rows(parser.parse_args().quick), sep="\n")


if __name__ == "__main__":
    main()
