"""`repcap reproduce`: the published numbers, recomputed and corrected, and a report of it."""

from __future__ import annotations

from typing import Annotated

import typer

from repcap.console.common import JsonOption, note, print_json, progress, stdout, warn
from repcap.console.derive import Options, command_of
from repcap.errors import InputError
from repcap.verbs import part
from repcap.verbs.reproduce import show
from repcap.verbs.reproduce.study import GROUPS, OTHERS, reproduce

OutOption = Annotated[
    str | None,
    typer.Option("--out", help="Write report.md, report.html, records.json and figures here.", metavar="DIR"),
]
OnlyOption = Annotated[
    str | None,
    typer.Option("--only", help="Some groups, with commas: random, optimised, capacities, packings, models."),
]
CheckOption = Annotated[
    bool, typer.Option("--check", help="Exit 1 if a number departs from the printed one at its precision.")
]
NotesOption = Annotated[bool, typer.Option("--notes", help="Print the remark to each line, too.")]
ClaimsOption = Annotated[bool, typer.Option("--claims", help="Claims of others against the bracket, nothing else.")]


@command_of(reproduce, leave=("groups",))
def command(
    options: Options,
    out: OutOption = None,
    only: OnlyOption = None,
    check: CheckOption = False,
    notes: NotesOption = False,
    claims: ClaimsOption = False,
    json: JsonOption = False,
) -> None:
    """Recompute the published numbers: as printed, the paper's way, and corrected.

    Everything is computed now, from data in the package; nothing is downloaded and no GPU is needed. The source is
    A. Guha, arXiv 2606.02765. --check ignores lines whose inputs are inferred (~) and statements (✗ ?).

    [bold]Examples[/bold]

        repcap reproduce
        repcap reproduce --out report/
        repcap reproduce --only models --json
    """
    groups = GROUPS if only is None else tuple(name.strip() for name in only.split(",") if name.strip())
    if claims:
        groups = (OTHERS,)
    if not groups:
        raise InputError(f"--only names no group: use {', '.join(GROUPS)}")
    if out is not None and set(groups) != set(GROUPS):
        raise InputError("--out writes the whole report: leave --only out")
    with progress("recomputing", "groups") as tick:
        found = reproduce(groups, **options, on_progress=tick)
    if out is not None:
        with progress("drawing", "figures") as tick:
            for path in part("reproduce", "write_report").write_report(found, out, on_progress=tick):
                note(f"wrote {path}")
    if json:
        print_json(found)
    else:
        for shown in show.parts(found, notes):
            stdout().print(shown)
    if check and found.departures:
        warn(f"{len(found.departures)} numbers depart: {', '.join(found.departures)}")
        raise typer.Exit(1)
