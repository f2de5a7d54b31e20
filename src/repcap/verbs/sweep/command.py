"""`repcap sweep`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from repcap import verbs
from repcap.console.batches import FAILED, resumable, show_batch
from repcap.console.common import JsonOption, note, print_json, progress, stdout
from repcap.console.derive import Options, command_of
from repcap.errors import InputError
from repcap.jobs.store import Store
from repcap.laws import LAWS
from repcap.laws.fitting.data import PackingTable, from_records
from repcap.laws.fitting.fit import Fit, fit
from repcap.verbs.sweep.show import fit_table, result_table
from repcap.verbs.sweep.study import Cell, grid, named_grid, read_cells, sweep


@command_of(sweep)
def command(
    options: Options,
    context: typer.Context,
    cells: Annotated[str | None, typer.Argument(help="YAML file of cells or a grid.", metavar="[CELLS.yaml]")] = None,
    named: Annotated[str | None, typer.Option("--grid", help="small (minutes on 2 cores) or published.")] = None,
    k: Annotated[str, typer.Option("--k", help="Numbers of vectors, with commas.")] = "",
    d: Annotated[str, typer.Option("--d", help="Dimensions, with commas; cells have k > d.")] = "",
    seeds: Annotated[int | None, typer.Option("--seeds", help="Random starts for each (k, d).", min=1)] = None,
    report: Annotated[
        str | None, typer.Option("--report", help="Pack nothing: draw the packings in this store.", metavar="STORE")
    ] = None,
    out: Annotated[str, typer.Option("--out", help="Directory for the figures of --report.", metavar="DIR")] = ".",
    json: JsonOption = False,
) -> None:
    """Pack every cell (k, d, seed) of a grid into a store, one result a cell.

    Run it again to go on: what is stored is skipped. Then `repcap fit STORE` fits the laws, and
    `repcap sweep --report STORE` draws coherence against bounds, published data and laws. The exit code is 3 where
    some cells failed.

    [bold]Examples[/bold]

        repcap sweep --grid small
        repcap sweep --k 100,200,400 --d 16,32 --seeds 3 --engine local:2
        repcap sweep cells.yaml --engine ray:head:6379 --gpus-per-cell 1
        repcap sweep --report repcap.sqlite --out figures
    """
    if report is not None:
        return _report(report, out, json)
    chosen, in_file = _cells(cells, named, k, d, seeds)
    # What was typed wins over the file, and the file over what was not.
    sources = {name: context.get_parameter_source(name) for name in options}
    typed = {name for name, source in sources.items() if source is not None and source.name == "COMMANDLINE"}
    options |= {name: value for name, value in in_file.items() if name not in typed}
    with resumable(options["store"]), progress("Packing", "cells") as on_unit:
        batch = sweep(chosen, **options, on_unit=on_unit)
    show_batch(batch, json, result_table)
    if not batch.complete:
        raise typer.Exit(FAILED)


def _cells(path: str | None, name: str | None, k: str, d: str, seeds: int | None) -> tuple[list[Cell], dict[str, Any]]:
    if sum((path is not None, name is not None, bool(k or d))) != 1:
        raise InputError("say which cells: a YAML file, --grid small|published, or --k and --d")
    if path is not None:
        if seeds is not None:
            raise InputError(f"--seeds goes with --grid, or --k and --d; write seeds into {path}")
        return read_cells(path)
    if name is not None:
        return named_grid(name, seeds), {}
    if not (k and d):
        raise InputError("--k and --d go together")
    return grid(_numbers(k, "--k"), _numbers(d, "--d"), seeds or 1), {}


def _numbers(text: str, option: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError as error:
        raise InputError(f"{option} {text}: whole numbers with commas between them, such as 16,32") from error


def _report(store: str, out: str, json: bool) -> None:
    with Store(store, "read") as opened:
        records = [item.record for item in opened.records("pack")]
    if not records:
        raise InputError(f"{store} holds no packings: run repcap sweep --store {store} first")
    table = from_records(records, store)
    fits = [found for law in LAWS if (found := _fitted(table, law)) is not None]
    folder = Path(out)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot make {folder}: {(error.strerror or str(error)).lower()}") from error
    drawn = [item for item in fits if item.law in ("ratio", "welch-power")]
    files = verbs.part("sweep", "figure").draw_sweep(records, folder / "sweep", drawn, ("png", "svg"))
    if json:
        print_json({"store": store, "cells": len(records), "files": [str(file) for file in files], "fits": fits})
        return
    stdout().print(fit_table(fits))
    for file in files:
        note(f"wrote {file}")


def _fitted(table: PackingTable, law: str) -> Fit | None:
    try:
        return fit(table, law, on="log")
    except InputError as error:
        note(f"{law} is not fitted: {error}")
        return None
