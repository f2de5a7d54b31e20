"""Time and memory of measure, pairs and pack over the number of rows or lines, and over the dimension.

    python benchmarks/scale.py                at most 6 minutes on two cores
    python benchmarks/scale.py --quick        small sizes, seconds; prints, writes nothing unless --out says where

Writes docs/figures/scale.csv, docs/figures/scale.png, and the table of docs/scale.md: the exponent fitted to each curve
beside the one that the documentation states. Each point is a process of its own, so that its memory is its own.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import math
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from measured import MB, PeakMemory, machine, seconds_of, write_part

ROOT = Path(__file__).resolve().parents[1]
LEAST_SECONDS = 0.5
"""A job that is shorter is done three times, and the fastest counts."""
FITTED = 3
"""Points at the large end that an exponent is fitted to: small sizes pay for what is the same at every size."""


class Curve(NamedTuple):
    """One job over one size. fixed: the other size. stated: the exponent that the documentation's cost has."""

    job: str
    over: str
    values: tuple[int, ...]
    fixed: int
    stated: float
    cost: str


CURVES = (
    Curve("measure", "n", (8192, 16384, 32768, 65536, 131072, 262144), 512, 1, "n d² a pass"),
    Curve("measure", "d", (256, 512, 1024, 2048, 4096), 8192, 2, "n d² a pass"),
    Curve("pairs", "n", (4096, 8192, 16384, 32768, 65536), 128, 2, "n² d"),
    Curve("pairs", "d", (128, 256, 512, 1024, 2048), 16384, 1, "n² d"),
    Curve("pack", "k", (1000, 2000, 4000, 8000, 16000), 128, 2, "3 k² d a step"),
    Curve("pack", "d", (32, 64, 128, 256, 512, 1024), 4000, 1, "3 k² d a step"),
)
QUICK = (
    Curve("measure", "n", (1024, 4096), 64, 1, "n d² a pass"),
    Curve("pack", "k", (250, 1000), 32, 2, "3 k² d a step"),
)
PACK_STEPS = 5


class Point(NamedTuple):
    """bytes: of anonymous memory above the start; bound: what the documentation states for this size."""

    job: str
    over: str
    count: int
    dim: int
    seconds: float
    bytes: int
    bound: int


def work(job: str, count: int, dim: int, place: Path) -> tuple[float, int, int]:
    """(seconds, bytes of anonymous memory above the start, stated bytes), after a job of the same kind in little."""
    import torch
    from moments import stated_bytes, write_bf16

    from repcap import geometry
    from repcap.geometry.pairs.blocks import MEMORY, PANEL
    from repcap.geometry.pairs.count import count_pairs
    from repcap.packing import pack
    from repcap.packing.search.gradient import BLOCK_COLUMNS, BLOCK_ROWS
    from repcap.sources import open_source

    def stored(n: int, d: int) -> Path:
        """Rows on the disk: pages of a file are no memory of ours."""
        path = place / f"{n}-{d}.safetensors"
        if not path.exists():
            write_bf16(path, n, d)
        return path

    def do(n: int, d: int) -> None:
        if job == "pack":
            pack(n, d, steps=PACK_STEPS, symmetry=1, constructions=False, device="cpu")
            return
        with open_source(f"{stored(n, d)}::embedding") as matrix:
            if job == "measure":
                geometry.measure_matrix(matrix)
            else:
                count_pairs(matrix, device="cpu")

    def measured() -> float:
        return seconds_of(lambda: do(count, dim))

    torch.manual_seed(0)
    if job != "pack":
        stored(count, dim)
    torch.mm(torch.randn(2048, 256), torch.randn(256, 2048))  # what the first products set up is no memory of a job
    do(512, min(dim, 64))
    with PeakMemory() as memory:
        seconds = measured()
    if seconds < LEAST_SECONDS:
        seconds = min(seconds, measured(), measured())
    bound = {
        "measure": stated_bytes(count, dim),
        "pairs": max(MEMORY, 2 * PANEL * 4 * dim),
        "pack": 20 * count * dim + 2 * 4 * BLOCK_ROWS * BLOCK_COLUMNS,
    }[job]
    return seconds / (PACK_STEPS if job == "pack" else 1), memory.used, bound


def point(curve: Curve, value: int) -> Point:
    count, dim = (curve.fixed, value) if curve.over == "d" else (value, curve.fixed)
    with tempfile.TemporaryDirectory() as place:
        command = [sys.executable, __file__, "--point", curve.job, str(count), str(dim), place]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, timeout=180)
    return Point(curve.job, curve.over, count, dim, *json.loads(done.stdout))


def exponent(sizes: Sequence[float], values: Sequence[float]) -> float:
    """Slope of log values on log sizes by least squares, at the large end; nan where a value is not positive."""
    x, y = [math.log(size) for size in sizes[-FITTED:]], values[-FITTED:]
    if min(y) <= 0:
        return float("nan")
    z = [math.log(value) for value in y]
    mean_x, mean_z = sum(x) / len(x), sum(z) / len(z)
    across = sum((a - mean_x) ** 2 for a in x)
    return sum((a - mean_x) * (b - mean_z) for a, b in zip(x, z, strict=True)) / across


