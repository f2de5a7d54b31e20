"""What the verbs share: options, where output goes, progress bars, one way to print a result.

Results go to stdout; progress, notes and warnings to stderr, so that `--json | jq` always works.
"""

from __future__ import annotations

import importlib.util
import json
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from repcap.console import settings
from repcap.errors import InputError, MissingExtraError
from repcap.files import check_directory
from repcap.matrix import ProgressFn
from repcap.result import Result
from repcap.text import json_text, jsonable, printable

JsonOption = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
SourceArgument = Annotated[
    str, typer.Argument(help="File, directory, Hub name, pkg:// ... (see repcap inspect).", metavar="SOURCE")
]
SourcesArgument = Annotated[
    list[str], typer.Argument(help="File, directory, Hub name, pkg:// ... (see repcap inspect).", metavar="SOURCE...")
]
PlotOption = Annotated[Path | None, typer.Option("--plot", help="Draw it: a .png, .svg or .pdf.")]


def stdout() -> Console:
    """Console for results. Made anew at each call, so that redirected streams and NO_COLOR are seen.

    Text is shown as it stands, in tables and their titles too: a token such as `[/INST]` is no markup.
    """
    return Console(file=sys.stdout, highlight=False, markup=False, soft_wrap=not sys.stdout.isatty())


def stderr() -> Console:
    """Console for progress, notes and warnings."""
    return Console(file=sys.stderr, highlight=False, markup=False)


def note(message: str) -> None:
    """A line for the reader on stderr; silent under --quiet."""
    if not settings.current.quiet:
        _say(message, "dim")


def warn(message: str) -> None:
    """A warning on stderr; silent under --quiet."""
    if not settings.current.quiet:
        _say(f"warning: {printable(message)}", "yellow")


def _say(message: str, style: str) -> None:
    console = stderr()
    # A path that is longer than the line stays whole, to be copied.
    lines = [
        textwrap.fill(line, console.width, break_long_words=False, break_on_hyphens=False)
        for line in message.splitlines()
    ]
    console.print("\n".join(lines), style=style, markup=False, soft_wrap=True)


def print_json(value: Any) -> None:
    """Strict JSON on stdout, indented; plain ASCII where the stream is not UTF-8."""
    narrow = (sys.stdout.encoding or "utf-8").lower().replace("-", "") != "utf8"
    text = json.dumps(jsonable(value), indent=2, ensure_ascii=narrow, allow_nan=False)
    sys.stdout.write(json_text(text) + "\n")


def cell(text: str) -> Text:
    r"""`text` for a table, as it stands: brackets are no markup, terminal codes are escapes.

    >>> cell("m[/x]\x1b[2J").plain
    'm[/x]\\x1b[2J'
    """
    return Text(printable(text))


def check_plot(path: Path | None) -> None:
    """Refuse a figure that could not be written, before the work that it shows.

    Raises
    ------
    InputError
        if the name ends in no known format, or its directory does not exist or cannot be written.
    MissingExtraError
        if matplotlib is not installed.
    """
    if path is None:
        return
    if path.suffix not in ("", ".png", ".svg", ".pdf"):
        raise InputError(f"cannot draw {path}: use a name that ends in .png, .svg or .pdf")
    require_plots()
    check_directory(path)


def present(result: Result, json: bool = False, plot: Path | None = None) -> None:
    """Show a result: as JSON, or as its folder's `show.parts` say; and draw it where --plot asks for a figure."""
    try:
        if json:
            print_json(result)
        else:
            console = stdout()
            for part in result.parts():
                console.print(part)
    finally:  # also where the reader has gone away (`| head`)
        draw(result, plot)


def draw(result: Result, plot: Path | None) -> None:
    """Write the figure of a result where --plot asks for one, and say which files these are."""
    if plot is not None:
        for written in result.plot(path=plot):
            note(f"wrote {written}")


def require_plots() -> None:
    """Refuse figures that cannot be drawn here, before the work that they show.

    Raises
    ------
    MissingExtraError
        if matplotlib is not installed.
    """
    if importlib.util.find_spec("matplotlib") is None:
        raise MissingExtraError("drawing a figure", "plots")


def new_table(title: str | None = None, *columns: str) -> Table:
    """A table in the house style; columns that start with `>` are right-aligned; without names there is no heading.

    The title may be wider than the table: rich would fold it to the width of that, so it is folded here, at 80.
    """
    names = [column.removeprefix(">") for column in columns]
    folded = None if title is None else "\n".join(textwrap.fill(line, 80) for line in title.split("\n"))
    table = Table(
        title=None if folded is None else Text(folded, style="bold", no_wrap=True, overflow="ignore"),
        title_justify="left",
        header_style="bold",
        box=None,
        pad_edge=False,
        show_header=not columns or any(names),
    )
    for name, column in zip(names, columns, strict=True):
        table.add_column(name, justify="right" if column.startswith(">") else "left")
    return table


class _Rate(ProgressColumn):
    """Units a second, with k/M/G; the unit is a field of the task. Of percent there is none."""

    def render(self, task: Task) -> Text:
        speed, unit = task.finished_speed or task.speed, task.fields["unit"]
        if not speed or unit == "%":
            return Text("")
        for scale, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
            if speed >= scale:
                return Text(f"{speed / scale:.1f} {letter}{unit}/s")
        if speed < 1:
            return Text(f"{1 / speed:.1f} s each")
        return Text(f"{speed:.0f} {unit}/s")


@contextmanager
def progress(label: str, unit: str = "rows") -> Iterator[ProgressFn]:
    """A progress bar on stderr with rate and time left, as a function of (done, total).

    Shown only on a terminal and without --quiet; it goes away when the block ends.
    """
    with progress_bars((label, unit)) as (update,):
        yield update


@contextmanager
def progress_bars(*bars: tuple[str, str]) -> Iterator[tuple[ProgressFn, ...]]:
    """Several bars, (label, unit) each, one below the other; all but the first appear when they are first updated."""
    console = stderr()
    shown = Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        TextColumn("{task.percentage:>3.0f}%"),
        _Rate(),
        TimeRemainingColumn(compact=True),
        console=console,
        transient=True,
        disable=settings.current.quiet or not console.is_terminal,
    )

    def updater(position: int, label: str, unit: str) -> ProgressFn:
        task = shown.add_task(label, total=None, visible=position == 0, unit=unit)

        def update(done: int, total: int) -> None:
            shown.update(task, completed=done, total=total, visible=True)

        return update

    with shown:
        yield tuple(updater(position, label, unit) for position, (label, unit) in enumerate(bars))
