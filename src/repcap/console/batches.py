"""How runs over many units show their work: what survey and sweep share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.table import Table

from repcap.console.common import cell, new_table, note, print_json, stdout, warn
from repcap.jobs.batch import Batch
from repcap.jobs.store import Failure, Store

FAILED = 3
"""Exit code where the run ended but some units failed."""


@contextmanager
def resumable(store: str) -> Iterator[None]:
    """On Ctrl-C, say that nothing stored is lost."""
    try:
        yield
    except KeyboardInterrupt:
        warn(f"interrupted: what is done is in {store}; run the same command again to go on")
        raise


def show_batch(batch: Batch, json: bool, table_of: Callable[[list[Any]], Table]) -> None:
    """Print what a run did: the results of its units, what failed and why, and the counts."""
    if json:
        print_json(batch)
        return
    with Store(batch.store) as opened:  # to write: who only reads leaves SQLite's empty log behind
        found = [result for key in batch.units for result in opened.unit(key)]
    console = stdout()
    if found:
        console.print(table_of(found))
    if batch.failures:
        console.print(failure_table(batch.failures))
    for told in dict.fromkeys(
        f"{item.record['name']}: {text}" for item in found for text in item.record.get("warnings") or ()
    ):
        warn(told)
    lost = f", {batch.lost_workers} workers lost on the way" if batch.lost_workers else ""
    note(
        f"{batch.done} done, {batch.skipped} stored before, {len(batch.failures)} failed{lost}: "
        f"{batch.store} ({batch.seconds:.0f} s)"
    )


def failure_table(failures: tuple[Failure, ...] | list[Failure]) -> Table:
    """Units without a result, and why."""
    table = new_table("Failed", "What", "Reason", ">Tries")
    for failure in failures:
        table.add_row(cell(failure.label), cell(failure.reason), str(failure.attempts))
    return table
