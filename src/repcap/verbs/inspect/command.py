"""`repcap inspect`: what could be measured in a source."""

from __future__ import annotations

from typing import Annotated

import typer

from repcap.console import common
from repcap.console.common import JsonOption
from repcap.console.derive import Options, command_of
from repcap.sources.roles.inspection import Inspection
from repcap.text import printable
from repcap.verbs.inspect import show
from repcap.verbs.inspect.study import inspect


@command_of(inspect)
def command(
    options: Options,
    source: Annotated[str, typer.Argument(help="File, directory, org/name[@rev], hf://..., pkg://module/file.")],
    all_tensors: Annotated[bool, typer.Option("--all", help="List every tensor.")] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Exit code 1 if rows and token ids differ, or there is any warning.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """List the matrices of SOURCE that could be measured: name, shape, dtype, role, tied or not, and what decided it.

    Reads headers, and a few rows to compare embedding and unembedding. --check is for scripts: the exit code is 1 where
    the embedding has rows without a token (padding) or tokens without a row, or where anything is warned of.
    """
    found = inspect(source, **options)
    if json:
        record = found.to_dict() | ({"problems": list(found.problems)} if check else {})
        common.print_json(record if all_tensors else {key: record[key] for key in record if key != "tensors"})
        _end(found, check)
        return
    for part in show.parts(found, all_tensors):
        common.stdout().print(part)
    for warning in found.warnings:
        common.warn(warning)
    if check:
        common.stdout().print("problems: " + (printable("; ".join(found.problems)) or "none"), markup=False)
    _end(found, check)


def _end(found: Inspection, check: bool) -> None:
    if check and found.problems:
        raise typer.Exit(1)
