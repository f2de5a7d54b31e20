"""`repcap reproduce`: the published numbers, recomputed and corrected, and a report of it."""

from __future__ import annotations

import itertools
import textwrap
from typing import TYPE_CHECKING, Annotated

import typer

from repcap.console.common import JsonOption, new_table, note, print_json, progress, require_plots, stdout, warn
from repcap.errors import InputError
from repcap.numerics import format_power

if TYPE_CHECKING:
    from repcap.verbs.reproduce.study import Claim, Reproduction

MARKS = {"agrees": "=", "departs": "≠", "inferred": "~", "contradicted": "✗", "unsupported": "?", "added": "+"}

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
BootstrapOption = Annotated[int, typer.Option("--bootstrap", help="Draws behind each interval; 0 for none.", min=0)]
NotesOption = Annotated[bool, typer.Option("--notes", help="Print the remark to each line, too.")]
ClaimsOption = Annotated[bool, typer.Option("--claims", help="Claims of others against the bracket, nothing else.")]


def command(
    out: OutOption = None,
    only: OnlyOption = None,
    check: CheckOption = False,
    notes: NotesOption = False,
    claims: ClaimsOption = False,
    bootstrap: BootstrapOption = 300,
    as_json: JsonOption = False,
) -> None:
    """Recompute the published numbers: as printed, the paper's way, and corrected.

    Everything is computed now, from data in the package; nothing is downloaded and no GPU is needed. The source is
    A. Guha, arXiv 2606.02765. --check ignores lines whose inputs are inferred (~) and statements (✗ ?).

    [bold]Examples[/bold]

        repcap reproduce
        repcap reproduce --out report/
        repcap reproduce --only models --json
    """
    from repcap.verbs.reproduce.study import GROUPS, OTHERS, reproduce

    groups = GROUPS if only is None else tuple(name.strip() for name in only.split(",") if name.strip())
    if claims:
        groups = (OTHERS,)
    if not groups:
        raise InputError(f"--only names no group: use {', '.join(GROUPS)}")
    if out is not None and set(groups) != set(GROUPS):
        raise InputError("--out writes the whole report: leave --only out")
    if out is not None:
        require_plots()
    with progress("recomputing", "groups") as tick:
        found = reproduce(groups, bootstrap=bootstrap, on_progress=tick)
    if out is not None:
        from repcap.verbs.reproduce.write_report import write_report

        with progress("drawing", "figures") as tick:
            for path in write_report(found, out, on_progress=tick):
                note(f"wrote {path}")
    if as_json:
        print_json(found)
    else:
        _print_claims(found, notes)
        if found.rows:
            _print_rows(found)
        _print_end(found)
    if check and found.departures:
        warn(f"{len(found.departures)} numbers depart: {', '.join(found.departures)}")
        raise typer.Exit(1)


def _print_claims(found: Reproduction, notes: bool) -> None:
    console = stdout()
    for group, claims in itertools.groupby(found.claims, key=lambda claim: claim.group):
        shown = list(claims)
        table = new_table(group, "", "claim", "published", "recomputed", "corrected")
        for column, (least, most) in zip(table.columns, ((1, 1), (25, 25), (10, 10), (15, 15), (21, 21)), strict=True):
            column.min_width, column.max_width = least, most
        for claim in shown:
            table.add_row(MARKS[claim.status], claim.title, claim.published, claim.recomputed, claim.corrected)
        console.print(table)
        if notes:
            _print_notes(shown)
        console.print()


def _print_notes(claims: list[Claim]) -> None:
    for claim in claims:
        if claim.note:
            text = textwrap.fill(f"{claim.title}: {claim.note}", 78, initial_indent="  ", subsequent_indent="    ")
            stdout().print(text, style="dim", markup=False)


def _print_rows(found: Reproduction) -> None:
    table = new_table("Table 1", "", "model", ">d", ">ε", ">times\nrandom", ">published", ">full", ">proven, log10")
    table.padding = (0, 1, 0, 0)
    for row in found.rows:
        law = "" if row.indeterminate else format_power(row.log10_k)
        low = max(row.explicit_log10_k, row.exists_log10_k)
        table.add_row(
            *(MARKS["agrees" if row.agrees else "departs"], row.model, str(row.d), f"{row.epsilon:.5f}"),
            *(f"{row.epsilon_ratio:.2f}", "-" if row.published == "indeterminate" else row.published, law),
            f"{low:.1f} to {row.upper_log10_k:.1f}",
        )
    stdout().print(table)
    stdout().print("-: published as indeterminate (epsilon >= 0.1). null: 2/√d, random directions.", style="dim")
    stdout().print("proven: between the best set that exists and the best upper bound.", style="dim")
    stdout().print()


def _print_end(found: Reproduction) -> None:
    from repcap.verbs.reproduce.claims import STATUSES

    console = stdout()
    present = [status for status in STATUSES if any(claim.status == status for claim in found.claims)]
    for status in present:
        number = sum(claim.status == status for claim in found.claims)
        console.print(f"{MARKS[status]} {number:>2} {status}: {STATUSES[status]}", style="dim", markup=False)
    checked = sum(claim.status in ("agrees", "departs") for claim in found.claims) + len(found.rows)
    console.print(f"{checked - len(found.departures)} of {checked} checked numbers and rows agree.", style="bold")
