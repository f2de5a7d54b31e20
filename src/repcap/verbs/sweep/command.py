"""`repcap sweep`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from repcap.console.batches import FAILED, resumable, show_batch
from repcap.console.common import DeviceOption, JsonOption, new_table, note, print_json, progress, stdout
from repcap.errors import InputError

if TYPE_CHECKING:
    from rich.table import Table

    from repcap.laws.fitting.data import PackingTable
    from repcap.laws.fitting.fit import Fit
    from repcap.verbs.sweep.study import Cell

StoreOption = Annotated[str, typer.Option("--store", help="Result store; made if missing.", metavar="FILE")]
EngineOption = Annotated[
    str, typer.Option("--engine", help="local, local:N, ray, ray:ADDRESS, or inline.", metavar="ENGINE")
]
TimeoutOption = Annotated[
    float | None, typer.Option("--timeout", help="Seconds after which a unit of work counts as hung.")
]
RetriesOption = Annotated[int, typer.Option("--retries", help="New tries after a worker was lost.")]

SHOWN = 40
"""A table of more cells than this shows the beginning; --json and repcap results have them all."""


def command(
    cells: Annotated[str | None, typer.Argument(help="YAML file of cells or a grid.", metavar="[CELLS.yaml]")] = None,
    grid: Annotated[str | None, typer.Option("--grid", help="small (minutes on 2 cores) or published.")] = None,
    k: Annotated[str, typer.Option("--k", help="Numbers of vectors, with commas.")] = "",
    d: Annotated[str, typer.Option("--d", help="Dimensions, with commas; cells have k > d.")] = "",
    seeds: Annotated[int | None, typer.Option("--seeds", help="Random starts for each (k, d).", min=1)] = None,
    steps: Annotated[int | None, typer.Option("--steps", help="Optimiser steps for each cell.")] = None,
    restarts: Annotated[int | None, typer.Option("--restarts", help="Restarts for each cell; the best counts.")] = None,
    seconds: Annotated[float | None, typer.Option("--seconds", help="Time limit for each cell.")] = None,
    symmetry: Annotated[
        str | None, typer.Option("--symmetry", help="auto (default), 1 (none), or the order of a rotation.")
    ] = None,
    constructions: Annotated[
        bool, typer.Option("--constructions", help="Let explicit constructions win where they are better.")
    ] = False,
    store: StoreOption = "repcap.sqlite",
    engine: EngineOption = "local",
    gpus_per_cell: Annotated[
        float, typer.Option("--gpus-per-cell", help="GPUs a worker holds; below 1, workers share one.")
    ] = 0.0,
    timeout: TimeoutOption = None,
    retries: RetriesOption = 2,
    device: DeviceOption = "auto",
    save_vectors: Annotated[
        str | None, typer.Option("--save-vectors", help="Directory for the vectors (.safetensors).", metavar="DIR")
    ] = None,
    refresh: Annotated[bool, typer.Option("--refresh", help="Pack again what is stored.")] = False,
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
    from repcap.verbs.sweep.study import sweep

    chosen, options = _cells(cells, grid, k, d, seeds)
    given = {
        "steps": steps, "restarts": restarts, "seconds": seconds, "symmetry": symmetry,
        "constructions": constructions or None,
    }  # fmt: skip
    options |= {name: value for name, value in given.items() if value is not None}
    with resumable(store), progress("Packing", "cells") as on_unit:
        batch = sweep(
            chosen,
            store,
            engine=engine,
            gpus_per_cell=gpus_per_cell,
            retries=retries,
            timeout=timeout,
            device=device,
            save_vectors=save_vectors,
            refresh=refresh,
            on_unit=on_unit,
            **options,
        )
    show_batch(batch, json, _table)
    if not batch.complete:
        raise typer.Exit(FAILED)


def _cells(path: str | None, name: str | None, k: str, d: str, seeds: int | None) -> tuple[list[Cell], dict[str, Any]]:
    from repcap.verbs.sweep.study import grid, named_grid, read_cells

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


def _table(results: list[Any]) -> Table:
    table = new_table(None, ">k", ">d", ">Seed", ">Coherence", ">Bound", ">/ bound", ">Seconds", "Method")
    ordered = sorted((item.record for item in results), key=lambda r: (r["d"], r["k"], r["seed"]))
    for record in ordered[:SHOWN]:
        table.add_row(
            str(record["k"]),
            str(record["d"]),
            str(record["seed"]),
            f"{record['coherence']:.6f}",
            f"{record['lower_bound']:.6f}",
            f"{record['coherence'] / record['lower_bound']:.3f}" if record["lower_bound"] else "",
            f"{record['seconds']:.1f}",
            record["method"].replace("cyclic of order ", "cyclic "),
        )
    if len(ordered) > SHOWN:
        table.caption = f"... and {len(ordered) - SHOWN} more: repcap results list --kind pack"
        table.caption_justify = "left"
    return table


def _report(store: str, out: str, json: bool) -> None:
    from pathlib import Path

    from repcap.jobs.store import Store
    from repcap.laws import LAWS
    from repcap.laws.fitting.data import from_records
    from repcap.verbs.sweep.figure import draw_sweep

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
    files = draw_sweep(records, folder / "sweep", drawn, ("png", "svg"))
    if json:
        print_json({"store": store, "cells": len(records), "files": [str(file) for file in files], "fits": fits})
        return
    listing = new_table(None, "Law", "Constants", ">MAPE", ">Cells")
    for item in fits:
        constants = ", ".join(f"{name} = {value:.4g}" for name, value in item.params.items())
        listing.add_row(item.law, constants, f"{item.mape:.2%}", str(item.n))
    stdout().print(listing)
    for file in files:
        note(f"wrote {file}")


def _fitted(table: PackingTable, law: str) -> Fit | None:
    from repcap.laws.fitting.fit import fit

    try:
        return fit(table, law, on="log")
    except InputError as error:
        note(f"{law} is not fitted: {error}")
        return None
