"""What the terminal shows of a reproduction."""

from __future__ import annotations

import itertools
import textwrap
from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from repcap.console.common import new_table
from repcap.console.prose import prose
from repcap.numerics import format_power
from repcap.verbs.reproduce.claims import STATUSES, Claim
from repcap.verbs.reproduce.study import Reproduction

MARKS = {"agrees": "=", "departs": "≠", "inferred": "~", "contradicted": "✗", "unsupported": "?", "added": "+"}


def parts(result: Reproduction, notes: bool = False) -> Iterator[RenderableType]:
    """notes: the remark to each claim, too."""
    for group, claims in itertools.groupby(result.claims, key=lambda claim: claim.group):
        shown = list(claims)
        yield _claims(group, shown)
        if notes:
            yield from _notes(shown)
        yield Text()
    if result.models:
        yield _models(result)
        yield Text("-: published as indeterminate (epsilon >= 0.1). times random: epsilon over 2/√d.", style="dim")
        yield Text("proven: between the best set that exists and the best upper bound.", style="dim")
        yield Text()
    for status in STATUSES:
        number = sum(claim.status == status for claim in result.claims)
        if number:
            yield Text(f"{MARKS[status]} {number:>2} {status}: {STATUSES[status]}", style="dim")
    yield prose(result.reading)


def _claims(group: str, claims: Sequence[Claim]) -> Table:
    table = new_table(group, "", "claim", "published", "recomputed", "corrected")
    for column, (least, most) in zip(table.columns, ((1, 1), (25, 25), (10, 10), (15, 15), (21, 21)), strict=True):
        column.min_width, column.max_width = least, most
    for claim in claims:
        table.add_row(MARKS[claim.status], claim.title, claim.published, claim.recomputed, claim.corrected)
    return table


def _notes(claims: Sequence[Claim]) -> Iterator[Text]:
    for claim in claims:
        if claim.note:
            text = f"{claim.title}: {claim.note}"
            yield Text(textwrap.fill(text, 78, initial_indent="  ", subsequent_indent="    "), style="dim")


def _models(result: Reproduction) -> Table:
    table = new_table("Table 1", "", "model", ">d", ">ε", ">times\nrandom", ">published", ">full", ">proven, log10")
    table.padding = (0, 1, 0, 0)
    for row in result.models:
        law = "" if row.indeterminate else format_power(row.log10_k)
        low = max(row.explicit_log10_k, row.exists_log10_k)
        table.add_row(
            *(MARKS["agrees" if row.agrees else "departs"], row.model, str(row.d), f"{row.epsilon:.5f}"),
            *(f"{row.epsilon_ratio:.2f}", "-" if row.published == "indeterminate" else row.published, law),
            f"{low:.1f} to {row.upper_log10_k:.1f}",
        )
    return table
