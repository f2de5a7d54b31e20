"""`repcap fit`: fit the laws to a table of packings."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from repcap.console.common import (
    JsonOption,
    SeedOption,
    check_plot,
    new_table,
    note,
    print_json,
    progress,
    stdout,
    warn,
)
from repcap.errors import InputError
from repcap.laws import LAWS
from repcap.text import printable

if TYPE_CHECKING:
    from repcap.laws.fitting.data import PackingTable
    from repcap.laws.fitting.fit import Fit
    from repcap.laws.fitting.holdout import By, Comparison

DataArgument = Annotated[
    str,
    typer.Argument(
        help="CSV with columns k, d, epsilon; a result store (.sqlite, .db); or a shipped table: optimized, random.",
        metavar="DATA",
    ),
]
LawOption = Annotated[
    str, typer.Option("--law", help=f"{', '.join(LAWS)}, several with commas, or all.", metavar="LAW")
]
OnOption = Annotated[str, typer.Option("--on", help="Least squares on epsilon (as published) or on log epsilon.")]
DegenerateOption = Annotated[
    bool, typer.Option("--include-degenerate", help="Use the cells with k <= d too; ratio and full give 0 there.")
]
BootstrapOption = Annotated[int, typer.Option("--bootstrap", help="Draws for the intervals; 0 for none.", min=0)]
HoldoutOption = Annotated[
    str, typer.Option("--holdout", help="Cross-validate by random cells, by whole d (extrapolates), or none.")
]
FoldsOption = Annotated[
    int | None, typer.Option("--folds", help="Folds of --holdout cells; 10, or the number of cells.", min=2)
]
PlotOption = Annotated[
    str | None, typer.Option("--plot", help="Draw data, surface and residuals: .png, .svg or .pdf.", metavar="FILE")
]


def command(
    data: DataArgument,
    law: LawOption = "all",
    on: OnOption = "epsilon",
    include_degenerate: DegenerateOption = False,
    bootstrap: BootstrapOption = 500,
    holdout: HoldoutOption = "cells",
    folds: FoldsOption = None,
    seed: SeedOption = 0,
    plot: PlotOption = None,
    as_json: JsonOption = False,
) -> None:
    """Fit the laws to packings (k, d, epsilon) and say which predicts unseen cells best.

    Errors are of epsilon, whatever is minimised. NRMSE is the RMSE over the range of epsilon. AIC and the held-out
    error are on the fitted scale: compare them between laws, not between tables. Intervals are 95 % bootstrap
    percentiles over cells.

    [bold]Examples[/bold]

        repcap fit optimized
        repcap fit cells.csv --law ratio,full --on log --plot fit.png
        repcap fit optimized --include-degenerate --holdout d --json
    """
    from repcap.laws.fitting.holdout import compare
    from repcap.studies.packings import packings

    if holdout not in ("cells", "d", "none"):
        raise InputError(f"--holdout {holdout}: use cells, d or none")
    if on not in ("epsilon", "log"):
        raise InputError(f"cannot fit on {on!r}: use --on epsilon or --on log")
    check_plot(None if plot is None else Path(plot))
    every = law == "all"
    laws = tuple(LAWS) if every else tuple(dict.fromkeys(name.strip() for name in law.split(",")))
    table = packings(data)
    shared: dict[str, Any] = {"on": on, "include_degenerate": include_degenerate, "seed": seed}
    fits, left_out = _fit_each(table, laws, bootstrap, skip=every, shared=shared)
    if not fits:
        raise InputError(f"{table.source}: no law can be fitted to {len(table)} cells; give more cells with k > d")
    for name, error in left_out:
        warn(f"{name} left out: {error}")
    comparison = None
    if holdout != "none":
        try:
            comparison = compare(table, [found.law for found in fits], by=cast("By", holdout), folds=folds, **shared)
        except InputError as error:
            warn(f"no held-out comparison: {error}")
    if as_json:
        print_json(_record(fits, comparison))
    else:
        _print(fits, comparison)
    if plot is not None:
        from repcap.page.fit_figures import draw_fit

        for path in draw_fit(table, fits, plot):
            note(f"wrote {path}")


def _fit_each(
    table: PackingTable, laws: tuple[str, ...], bootstrap: int, *, skip: bool, shared: dict[str, Any]
) -> tuple[list[Fit], list[tuple[str, InputError]]]:
    """The laws fitted; with `skip`, also those that the table cannot carry, and why."""
    from repcap.verbs.fit.study import fit

    fits: list[Fit] = []
    left_out: list[tuple[str, InputError]] = []
    for name in laws:
        try:
            with progress(f"bootstrap of {name}", "draws") as tick:
                fits.append(fit(table, name, bootstrap=bootstrap, on_progress=tick, **shared))
        except InputError as error:  # noqa: PERF203 - four laws
            if not skip:
                raise
            left_out.append((name, error))
    return fits, left_out


def _record(fits: list[Fit], comparison: Comparison | None) -> dict[str, Any]:
    """One law gives its own record; several give a list of them."""
    if len(fits) == 1:
        held = {} if comparison is None else {"held_out": comparison.ranking[0].to_dict()}
        return {**fits[0].to_dict(), **held}
    return {
        "fits": [found.to_dict() for found in fits],
        "best": None if comparison is None else comparison.best,
        "comparison": None if comparison is None else comparison.to_dict(),
    }


def _print(fits: list[Fit], comparison: Comparison | None) -> None:
    first = fits[0]
    console = stdout()
    scale = "epsilon" if first.on == "epsilon" else "ln epsilon"
    console.print(f"{first.n} cells of {printable(first.source)}, least squares on {scale}", markup=False)
    if first.excluded:
        console.print(f"{first.excluded} cells with k <= d left out (see --include-degenerate)", style="dim")
    console.print()
    errors = new_table(None, "law", ">R²", ">RMSE", ">NRMSE", ">MAPE", ">max error", ">AIC", ">held out")
    for found in fits:
        held = "" if comparison is None else f"{comparison.of(found.law).score:.5f}"
        errors.add_row(
            *(found.law, f"{found.r2:.4f}", f"{found.rmse:.5f}", f"{found.nrmse:.2%}", f"{found.mape:.1%}"),
            *(f"{found.max_error:.4f}", f"{found.aic:.1f}", held),
        )
    console.print(errors)
    console.print()
    _print_params(fits)
    shown = first if comparison is None else next(found for found in fits if found.law == comparison.best)
    _print_residuals(shown)
    if comparison is not None and len(fits) > 1:
        how = "whole dimensions" if comparison.ranking[0].by == "d" else f"{comparison.ranking[0].folds} folds of cells"
        console.print(f"Least held-out error ({how}, RMSE of {scale}): {comparison.best}", style="bold")
    console.print(f"Fitted range: {_range_text(shown)}. Outside it every law extrapolates.", soft_wrap=False)
    if first.degenerate_included:
        warn(f"{first.degenerate_included} cells with k <= d are in: relative errors there are of optimiser residue")


def _print_params(fits: list[Fit]) -> None:
    table = new_table(None, "law", "parameter", ">fitted", ">95 % interval")
    for found in fits:
        for position, (name, value) in enumerate(found.params.items()):
            interval = found.ci.get(name)
            between = f"{interval[0]:.4g} to {interval[1]:.4g}" if interval else ""
            table.add_row(found.law if position == 0 else "", name, f"{value:.6g}", between)
    stdout().print(table)
    stdout().print()
    for found in fits:
        stdout().print(f"{found.law:<12} {found.formula}", style="dim", markup=False)
    stdout().print()


def _print_residuals(found: Fit) -> None:
    table = new_table(f"Residuals of {found.law} by d", ">d", ">cells", ">bias", ">RMSE", ">MAPE", ">max error")
    for row in found.by_d:
        table.add_row(
            *(f"{row['d']:g}", f"{row['n']}", f"{row['bias']:+.5f}", f"{row['rmse']:.5f}"),
            *(f"{row['mape']:.1%}", f"{row['max_error']:.5f}"),
        )
    stdout().print(table)
    stdout().print()


def _range_text(found: Fit) -> str:
    names = {"k": "k", "d": "d", "k_over_d": "k/d"}
    return ", ".join(f"{text} {found.range[key][0]:.5g} to {found.range[key][1]:.5g}" for key, text in names.items())