def table(found: dict[Curve, list[Point]]) -> str:
    lines = [
        f"{machine()}. Exponents are fitted to the last {FITTED} points.",
        "",
        "| job | over | from | to | other size | seconds | exponent | stated at most | memory, MB | stated there, MB |",
        "|---|---|---:|---:|---|---:|---:|---|---:|---:|",
    ]
    for curve, points in found.items():
        first, last = points[0], points[-1]
        other = f"{'d' if curve.over != 'd' else 'k' if curve.job == 'pack' else 'n'} = {curve.fixed}"
        lines.append(
            f"| {curve.job} | {curve.over} | {curve.values[0]} | {curve.values[-1]} | {other} "
            f"| {first.seconds:.2g} to {last.seconds:.2g} | {time_exponent(curve, points):.2f} "
            f"| {curve.stated:g} ({curve.cost}) | {first.bytes / MB:.0f} to {last.bytes / MB:.0f} "
            f"| {first.bound / MB:.0f} to {last.bound / MB:.0f} |"
        )
    return "\n".join(lines)


def time_exponent(curve: Curve, points: Sequence[Point]) -> float:
    return exponent(curve.values, [one.seconds for one in points])


def as_csv(found: dict[Curve, list[Point]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["job", "over", "n_or_k", "d", "seconds", "bytes", "stated_bytes"])
    writer.writerows(
        (*one[:4], f"{one.seconds:.6g}", one.bytes, one.bound) for points in found.values() for one in points
    )
    return text.getvalue()


def draw(found: dict[Curve, list[Point]], path: Path) -> None:
    """Time above, with the stated exponent through the last point; memory below, with what is stated."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(2, len(found), figsize=(3.0 * len(found), 6.2), sharex="col", squeeze=False)
    for column, (curve, points) in enumerate(found.items()):
        last = points[-1].seconds
        above: Any = axes[0][column]
        below: Any = axes[1][column]
        above.loglog(curve.values, [one.seconds for one in points], "o-", color="#1f6f8b", label="measured")
        guide = [last * (value / curve.values[-1]) ** curve.stated for value in curve.values]
        above.loglog(curve.values, guide, ":", color="#444444", label=f"exponent {curve.stated:g}, as stated")
        above.set_title(f"{curve.job}: exponent {time_exponent(curve, points):.2f}", fontsize=9)
        below.loglog(curve.values, [max(one.bytes, 1) / MB for one in points], "o-", color="#1f6f8b", label="measured")
        below.loglog(curve.values, [one.bound / MB for one in points], ":", color="#444444", label="stated")
        below.set_xlabel(f"{curve.over}, {curve.fixed} of the other size")
        for plot in (above, below):
            plot.legend(fontsize=7, frameon=False)
            plot.grid(alpha=0.25)
            plot.set_xticks(curve.values, [str(value) for value in curve.values], fontsize=7, rotation=45)
            plot.minorticks_off()
    axes[0][0].set_ylabel("seconds")
    axes[1][0].set_ylabel("memory, MB")
    faster = [f"{curve.job} over {curve.over}" for curve, points in found.items() if above_stated(curve, points)]
    figure.suptitle(
        f"Time grows faster than stated: {', '.join(faster)}" if faster else "Time grows no faster than stated",
        fontsize=11,
    )
    figure.tight_layout()
    figure.savefig(path, dpi=110)


def above_stated(curve: Curve, points: Sequence[Point]) -> bool:
    """Whether the exponent is above the stated one by more than clocks are off."""
    return time_exponent(curve, points) > curve.stated + 0.15


def points_of(curve: Curve) -> list[Point] | None:
    """The points of a curve; None, and why on stderr, where one of them fails."""
    points = []
    try:
        for value in curve.values:
            points.append(point(curve, value))
            print(points[-1], file=sys.stderr, flush=True)
    except (subprocess.SubprocessError, ValueError) as error:
        print(f"{curve.job} over {curve.over}: {error}", file=sys.stderr, flush=True)
        return None
    return points


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="two curves of small sizes")
    parser.add_argument("--out", type=Path, help="a folder for scale.csv and scale.png; the page is left alone")
    parser.add_argument("--point", nargs=4, metavar=("JOB", "COUNT", "DIM", "FOLDER"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.point:
        job, count, dim, place = options.point
        print(json.dumps(work(job, int(count), int(dim), Path(place))))
        return 0
    curves = QUICK if options.quick else CURVES
    found = {curve: points for curve in curves if (points := points_of(curve)) is not None}
    text = table(found)
    print(text)
    folder = options.out or (None if options.quick else ROOT / "docs" / "figures")
    if folder:
        from repcap.files import atomic_path

        with atomic_path(folder / "scale.csv") as temporary:
            temporary.write_text(as_csv(found))
        with atomic_path(folder / "scale.png") as temporary:
            draw(found, temporary)
    if not options.out and not options.quick:
        write_part(ROOT / "docs" / "scale.md", "curves", text)
    return 1 if len(found) < len(curves) else 0


if __name__ == "__main__":
    sys.exit(main())
