"""How `repcap pack` and `repcap pack-max` show their work: the bar, the tables."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from repcap.console import settings
from repcap.console.common import new_table, stderr, stdout
from repcap.numerics import format_power

if TYPE_CHECKING:
    from repcap.packing.largest import PackMax
    from repcap.packing.packed import Packing, PackProgress, ProgressHook
    from repcap.packing.verification import Verification


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


def show_packing(packing: Packing) -> None:
    """The result of `repcap pack`, for people."""
    table = new_table(f"{packing.k} lines in R^{packing.d}", "", ">")
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
    stdout().print(table)


def show_verification(result: Verification) -> None:
    """The result of `repcap pack --verify`, for people."""
    table = new_table(f"{result.k} vectors in R^{result.d}", "", ">", "")
    table.add_row("coherence (float64)", f"{result.coherence:.12g}", f"rows {result.pair[0]} and {result.pair[1]}")
    for name, value in result.lower_bounds.items():
        if name != "best":
            mark = "tight" if result.coherence <= value * (1 + 1e-9) else ""
            table.add_row(f"proven >= {name}", f"{value:.12g}", mark)
    if result.ratio_to_bound is not None:
        table.add_row("coherence / best bound", f"{result.ratio_to_bound:.6f}", "")
    table.add_row("best explicit set", f"{result.explicit:.6g}", _short(result.explicit_name))
    if result.exists is not None:
        table.add_row("random coding", f"{result.exists:.6f}", "")
    if result.random is not None:
        table.add_row("random directions", f"{result.random:.6f}", "predicted median")
    for name, value in result.laws.items():
        table.add_row(f"law {name}", f"{value:.6f}", "fitted to published packings")
    claimed = result.metadata.get("coherence")
    if claimed is not None:
        table.add_row("the file says", claimed[:14], "")
    stdout().print(table)


def show_largest(result: PackMax) -> None:
    """The result of `repcap pack-max`, for people."""
    table = new_table(f"Lines in R^{result.d} with |cos| <= {result.epsilon:g}", "", ">", "")
    table.add_row("shown", str(result.k) if result.k < 10**12 else f"{result.k:.6g}", _short(result.method))
    table.add_row("coherence", f"{result.coherence:.9g}", result.evidence)
    if result.known_log10_k > _log10(result.k) + 1e-9:
        table.add_row("known on paper", format_power(result.known_log10_k), _short(result.known_name))
    table.add_row("proven limit", format_power(result.upper_log10_k), result.upper_name)
    table.add_row("searches", str(len(result.trials)), f"{result.seconds:.1f} s")
    if result.path:
        table.add_row("vectors", "", result.path)
    stdout().print(table)


def _log10(k: int) -> float:
    import math

    return math.log10(k)


def _short(text: str, width: int = 36) -> str:
    return text if len(text) <= width else text[: width - 3] + "..."
