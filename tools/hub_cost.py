"""What it would cost to measure every text-generation model of the Hub: bytes, hours, and what they wait for.

    python tools/hub_cost.py [--models 300000] [--workers 32] [--link 3200] ... [--write]

Arithmetic on stated assumptions, no measurement; each assumption is an option or a line of `CLASSES`. `--write` puts
the tables into docs/scale.md.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "benchmarks"))


class Size(NamedTuple):
    """One class of models, by a model that is typical of it. share: of all; the rest are numbers of its config.json."""

    share: float
    model: str
    rows: int
    dim: int
    parameters: float
    tied: bool


CLASSES = (
    Size(0.15, "SmolLM2-135M", 49152, 576, 0.135e9, True),
    Size(0.20, "Qwen2.5-0.5B", 151936, 896, 0.494e9, True),
    Size(0.13, "Llama-3.2-1B", 128256, 2048, 1.24e9, True),
    Size(0.27, "Mistral-7B-v0.3", 32768, 4096, 7.25e9, False),
    Size(0.15, "Llama-3.1-8B", 128256, 4096, 8.03e9, False),
    Size(0.06, "Qwen2.5-14B", 152064, 5120, 14.8e9, False),
    Size(0.04, "Llama-3.1-70B", 128256, 8192, 70.6e9, False),
)


@dataclasses.dataclass(frozen=True)
class Assumed:
    """Every number that the answer hangs on; the comment says where each is from."""

    models: int = 300_000  # ASSUMED: text-generation models on the Hub
    readable: float = 0.6  # ASSUMED: the share with weights of their own in a format that is read (no adapters alone)
    workers: int = 32  # asked
    number_bytes: int = 2  # ASSUMED: bf16 or fp16
    worker_rate: float = 100.0  # ASSUMED: MB/s that a worker receives
    link: float = 3200.0  # ASSUMED: MB/s that all of them receive together
    measure_seconds: float = 26.4  # MEASURED: 128256 x 4096 on two cores (README, docs/performance.md)
    start_seconds: float = 1.0  # ASSUMED: headers, tokenizer, a record, whatever the size
    requests: int = (
        7  # COUNTED at the Hub of the tests: `resolve` requests for a checkpoint of several shards (5 for one)
    )
    row_bytes: int = 4000  # MEASURED: a row of the store beside its eigenvalues
    eigenvalue_bytes: int = 20  # MEASURED: JSON of one of its d eigenvalues
    resolve_limit: float = 5000.0  # SOURCE: huggingface.co/docs/hub/rate-limits, a free account, in 300 s (Sept. 2025)
    api_limit: float = 1000.0  # SOURCE: the same page; one such request a model


def sizes(each: Size, assumed: Assumed, sample: int | None) -> tuple[float, float, float]:
    """(bytes of what is measured, bytes of the whole checkpoint, seconds of arithmetic) of one model."""
    matrices = 1 if each.tied else 2
    rows = min(each.rows, sample or each.rows)
    work = matrices * rows * each.dim**2 / (128256 * 4096**2)
    return (
        assumed.number_bytes * matrices * rows * each.dim,
        assumed.number_bytes * each.parameters,
        assumed.measure_seconds * work + assumed.start_seconds,
    )


class Cost(NamedTuple):
    """Of all models. bytes in all; hours if each thing were all there is, and in all; what is waited for."""

    what: str
    bytes: float
    receiving: float
    arithmetic: float
    asking: float
    hours: float
    bottleneck: str


def cost(what: str, assumed: Assumed, sample: int | None = None, whole: bool = False) -> Cost:
    """A worker receives, then computes (the two do not overlap here); all of them share the link and the limits."""
    count = assumed.models * assumed.readable
    parts = [(each.share, sizes(each, assumed, sample)) for each in CLASSES]
    total = count * sum(share * part[1 if whole else 0] for share, part in parts)
    work = count * sum(share * part[2] for share, part in parts)
    rate = 1e6 * min(assumed.link, assumed.workers * assumed.worker_rate)
    receiving, arithmetic = total / rate / 3600, work / assumed.workers / 3600
    # Every model is asked for once, whether it can be read or not; what has no weights costs no more than the question.
    api = assumed.models / assumed.api_limit * 300 / 3600
    resolve = count * assumed.requests / assumed.resolve_limit * 300 / 3600
    asking = max(api, resolve)
    hours = max(receiving + arithmetic, asking)
    slowest = max((receiving, "the network"), (arithmetic, "arithmetic"))[1]
    return Cost(what, total, receiving, arithmetic, asking, hours, "requests" if asking >= hours else slowest)


def store_bytes(assumed: Assumed) -> float:
    """Bytes of the store: a row a matrix, with d eigenvalues."""
    rows = ((each.share * (1 if each.tied else 2), each.dim) for each in CLASSES)
    each_model = sum(share * (assumed.row_bytes + assumed.eigenvalue_bytes * dim) for share, dim in rows)
    return assumed.models * assumed.readable * each_model


def costs(assumed: Assumed) -> list[Cost]:
    return [
        cost("embedding and unembedding, every row", assumed),
        cost("`--rows 20000`", assumed, sample=20_000),
        cost("whole checkpoints, the same measurement", assumed, whole=True),
    ]


def tables(assumed: Assumed) -> str:
    """The answer, then the classes with what one model of each costs."""
    lines = [
        f"{assumed.models:,} models, {assumed.readable:.0%} of them readable; {assumed.workers} workers of two cores:",
        "",
        "| what is fetched | TB | receiving, h | arithmetic, h | requests, h | in all, h | bottleneck |",
        "|---|---:|---:|---:|---:|---:|---|",
    ]
    lines += [
        f"| {one.what} | {one.bytes / 1e12:,.0f} | {one.receiving:,.1f} | {one.arithmetic:,.1f} | {one.asking:,.1f} "
        f"| {one.hours:,.1f} | {one.bottleneck} |"
        for one in costs(assumed)
    ]
    lines += [
        "",
        f"The store would have {store_bytes(assumed) / 1e9:,.0f} GB.",
        "",
        "| share (assumed) | like | n x d | matrices | measured, MB | whole, MB | seconds of arithmetic |",
        "|---:|---|---|---:|---:|---:|---:|",
    ]
    for each in CLASSES:
        part, whole, seconds = sizes(each, assumed, None)
        lines.append(
            f"| {each.share:.0%} | {each.model} | {each.rows} x {each.dim} | {1 if each.tied else 2} "
            f"| {part / 1e6:,.0f} | {whole / 1e6:,.0f} | {seconds:.1f} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for field in dataclasses.fields(Assumed):
        kind = type(field.default)
        parser.add_argument(f"--{field.name.replace('_', '-')}", type=kind, default=field.default)
    parser.add_argument("--write", action="store_true", help="put the tables into docs/scale.md")
    options = vars(parser.parse_args())
    write = options.pop("write")
    text = tables(Assumed(**options))
    print(text)
    if write:
        from measured import write_part

        write_part(ROOT / "docs" / "scale.md", "hub", text)


if __name__ == "__main__":
    main()
