"""What the terminal shows of `readout`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from repcap.console.common import new_table
from repcap.console.prose import prose
from repcap.text import printable, visible
from repcap.verbs.readout.study import Readouts, ReadToken


def parts(result: Readouts) -> Iterator[RenderableType]:
    yield Text(printable(result.source), style="bold")
    left_out = f" ({result.dropped} without a direction)" if result.dropped else ""
    yield Text(f"{printable(result.matrix)}, {result.count} x {result.dim}{left_out}")
    yield _numbers(result)
    yield _alarms(result)
    for title, rows in (("read worst", result.worst), ("read best", result.best_read)):
        if rows:
            yield _tokens(title, rows)
    yield prose(result.reading)


def _numbers(result: Readouts) -> Table:
    table = new_table(None, "", ">direct", ">best linear", ">at most")
    sides = (result.direct, result.best)
    table.add_row("effective dimension", *(_number(side.effective_dim) for side in sides), _number(result.welch_dim))
    table.add_row("of the median row", *(_number(side.median_dim) for side in sides))
    table.add_row(f"s_max at {result.delta:g} above {result.theta:g}", *(str(side.most) for side in sides))
    return table


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"


def _alarms(result: Readouts) -> Table:
    """Share of idle rows above theta over the number of active ones; simulated beside it where it was."""
    simulated = bool(result.best.simulated)
    drawn = [">simulated", ">all found"] if simulated else []
    title = f"\nshare of idle rows that read above {result.theta:g}"
    table = new_table(title, ">active", ">direct", *drawn, ">best linear", *drawn)
    for at, (active, _) in enumerate(result.best.alarms):
        cells = []
        for side in (result.direct, result.best):
            cells.append(f"{side.alarms[at][1]:.2e}")
            if simulated:
                cells += [f"{side.simulated[at].rate:.2e}", f"{side.simulated[at].found:.0%}"]
        table.add_row(str(active), *cells)
    return table


def _tokens(title: str, rows: Sequence[ReadToken]) -> Table:
    table = new_table(f"\n{title}", ">effective dim.", ">row", "token")
    for row in rows:
        table.add_row(_number(row.effective_dim), str(row.index), Text("" if row.token is None else visible(row.token)))
    return table
