"""Which records a page is made of, as the command line names them: what `report` and `serve` share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from repcap.errors import InputError
from repcap.page.records import load_records, published_records

SourcesArgument = Annotated[
    list[Path] | None,
    typer.Argument(help="Result stores (repcap survey) and JSON files of records.", show_default=False),
]
PublishedOption = Annotated[bool, typer.Option("--published", help="The published table of 45 models, too.")]


def gather(sources: list[Path] | None, published: bool) -> tuple[list[dict[str, Any]], str]:
    """(records of all sources, where they come from in words)."""
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
