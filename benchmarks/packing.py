"""What the packing search costs and reaches, measured on this machine in one run.

    python benchmarks/packing.py                 race, step, cost, memory, optima
    python benchmarks/packing.py --targets       the five (2000, d) cells, three seeds each, with and without symmetry
    python benchmarks/packing.py --quick         all of it in little, in about a minute

race    seconds until the published coherence is reached, ours against the published loop (Adam on sum |cos|^p), which
        gets 60 times our time; what it has reached by then is printed
step    a step against the time of its 3 k^2 d flops at the rate of a large matrix product, measured in between
cost    where a step without symmetry goes, against the floor of 2 k^2 d flops and a step of the published loop
memory  peak resident memory of a step at k = 32000 over the memory before, in a process of its own
optima  known optima from random starts: seconds and distance

On a machine that others use too, --cpu-time runs one thread and counts the processor seconds of this process, which
hardly depend on the others; both sides of every comparison are counted the same way.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import math
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch
from measured import Measured

from repcap.laws.fitting.data import optimized_packing
from repcap.packing import pack
from repcap.packing.search.adam_pnorm import AdamPnorm, exponent
from repcap.packing.search.descent import Descent
from repcap.packing.search.gradient import BLOCK_COLUMNS, BLOCK_ROWS
from repcap.packing.search.method import Task
from repcap.packing.search.starts import generator_for, random_start

CPU = torch.device("cpu")
clock = time.perf_counter
RACES = ((2000, 128), (2000, 256), (4000, 256))
COSTS = ((2000, 128), (8000, 512))
RACE_STEPS = 60
"""The path of a race is spread over fewer steps than the default 400: the published coherence is no far goal."""
TARGETS = {(2000, 32): 0.3595, (2000, 64): 0.2125, (2000, 128): 0.1292, (2000, 256): 0.0776, (2000, 512): 0.0449}
OPTIMA = (
    (6, 3, 1 / math.sqrt(5), 8), (12, 4, 1 / 2, 8), (16, 6, 1 / 3, 64), (28, 7, 1 / 3, 8), (36, 6, 1 / 2, 16),
    (120, 8, 1 / 2, 16), (63, 7, 1 / 2, 256), (36, 15, 1 / 5, 256), (144, 16, 1 / 4, 256), (276, 23, 1 / 5, 600),
)  # fmt: skip


def published(k: int, d: int) -> float:
    """Coherence of the published optimised packing (k, d)."""
    table = optimized_packing()
    return next(float(e) for kk, dd, e in zip(table.k, table.d, table.epsilon, strict=True) if (kk, dd) == (k, d))


def race(
    k: int, d: int, symmetries: tuple[int | str, ...], factor: float, multiplier: int, rate: float
) -> list[dict[str, float | int | str | None]]:
    goal = published(k, d)
    ours = {}
    for symmetry in symmetries:
        began = clock()
        packing = pack(k, d, steps=RACE_STEPS, target=goal, symmetry=symmetry, constructions=False)
        ours[symmetry] = (clock() - began, packing.coherence, packing.steps)
    limit = factor * max(seconds for seconds, _, _ in ours.values())
    trace: list[tuple[float, float]] = []
    began = clock()

    def each(step: int, fraction: float, now: float, best: float) -> None:
        trace.append((clock() - began, best))
        if trace[-1][0] > limit:
            raise TimeoutError

    with contextlib.suppress(TimeoutError):
        AdamPnorm(steps=1_000_000, target=goal, multiplier=multiplier, rate=rate).run(Task(k, d, report=each))
    their_seconds, their_best = trace[-1]
    reached = their_best <= goal
    rows = []
    for symmetry, (seconds, value, steps) in ours.items():
        then = min((best for at, best in trace if at <= factor * seconds), default=float("nan"))
        rows.append({
            "k": k, "d": d, "published": goal, "symmetry": str(symmetry), "seconds": seconds, "coherence": value,
            "steps": steps, "adam_exponent": exponent(d, multiplier), f"adam_after_{factor:g}x": then,
            "adam_seconds": their_seconds, "adam_steps": len(trace), "adam_best": their_best, "adam_reached": reached,
            "faster" if reached else "faster_than": their_seconds / seconds,
        })  # fmt: skip
    return rows


def gemm_seconds(size: int = 2048) -> float:
    """Seconds of one float32 matrix product of this size."""
    a, b = torch.randn(size, size), torch.randn(size, size)
    out = torch.empty(size, size)
    began = clock()
    torch.mm(a, b, out=out)
    return clock() - began


def step(k: int, d: int, repeats: int = 9) -> dict[str, float | int]:
    """The fastest step against its flops at the fastest rate; the two are measured in turns."""
    descent = Descent(random_start(k, d, generator_for(0, 0)), CPU)
    descent.step(0.3)
    steps, rates = [], []
    for _ in range(repeats):
        rates.append(2 * 2048**3 / gemm_seconds())
        began = clock()
        descent.step(0.3)
        steps.append(clock() - began)
    return {
        "k": k, "d": d, "step_ms": 1e3 * min(steps), "gemm_gflops": max(rates) / 1e9,
        "ratio": min(steps) / (3 * k * k * d / max(rates)),
    }  # fmt: skip


def fastest(work: Callable[[], object], repeats: int) -> float:
    """Seconds of the fastest of so many calls."""
    found = []
    for _ in range(repeats):
        began = clock()
        work()
        found.append(clock() - began)
    return min(found)


def cost(k: int, d: int, repeats: int = 3) -> dict[str, float | int]:
    """A step of ours in its parts, and of the published loop, in units of the floor: 2 k^2 d flops at the rate of a
    large matrix product, which is what all cosines cost without their symmetry."""
    rate = max(2 * 2048**3 / gemm_seconds() for _ in range(5))
    floor = 2 * k * k * d / rate
    descent = Descent(random_start(k, d, generator_for(0, 0)), CPU)
    descent.step(0.3)
    ours = fastest(lambda: descent.step(0.3), repeats)
    rows, columns = min(k, BLOCK_ROWS), min(k, BLOCK_COLUMNS)
    x, y, block = torch.randn(rows, d), torch.randn(columns, d), torch.rand(rows, columns)
    blocks, out, back = k * k / (2 * rows * columns), torch.empty(rows, columns), torch.zeros(rows, d)
    cosines = blocks * fastest(lambda: torch.mm(x, y.T, out=out), 5 * repeats)
    sums = blocks * (
        fastest(lambda: back.addmm_(block, y), 5 * repeats)
        + fastest(lambda: torch.zeros(columns, d).addmm_(block.T, x), 5 * repeats)
    )
    exponentials = blocks * fastest(lambda: torch.exp(block, out=out), 5 * repeats)
    stamps: list[float] = []
    AdamPnorm(steps=repeats + 1).run(Task(k, d, report=lambda *_: stamps.append(clock())))
    theirs = min(after - before for before, after in itertools.pairwise(stamps))
    return {
        "k": k, "d": d, "gemm_gflops": rate / 1e9, "floor_ms": 1e3 * floor, "ours": ours / floor,
        "cosines": cosines / floor, "sums": sums / floor, "exponentials": exponentials / floor,
        "rest": (ours - cosines - sums - exponentials) / floor, "published": theirs / floor, "times": theirs / ours,
    }  # fmt: skip


MEMORY = """
import resource, sys, torch
from repcap.packing import pack
k, d = int(sys.argv[1]), int(sys.argv[2])
pack(1200, d, steps=2, symmetry=1, constructions=False)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
pack(k, d, steps=1, symmetry=1, constructions=False)
print(before, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def memory(k: int, d: int) -> dict[str, float | int]:
    done = subprocess.run([sys.executable, "-c", MEMORY, str(k), str(d)], capture_output=True, text=True, check=True)
    before, after = (1024 * int(word) for word in done.stdout.split())
    blocks = 2 * 4 * BLOCK_ROWS * BLOCK_COLUMNS
    return {
        "k": k, "d": d, "peak_over_baseline_mb": (after - before) / 1e6, "allowed_mb": (12 * k * d + blocks) / 1e6,
        "floats_per_kd": (after - before - blocks) / (4 * k * d),
    }  # fmt: skip


def optimum(k: int, d: int, value: float, restarts: int) -> dict[str, float | int | str]:
    began = clock()
    packing = pack(k, d, restarts=restarts, constructions=False)
    return {
        "k": k, "d": d, "optimum": value, "distance": packing.coherence - value, "method": packing.method,
        "restarts": packing.steps // 400, "seconds": clock() - began,
    }  # fmt: skip


def target(k: int, d: int, seed: int, symmetry: int | str) -> dict[str, float | int | str | bool]:
    began = clock()
    packing = pack(k, d, seed=seed, symmetry=symmetry, constructions=False)
    limit = TARGETS[k, d]
    return {
        "k": k, "d": d, "seed": seed, "symmetry": str(symmetry), "steps": packing.steps, "coherence": packing.coherence,
        "limit": limit, "met": packing.coherence <= limit, "seconds": clock() - began,
    }  # fmt: skip


def rows(quick: bool) -> list[Measured]:
    """The lines of the page of speeds. The published loop gets 60 times our time, in little 5 times."""
    found = []
    for k, d in RACES[:1] if quick else RACES:
        (row,) = race(k, d, ("auto",), 5.0 if quick else 60.0, 60, 0.01)
        found.append(
            Measured(
                f"pack to the published coherence {row['published']:.4f}", f"{k} lines in R^{d}, symmetry",
                row["seconds"], reference=row["adam_seconds"], reference_is="the published loop",
                capped=not row["adam_reached"],
            )
        )  # fmt: skip
    for k, d in [(1000, 128)] if quick else COSTS:
        row = cost(k, d)
        floor = row["floor_ms"] / 1e3
        found.append(
            Measured(
                "pack: one step, no symmetry", f"{k} lines in R^{d}", row["ours"] * floor, floor,
                "all cosines by plain products, 2 k² d operations", row["published"] * floor,
                "one step of the published loop",
            )
        )  # fmt: skip
    k, d = (4000, 128) if quick else (32000, 256)
    began = clock()
    row = memory(k, d)
    used, allowed = 1e6 * row["peak_over_baseline_mb"], 1e6 * row["allowed_mb"]
    found.append(Measured("pack: memory of a step", f"{k} lines in R^{d}", clock() - began, memory=used, bound=allowed))
    return found


def show(row: dict[str, object]) -> None:
    words = (f"{key} {value:.6g}" if isinstance(value, float) else f"{key} {value}" for key, value in row.items())
    print("  ".join(words), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", help="of race, step, cost, memory, optima (default: all)")
    parser.add_argument("--quick", action="store_true", help="in little")
    parser.add_argument("--targets", action="store_true", help="the five cells at three seeds")
    parser.add_argument("--multiplier", type=int, default=60, help="m of the published exponent rule")
    parser.add_argument("--rate", type=float, default=0.01, help="Adam's learning rate")
    parser.add_argument("--no-symmetry", action="store_true", help="race without the rotation symmetry")
    parser.add_argument("--cpu-time", action="store_true", help="one thread, processor seconds")
    parser.add_argument("--json", type=Path, help="write the rows here")
    options = parser.parse_args()
    if options.cpu_time:
        global clock
        clock = time.process_time
        torch.set_num_threads(1)
    parts = options.parts or (["targets"] if options.targets else ["race", "step", "cost", "memory", "optima"])
    found: list[dict[str, object]] = []

    def add(part: str, one: dict[str, object]) -> None:
        found.append({"part": part, **one})
        show(found[-1])

    rate = 2 * 2048**3 / min(gemm_seconds() for _ in range(5)) / 1e9
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads, float32 product {rate:.0f} GFlop/s")
    if "targets" in parts:
        cells = [(2000, 32)] if options.quick else list(TARGETS)
        for k, d in cells:
            for symmetry in ("auto", 1):
                for seed in range(1 if options.quick else 3):
                    add("targets", target(k, d, seed, symmetry))
    symmetries = (1,) if options.no_symmetry else ("auto",)
    if "race" in parts:
        for k, d in RACES[:1] if options.quick else RACES:
            for row in race(k, d, symmetries, 5.0 if options.quick else 60.0, options.multiplier, options.rate):
                add("race", row)
    if "step" in parts:
        for k, d in [(1000, 128)] if options.quick else RACES:
            add("step", step(k, d))
    if "cost" in parts:
        for k, d in [(1000, 128)] if options.quick else COSTS:
            add("cost", cost(k, d))
    if "memory" in parts:
        add("memory", memory(8000 if options.quick else 32000, 256))
    if "optima" in parts:
        for cell in OPTIMA[:6] if options.quick else OPTIMA:
            add("optima", optimum(*cell))
    if options.json:
        options.json.write_text(json.dumps(found, indent=2) + "\n")
    print(f"peak memory of this process {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


if __name__ == "__main__":
    main()
