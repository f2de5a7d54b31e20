"""`repcap inspect`: what could be measured in a source."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from repcap.console.common import JsonOption, new_table, print_json, stdout, warn
from repcap.text import printable

if TYPE_CHECKING:
    from repcap.sources.roles.inspection import Candidate, Inspection


def command(
    source: Annotated[str, typer.Argument(help="File, directory, org/name[@rev], hf://..., pkg://module/file.")],
    all_tensors: Annotated[bool, typer.Option("--all", help="List every tensor.")] = False,
    allow_truncated: Annotated[
        bool, typer.Option("--allow-truncated", help="Read a truncated file as far as it goes.")
    ] = False,
    allow_full_download: Annotated[
        bool, typer.Option("--allow-full-download", help="Download a whole file from a server that sends no parts.")
    ] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Exit code 1 if rows and token ids differ, or there is any warning.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """List the matrices of SOURCE that could be measured: name, shape, dtype, role, tied or not, and what decided it.

    Reads headers, and a few rows to compare embedding and unembedding. --check is for scripts: the exit code is 1 where
    the embedding has rows without a token (padding) or tokens without a row, or where anything is warned of.
    """
    from repcap.sources import inspect_source

    found = inspect_source(source, allow_truncated=allow_truncated, allow_full_download=allow_full_download)
    if as_json:
        print_json(_as_json(found, all_tensors) | ({"problems": list(found.problems)} if check else {}))
        _end(found, check)
        return
    _print(found, found.tensors if all_tensors else found.candidates)
    for warning in found.warnings:
        warn(warning)
    if check:
        stdout().print("problems: " + (printable("; ".join(found.problems)) or "none"), markup=False)
    _end(found, check)


def _end(found: Inspection, check: bool) -> None:
    if check and found.problems:
        raise typer.Exit(1)


def _as_json(found: Inspection, all_tensors: bool) -> dict[str, Any]:
    record = found.to_dict()
    if not all_tensors:
        del record["tensors"]
    return record


def _print(found: Inspection, shown: tuple[Candidate, ...]) -> None:
    console = stdout()
    console.print(printable(found.source), style="bold", markup=False)
    console.print(_headline(found), markup=False)
    table = new_table(None, "tensor", ">rows", ">dim", "dtype", "role")
    table.columns[0].overflow = "fold"  # a name cut short could not be given to --matrix
    for item in shown:
        table.add_row(*(Text(printable(cell)) for cell in _row(item)))
    console.print(table)
    for line in _facts(found):
        console.print(printable(line), markup=False)


def _headline(found: Inspection) -> str:
    parts = [found.format, f"{found.tensor_count} tensors", f"{found.parameters:,} elements"]
    if found.family:
        parts.append(f"names as in {found.family}" if found.family != "declared" else "roles as the model declares")
    if found.revision:
        parts.append(f"commit {found.revision[:12]}")
    return ", ".join(parts)


def _row(item: Candidate) -> tuple[str, ...]:
    role = "" if item.role == "matrix" else item.role
    if item.tied is not None and role:
        role += " (tied)" if item.tied else " (untied)"
    if item.rows is None or item.dim is None:
        shape = " x ".join(map(str, item.shape)) or "?"
        return item.name, shape if item.dtype != "unknown" else "?", "", item.dtype, role
    return item.name, str(item.rows), str(item.dim), item.dtype, role


def _facts(found: Inspection) -> list[str]:
    lines: list[str] = []
    if found.evidence:
        verdict = {True: "tied", False: "not tied", None: "tying unknown"}[found.tied]
        lines.append(f"{verdict}: {found.evidence}")
    lines += [item.evidence for item in found.candidates if item.role == "decoder" and item.evidence]
    if found.token_count is not None:
        rows = f", {found.padding_rows} rows of the embedding beyond them" if found.padding_rows is not None else ""
        lines.append(f"tokenizer: {found.token_count} ids{rows}")
    facts = found.config if found.vocab_size is None else {**found.config, "vocab_size": found.vocab_size}
    if facts:
        lines.append("config: " + ", ".join(f"{key} {_plain(value)}" for key, value in facts.items()))
    return lines


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
