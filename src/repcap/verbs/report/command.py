"""`repcap report`: the page and the figures of many models."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from repcap.console import common
from repcap.errors import InputError

FORMATS = ("png", "svg", "pdf")

SourcesArgument = Annotated[
    list[Path] | None,
    typer.Argument(help="Result stores (repcap survey) and JSON files of records.", show_default=False),
]
PublishedOption = Annotated[bool, typer.Option("--published", help="The published table of 45 models, too.")]


def command(
    sources: SourcesArgument = None,
    published: PublishedOption = False,
    out: Annotated[Path, typer.Option("--out", "-o", help="Directory to write into.")] = Path("report"),
    title: Annotated[str | None, typer.Option("--title", help="Heading of the page.", show_default=False)] = None,
    figures: Annotated[bool, typer.Option("--figures", help="Publication figures too (needs matplotlib).")] = False,
    formats: Annotated[str, typer.Option("--formats", help="Of the figures, with commas.")] = ",".join(FORMATS),
    as_json: common.JsonOption = False,
) -> None:
    """Write a page of many models: charts, a sortable table, a calculator of capacities.

    The page is one file that opens from disk and loads nothing from any network. Beside it are table.csv and
    rows.json, and with --figures the same charts as PNG, SVG and PDF.

    [bold]repcap report --published --out page[/bold] needs no measurement of yours. Records of the same matrix, such as
    those of repcap measure and repcap pairs, become one model.
    """
    from repcap.page.site import build

    wanted = _formats(formats) if figures else ()
    records, origin = gather(sources, published)
    site = build(records, out, title=title, origin=origin, figures=wanted)
    if as_json:
        common.print_json(site.to_dict())
        return
    for reason in site.skipped:
        common.warn(f"not shown: {reason}")
    console = common.stdout()
    models = "model" if site.models == 1 else "models"
    console.print(f"{site.models} {models} on {site.path} ({site.bytes / 1000:.0f} kB)", markup=False)
    for path in site.figures:
        console.print(str(path), markup=False)
    common.note(f"open it in a browser, or run: repcap serve {out}")


def gather(sources: list[Path] | None, published: bool) -> tuple[list[dict[str, Any]], str]:
    """(records of all sources, where they come from in words)."""
    from repcap.page.records import load_records, published_records

    if not sources and not published:
        raise InputError("give a result store or a JSON file of records, or --published")
    records, names = [], []
    for source in sources or ():
        records += load_records(source)
        names.append(source.name)
    if published:
        records += published_records()
        names.append("the published table of 45 models")
    return records, " and ".join(names)


def _formats(text: str) -> tuple[str, ...]:
    wanted = tuple(word.strip().lower().removeprefix(".") for word in text.split(",") if word.strip())
    unknown = [word for word in wanted if word not in FORMATS]
    if unknown or not wanted:
        raise InputError(f"unknown figure format {(unknown or [''])[0]!r}: use {', '.join(FORMATS)}")
    return wanted
