"""`repcap results list|show|export|dataset|delete`."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from repcap.console.common import JsonOption, cell, new_table, note, print_json, stdout, warn
from repcap.errors import InputError

if TYPE_CHECKING:
    from repcap.jobs.store import Failure, Store, Stored

app = typer.Typer(no_args_is_help=True, rich_markup_mode="rich")

StoreOption = Annotated[str, typer.Option("--store", help="Result store.", metavar="FILE")]
KindOption = Annotated[str | None, typer.Option("--kind", help="measure, published or pack.")]
SHORT = 8
"""So many digits of a key are shown; any unambiguous beginning names a result."""


@app.callback()
def _results() -> None:
    """Look into a result store of repcap survey or repcap sweep."""


def open_store(path: str, mode: Any = "read") -> Store:
    from repcap.jobs.store import Store

    return Store(path, mode)


@app.command("list")
def list_results(
    store: StoreOption = "repcap.sqlite",
    kind: KindOption = None,
    failures: Annotated[bool, typer.Option("--failures", help="List what failed, and why, instead.")] = False,
    json: JsonOption = False,
) -> None:
    """List the results in a store, or what failed."""
    with open_store(store) as opened:
        failed = opened.failures(kind)
        if failures:
            _list_failures(store, failed, json)
            return
        results = [{"key": item.key, "kind": item.kind, **_brief(item)} for item in opened.records(kind)]
    if json:
        print_json({"store": store, "results": results, "failures": len(failed)})
        return
    table = new_table(None, "Key", "Kind", "What", "Matrix", ">d", ">Value", "Stored")
    for item in results:
        value = "" if item["value"] is None else f"{item['value']:.5f}"
        texts = (item["key"][:SHORT], item["kind"], str(item["what"]), str(item["matrix"]), str(item["d"]), value)
        table.add_row(*map(cell, texts), item["created"][:10])
    stdout().print(table)
    if failed:
        note(f"{len(failed)} failed: repcap results list --failures --store {store}")


def _list_failures(store: str, failed: list[Failure], json: bool) -> None:
    if json:
        print_json({"store": store, "failures": failed})
        return
    table = new_table(None, "Key", "What", "Reason", ">Tries")
    for item in failed:
        table.add_row(item.key[:SHORT], cell(item.label), cell(item.reason), str(item.attempts))
    stdout().print(table)


def _brief(item: Stored) -> dict[str, Any]:
    """What one line says of a result: epsilon of a model, coherence of a packing."""
    record = item.record
    if "coherence" in record:
        what = f"{record['k']} lines, seed {record['seed']}"
        brief = {"what": what, "matrix": "", "d": record["d"], "value": record["coherence"]}
        return brief | {"created": item.created}
    matrix = record.get("role") or record.get("matrix") or ""
    return {
        "what": record.get("name", ""),
        "matrix": matrix,
        "d": record.get("dim", ""),
        "value": record.get("epsilon"),
        "created": item.created,
    }


def full_key(opened: Store, prefix: str) -> str:
    """The one key that begins with `prefix`.

    Raises
    ------
    InputError
        if there is none, or more than one.
    """
    keys = opened.find(prefix)
    if not keys:
        raise InputError(f"no result in {opened.path} has a key that begins with {prefix!r}: see repcap results list")
    if len(keys) > 1 and prefix not in keys:
        more = "" if len(keys) < 5 else " ..."
        raise InputError(f"{prefix!r} begins {len(keys)} keys: {', '.join(keys[:4])}{more}; give more of it")
    return prefix if prefix in keys else keys[0]


@app.command()
def show(
    key: Annotated[str, typer.Argument(help="Key of a result, or its beginning.", metavar="KEY")],
    store: StoreOption = "repcap.sqlite",
) -> None:
    """Print one result, or one failure, whole, as JSON."""
    with open_store(store) as opened:
        name = full_key(opened, key)
        failed = next((item for item in opened.failures() if item.key == name), None)
        print_json(opened.get(name) if failed is None else failed)


def _records(store: str, kind: str | None) -> list[Stored]:
    """What a store holds, and that it holds something."""
    with open_store(store) as opened:
        results = list(opened.records(kind))
    if not results:
        raise InputError(f"{store} holds no results{'' if kind is None else f' of kind {kind}'}")
    return results


@app.command()
def export(
    store: StoreOption = "repcap.sqlite",
    output: Annotated[
        str | None, typer.Option("--output", "-o", help="File to write; without it, standard output.", metavar="FILE")
    ] = None,
    form: Annotated[
        str | None, typer.Option("--format", help="csv, parquet, json or markdown; by the file's suffix.")
    ] = None,
    kind: KindOption = None,
) -> None:
    """Write the results as a table: CSV and Parquet with one column a number, JSON whole, Markdown to read."""
    from repcap.verbs.results import export as exporting

    chosen = exporting.format_of(output, form)
    if output is None and chosen == "parquet":
        raise InputError("Parquet is no text: give a file with --output")
    results = _records(store, kind)
    if output is None:
        sys.stdout.write(exporting.to_text(results, chosen))
    else:
        exporting.export(results, output, chosen)
        note(f"{len(results)} results written to {output}")


@app.command()
def dataset(
    folder: Annotated[Path, typer.Argument(help="Folder to write: a new one, or empty.", metavar="FOLDER")],
    store: StoreOption = "repcap.sqlite",
    form: Annotated[str, typer.Option("--format", help="jsonl, csv or parquet.")] = "jsonl",
    kind: KindOption = None,
    title: Annotated[str, typer.Option("--title", help="Heading of the card.")] = "Geometry of language models",
    licence: Annotated[str | None, typer.Option("--license", help="As the Hub names it: cc-by-4.0.")] = None,
) -> None:
    """Write the results as a folder with a dataset card, ready for the Hub. Nothing is sent: `hf upload` does that."""
    from repcap.verbs.results.dataset import write_dataset

    results = _records(store, kind)
    written = write_dataset(results, folder, form, title, licence)
    note(f"{len(results)} results written to {folder}: {', '.join(written)}")
    local = [str(item.record["source"]) for item in results if Path(str(item.record.get("source", ""))).is_absolute()]
    if local:
        warn(f"{len(local)} results name files of this machine, such as {local[0]}: look before you upload")
    sys.stdout.write(f"hf upload NAME/DATASET {shlex.quote(str(folder))} --repo-type dataset\n")


@app.command()
def delete(
    keys: Annotated[list[str] | None, typer.Argument(help="Keys, or their beginnings.", metavar="[KEY]...")] = None,
    store: StoreOption = "repcap.sqlite",
    kind: Annotated[str | None, typer.Option("--kind", help="Delete all results of this kind.")] = None,
    failures: Annotated[bool, typer.Option("--failures", help="Forget all failures (of this kind).")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    json: JsonOption = False,
) -> None:
    """Delete results, or forget failures. The next survey or sweep does them again."""
    with open_store(store) as opened:  # read first: a wrong name must not make a file
        chosen = [full_key(opened, key) for key in keys or ()]
        if failures:
            chosen += [item.key for item in opened.failures(kind)]
        elif kind is not None:
            chosen += [item.key for item in opened.records(kind)]
    if not chosen:
        raise InputError("nothing to delete: give keys, --kind or --failures (see repcap results list)")
    if not yes:
        if not sys.stdin.isatty():
            raise InputError(f"{len(chosen)} results would be deleted from {store}: say --yes")
        typer.confirm(f"Delete {len(chosen)} from {store}?", abort=True, err=True)
    with open_store(store, "write") as opened:
        gone = opened.delete(list(dict.fromkeys(chosen)))
    if json:
        print_json({"store": store, "deleted": gone})
    else:
        note(f"{gone} deleted from {store}")
