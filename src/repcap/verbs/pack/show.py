"""What the terminal shows of a packing, of given vectors, and of an explicit set; and the bar of a search."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import RenderableType
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from repcap.console import settings
from repcap.console.common import new_table, stderr
from repcap.packing.packed import Packing, PackProgress, ProgressHook
from repcap.packing.verification import Verification
from repcap.packing.written import Written
from repcap.result import Result
from repcap.text import abridged


def parts(result: Result) -> Iterator[RenderableType]:
    """The table of a `Packing`, a `Verification` or a `Written`."""
    if isinstance(result, Packing):
        yield _packing(result)
    elif isinstance(result, Verification):
        yield _verification(result)
    elif isinstance(result, Written):
        yield _written(result)


@contextmanager
def pack_progress(label: str) -> Iterator[ProgressHook]:
    """A bar on stderr with the current and the best coherence, the proven lower bound and the time left."""
    console = stderr()
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=12),
        TextColumn("{task.percentage:>3.0f}%"),
        TextColumn("now {task.fields[now]}  best {task.fields[best]}  bound {task.fields[bound]}"),
        TimeRemainingColumn(compact=True),
        console=console,
        transient=True,
        disable=settings.current.quiet or not console.is_terminal,
    )
    with bar:
        task = bar.add_task(label, total=1.0, now="-", best="-", bound="-")

        def update(state: PackProgress) -> None:
            bar.update(
                task,
                completed=state.fraction,
                now=f"{state.coherence:.5f}",
                best=f"{state.best:.5f}",
                bound=f"{state.lower_bound:.5f}",
            )

        yield update


def _packing(packing: Packing) -> Table:
    table = new_table(packing.title, "", ">")
    table.add_row("coherence (float64)", f"{packing.coherence:.12g}")
    table.add_row("given by", packing.method)
    table.add_row("proven lower bound", f"{packing.lower_bound:.12g}  {packing.lower_bound_name}")
    if packing.lower_bound > 0:
        table.add_row("coherence / bound", f"{packing.coherence / packing.lower_bound:.6f}")
    if packing.optimised is not None and packing.constructed is not None:
        table.add_row("search alone", f"{packing.optimised:.12g}")
        table.add_row("construction alone", f"{packing.constructed:.12g}")
    if "predicted" in packing.details:
        table.add_row("median of the draws", f"{packing.details['median_draw']:.6f}")
        table.add_row(f"predicted, best of {packing.details['trials']}", f"{packing.details['predicted']:.6f}")
    known = packing.details.get("better_known")
    if known:
        table.add_row("better, known on paper", f"{known['coherence']:.6g}  {known['name']}")
    table.add_row("steps, seconds", f"{packing.steps}, {packing.seconds:.1f}")
    if packing.path:
        table.add_row("vectors", packing.path)
    return table


def _verification(result: Verification) -> Table:
    table = new_table(result.title, "", ">", "")
    table.add_row("coherence (float64)", f"{result.coherence:.12g}", f"rows {result.pair[0]} and {result.pair[1]}")
    for name, value in result.lower_bounds.items():
        if name != "best":
            mark = "tight" if result.coherence <= value * (1 + 1e-9) else ""
            table.add_row(f"proven >= {name}", f"{value:.12g}", mark)
    if result.ratio_to_bound is not None:
        table.add_row("coherence / best bound", f"{result.ratio_to_bound:.6f}", "")
    table.add_row("best explicit set", f"{result.explicit:.6g}", abridged(result.explicit_name))
    if result.exists is not None:
        table.add_row("random coding", f"{result.exists:.6f}", "")
    if result.random is not None:
        table.add_row("random directions", f"{result.random:.6f}", "predicted median")
    for name, value in result.laws.items():
        table.add_row(f"law {name}", f"{value:.6f}", "fitted to published packings")
    claimed = result.metadata.get("coherence")
    if claimed is not None:
        table.add_row("the file says", claimed[:14], "")
    return table


def _written(result: Written) -> Table:
    table = new_table(result.title, "", ">")
    table.add_row("coherence", f"{result.coherence:.12g}")
    table.add_row("evidence", result.evidence)
    table.add_row("by its theorem", f"{'' if result.exact else '<= '}{result.coherence_claimed:.12g}")
    table.add_row(f"rounding of {result.dtype}", f"<= {result.rounding:.2g}")
    table.add_row("proven lower bound", f"{result.lower_bound:.12g}  {result.lower_bound_name}")
    if result.path is not None:
        table.add_row("vectors", result.path)
    return table
