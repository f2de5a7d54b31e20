"""`repcap report`: the page and the figures of many models."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from repcap.console import common
from repcap.errors import InputError
from repcap.page.gathering import PublishedOption, SourcesArgument, gather
from repcap.page.site import build

FORMATS = ("png", "svg", "pdf")


def command(
    sources: SourcesArgument = None,
    published: PublishedOption = False,
    out: Annotated[Path, typer.Option("--out", "-o", help="Directory to write into.")] = Path("report"),
    title: Annotated[str | None, typer.Option("--title", help="Heading of the page.", show_default=False)] = None,
    figures: Annotated[bool, typer.Option("--figures", help="Publication figures too (needs matplotlib).")] = False,
    formats: Annotated[str, typer.Option("--formats", help="Of the figures, with commas.")] = ",".join(FORMATS),
    json: common.JsonOption = False,
) -> None:
    """Write a page of many models: charts, a sortable table, a calculator of capacities.

    The page is one file that opens from disk and loads nothing from any network. Beside it are table.csv and
    rows.json, and with --figures the same charts as PNG, SVG and PDF.

    [bold]repcap report --published --out page[/bold] needs no measurement of yours. Records of the same matrix, such as
    those of repcap measure and repcap pairs, become one model.
    """
    wanted = _formats(formats) if figures else ()
    records, origin = gather(sources, published)
    site = build(records, out, title=title, origin=origin, figures=wanted)
    if json:
        common.print_json(site)
        return
    for reason in site.skipped:
        common.warn(f"not shown: {reason}")
    common.present(site)
    common.note(f"open it in a browser, or run: repcap serve {out}")


def _formats(text: str) -> tuple[str, ...]:
    wanted = tuple(word.strip().lower().removeprefix(".") for word in text.split(",") if word.strip())
    unknown = [word for word in wanted if word not in FORMATS]
    if unknown or not wanted:
        raise InputError(f"unknown figure format {(unknown or [''])[0]!r}: use {', '.join(FORMATS)}")
    return wanted
