"""What the terminal shows of fitted laws."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from repcap.console.common import new_table
from repcap.console.prose import WIDTH, prose
from repcap.laws.fitting.fit import Fit
from repcap.laws.fitting.holdout import Comparison
from repcap.text import shorten
from repcap.verbs.fit.study import Fits


def parts(result: Fit | Fits) -> Iterator[RenderableType]:
    """Errors, parameters, residuals of the best law, what it was fitted on."""
    fits, comparison = (result.fits, result.comparison) if isinstance(result, Fits) else ((result,), None)
    shown = result.shown if isinstance(result, Fits) else result
    first = fits[0]
    scale = "epsilon" if first.on == "epsilon" else "ln epsilon"
    yield Text(f"{first.n} cells of {shorten(first.source, WIDTH)}, least squares on {scale}")
    if first.excluded:
        yield Text(f"{first.excluded} cells with k <= d left out (see --include-degenerate)", style="dim")
    yield _errors(fits, comparison)
    yield _params(fits)
    if said := _resampled(fits):
        yield prose(said)
    for found in fits:
        yield from (prose(f"Warning, {found.law}: {warning}.") for warning in found.warnings)
    yield Text("\n" + "\n".join(f"{found.law:<12} {found.formula}" for found in fits), style="dim")
    yield _residuals(shown)
    if comparison is not None and len(fits) > 1:
        how = "whole dimensions" if comparison.ranking[0].by == "d" else f"{comparison.ranking[0].folds} folds of cells"
        said = f"\nLeast held-out error ({how}, RMSE of {scale}): {comparison.best}"
        yield Text(said, style="bold")
    yield prose(f"Fitted range: {_range_text(shown)}. Outside it every law extrapolates.")


def _errors(fits: Sequence[Fit], comparison: Comparison | None) -> Table:
    table = new_table(
        "\nErrors of epsilon", "law", ">R²", ">RMSE", ">NRMSE", ">MAPE", ">max error", ">AIC", ">held out"
    )
    for found in fits:
        held = "" if comparison is None else f"{comparison.of(found.law).score:.5f}"
        table.add_row(
            *(found.law, f"{found.r2:.4f}", f"{found.rmse:.5f}", f"{found.nrmse:.2%}", f"{found.mape:.1%}"),
            *(f"{found.max_error:.4f}", f"{found.aic:.1f}", held),
        )
    return table


def _params(fits: Sequence[Fit]) -> Table:
    table = new_table("\nParameters", "law", "parameter", ">fitted", ">95 % interval")
    for found in fits:
        for position, (name, value) in enumerate(found.params.items()):
            interval = found.ci.get(name)
            between = f"{interval[0]:.4g} to {interval[1]:.4g}" if interval else ""
            table.add_row(found.law if position == 0 else "", name, f"{value:.6g}", between)
    return table


def _resampled(fits: Sequence[Fit]) -> str:
    """What the intervals come from, in words."""
    how = {
        "d": "whole d, as cells of one d are not independent",
        "sizes": "sizes (k, d), and cells of one d are not independent: the intervals are too narrow",
        "cells": "cells, as there are few sizes: the intervals are too narrow",
    }
    held = {found.resampled: [one.law for one in fits if one.resampled == found.resampled] for found in fits}
    said = [f"{how[key]}{f' ({chr(44).join(laws)})' if len(held) > 1 else ''}" for key, laws in held.items() if key]
    return f"Intervals are of {fits[0].bootstrap} draws of {'; of '.join(said)}." if said else ""


def _residuals(found: Fit) -> Table:
    table = new_table(f"\nResiduals of {found.law} by d", ">d", ">cells", ">bias", ">RMSE", ">MAPE", ">max error")
    for row in found.by_d:
        table.add_row(
            *(f"{row['d']:g}", f"{row['n']}", f"{row['bias']:+.5f}", f"{row['rmse']:.5f}"),
            *(f"{row['mape']:.1%}", f"{row['max_error']:.5f}"),
        )
    return table


def _range_text(found: Fit) -> str:
    names = {"k": "k", "d": "d", "k_over_d": "k/d"}
    return ", ".join(f"{text} {found.range[key][0]:.5g} to {found.range[key][1]:.5g}" for key, text in names.items())
