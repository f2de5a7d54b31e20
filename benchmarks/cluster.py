"""A survey of many made checkpoints: one worker, then a Ray cluster of several nodes, one of which is killed half-way.

    python benchmarks/cluster.py --checkpoints 2000 --nodes 4    some minutes
    python benchmarks/cluster.py ... --write                     and puts the figures into docs/scale.md

The checkpoints are tiny and seeded (64 to 512 rows of 16 to 64 numbers, every fifth untied), in a temporary folder. The
cluster stands on this machine: a head without work, and nodes of one processor each. After the run every row has to be
in the store exactly once, and equal to that of the one worker, seconds apart; the exit code says so. Every worker has
one thread: with another number of threads sums are taken in another order, and last digits differ.
"""

from __future__ import annotations

import argparse
import itertools
import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

os.environ |= {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "RAY_USAGE_STATS_ENABLED": "0"}
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

import ray
from measured import machine, write_part
from ray.cluster_utils import Cluster

import repcap
from repcap.jobs.store import Store
from survey_jobs import make_checkpoint

PAGE = Path(__file__).resolve().parents[1] / "docs" / "scale.md"
STORE_BYTES = 80 * 1024**2
"""Ray's shared memory on each node; units and results are small."""


def make(folder: Path, count: int) -> list[str]:
    """So many checkpoints, the same ones each time."""
    made = []
    for seed in range(count):
        head = "own" if seed % 5 == 0 else None
        rows, d = 64 * (1 + seed % 8), 16 * (1 + seed % 4)
        made.append(str(make_checkpoint(folder / f"model-{seed:05d}", rows, d, seed, head=head)[0]))
    return made


class Surveyed(NamedTuple):
    """One survey: seconds in all, tries lost, models done and failed, and when each was stored (monotonic clock)."""

    seconds: float
    lost: int
    done: int
    failed: int
    ends: list[float]

    @property
    def rate(self) -> float:
        """Models a second between the first and the last that were stored: without the start of the workers."""
        return (len(self.ends) - 1) / (self.ends[-1] - self.ends[0])


def survey(models: list[str], store: Path, engine: str, on_half: Callable[[], None] | None = None) -> Surveyed:
    ends: list[float] = []

    def on_unit(done: int, total: int) -> None:
        if done:
            ends.append(time.monotonic())
        if on_half is not None and done == total // 2:
            on_half()

    batch = repcap.survey(models, store, engine=engine, retries=5, device="cpu", on_unit=on_unit)
    return Surveyed(batch.seconds, batch.lost_workers, batch.done, len(batch.failures), ends)


def on_cluster(models: list[str], store: Path, nodes: int) -> tuple[Surveyed, float]:
    """A survey on a cluster of so many nodes, one killed half-way; (survey, when it was killed)."""
    head = {"num_cpus": 0, "object_store_memory": STORE_BYTES, "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    threads: list[threading.Thread] = []
    killed = [0.0]
    try:
        others = [cluster.add_node(num_cpus=1, object_store_memory=STORE_BYTES) for _ in range(nodes)]
        cluster.wait_for_nodes()

        def kill() -> None:
            killed[0] = time.monotonic()
            threads.append(
                threading.Thread(target=cluster.remove_node, args=(others[0],), kwargs={"allow_graceful": False})
            )
            threads[0].start()

        found = survey(models, store, f"ray:{cluster.address}", kill)
    finally:
        for thread in threads:
            thread.join()
        ray.shutdown()
        cluster.shutdown()
    return found, killed[0]


def rows_of(store: Path) -> dict[str, Any]:
    """Key -> what was stored, without the seconds that it took; a key that is there twice stops the run."""
    found: dict[str, Any] = {}
    with Store(store, "read") as opened:
        opened.check()
        for item in opened.records():
            assert item.key not in found, f"{item.key} is in {store.name} twice"
            found[item.key] = {name: value for name, value in item.record.items() if name != "seconds"}, item.provenance
    return found


def compare(one: Path, many: Path, models: list[str]) -> list[str]:
    """What is wrong; nothing, if all models are in both stores once, and equal."""
    left, right = rows_of(one), rows_of(many)
    wrong = []
    sources = [record["source"] for record, _ in right.values() if record["role"] == "embedding"]
    if sorted(sources) != sorted(models):
        wrong.append(f"{len(sources)} embeddings of {len(set(sources))} models stored, {len(models)} asked for")
    if left.keys() != right.keys():
        wrong.append(f"{len(left.keys() ^ right.keys())} keys are in one store only")
    differ = [key for key in left.keys() & right.keys() if left[key] != right[key]]
    if differ:
        names = sorted(
            {name for key in differ for name in left[key][0] if left[key][0][name] != right[key][0].get(name)}
        )
        wrong.append(f"{len(differ)} rows differ, in {', '.join(names) or 'provenance'}")
    return wrong


def longest_gap(ends: list[float], since: float) -> float:
    """Seconds without a result, at most, from `since` on."""
    later = [since, *(end for end in ends if end > since)]
    return max((b - a for a, b in itertools.pairwise(later)), default=0.0)


def report(one: Surveyed, many: Surveyed, killed: float, nodes: int, rows: int, wrong: list[str]) -> str:
    before = [end for end in many.ends if end <= killed]
    until = (len(before) - 1) / (before[-1] - before[0]) if len(before) > 2 else float("nan")
    gaps = statistics.median(b - a for a, b in itertools.pairwise(many.ends))
    verdict = "; ".join(wrong) or "every row once, and equal to that of the one worker"
    return "\n".join([
        f"{len(many.ends)} checkpoints, {rows} rows. {machine()}.",
        "",
        "| run | seconds | models a second | of one worker |",
        "|---|---:|---:|---:|",
        f"| one local worker | {one.seconds:.1f} | {one.rate:.1f} | 1 |",
        f"| Ray, {nodes} nodes of one processor, until one is killed | {killed - many.ends[0]:.1f} | {until:.1f} "
        f"| {until / one.rate:.2f} |",
        f"| the whole survey, a node killed half-way | {many.seconds:.1f} | {many.rate:.1f} "
        f"| {many.rate / one.rate:.2f} |",
        "",
        f"Tries lost with the node: {many.lost}. Failures: {many.failed}. Longest time without a result after the "
        f"kill: {longest_gap(many.ends, killed):.1f} s (a result every {1e3 * gaps:.0f} ms in the median).",
        "",
        f"Checked: {verdict}.",
    ])  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--checkpoints", type=int, default=2000)
    parser.add_argument("--nodes", type=int, default=4)
    parser.add_argument("--write", action="store_true", help="put the figures into docs/scale.md")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        models = make(Path(place) / "models", options.checkpoints)
        stores = Path(place) / "one.sqlite", Path(place) / "many.sqlite"
        one = survey(models, stores[0], "local:1")
        print(f"one worker: {one.seconds:.1f} s", file=sys.stderr, flush=True)
        many, killed = on_cluster(models, stores[1], options.nodes)
        wrong = compare(*stores, models)
        wrong += ["no node was killed"] if not killed else []
        text = report(one, many, killed, options.nodes, len(rows_of(stores[1])), wrong)
    print(text)
    if options.write:
        write_part(PAGE, "cluster", text)
    return 1 if wrong or many.failed or one.failed else 0


if __name__ == "__main__":
    sys.exit(main())
