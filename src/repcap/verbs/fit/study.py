"""`fit`: laws fitted to packings, from a result store too, and which predicts cells that it has not seen."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Annotated, Any, Literal

from repcap.errors import InputError
from repcap.laws import LAWS
from repcap.laws.fitting import fit as fitting
from repcap.laws.fitting.data import PackingTable
from repcap.laws.fitting.fit import Fit, TableLike
from repcap.laws.fitting.holdout import Comparison, compare
from repcap.laws.fitting.least_squares import Scale
from repcap.options import Option, Seed, chosen, verb
from repcap.result import Result
from repcap.studies.packings import packings

LawName = Annotated[str, Option("A name of repcap.laws.LAWS.")]
On = Annotated[Scale, Option("Least squares on epsilon (as published) or on log epsilon.", choices=("epsilon", "log"))]
IncludeDegenerate = Annotated[bool, Option("Use the cells with k <= d too; ratio and full give 0 there.")]
Bootstrap = Annotated[int, Option("Draws for the intervals; 0 for none.", least=0)]
Confidence = Annotated[float, Option("Of the intervals.", above=0.0, below=1.0, shown=False)]
Holdout = Annotated[
    Literal["cells", "d", "none"],
    Option("Cross-validate by random cells, by whole d (extrapolates), or none.", choices=("cells", "d", "none")),
]
Folds = Annotated[int | None, Option("Folds of --holdout cells; 10, or the number of cells.", least=2)]

OnDraw = Callable[[int, int], None]


@verb
def fit(
    table: TableLike,
    law: LawName = "ratio",
    *,
    on: On = "epsilon",
    include_degenerate: IncludeDegenerate = False,
    bootstrap: Bootstrap = 0,
    confidence: Confidence = fitting.CONFIDENCE,
    seed: Seed = 0,
    on_progress: OnDraw | None = None,
) -> Fit:
    """Fit one law to a table of packings.

    Parameters
    ----------
    table
        a `PackingTable`, a path (CSV or result store), `optimized` or `random` for the shipped ones, or a tuple of
        arrays (k, d, epsilon) of shape (cells,).
    law
        a name of `repcap.laws.LAWS`: `jl`, `ratio`, `full`, `welch-power`.
    on
        least squares on `epsilon` (as published; large epsilon, small d, weigh most) or on `log` epsilon (every cell's
        relative error weighs the same).
    include_degenerate
        use the cells with k <= d too; a law that is about k > d predicts 0 there, as published.
    bootstrap
        draws of the bootstrap over whole d (cells of one d are not independent); 0 for no intervals. Of one optimiser
        the interval says how much the fit hangs on single d, not how wrong the law is.
    confidence, seed
        of the bootstrap.

    Raises
    ------
    InputError
        unknown law, too few cells, an epsilon of 0 on the log scale, or a table that cannot be read.

    Time: milliseconds (a closed form, or tens of steps of O(cells)), and as much again for each draw. Memory O(cells).
    """
    return fitting.fit(
        packings(table),
        law,
        on=on,
        include_degenerate=include_degenerate,
        bootstrap=bootstrap,
        confidence=confidence,
        seed=seed,
        on_progress=on_progress,
    )


@dataclasses.dataclass(frozen=True, repr=False)
class Fits(Result):
    """Laws fitted to one table, and their held-out errors. left_out: laws that the table cannot carry, and why.

    comparison: None where none was asked for, or where the table cannot carry it (`not_compared` says why).
    """

    kind = "fit"

    fits: tuple[Fit, ...]
    comparison: Comparison | None
    left_out: tuple[tuple[str, str], ...] = ()
    not_compared: str = ""

    @property
    def shown(self) -> Fit:
        """The law of the least held-out error, or the first."""
        best = self.fits[0].law if self.comparison is None else self.comparison.best
        return next(found for found in self.fits if found.law == best)

    @property
    def title(self) -> str:
        return f"{len(self.fits)} laws fitted to {self.fits[0].n} cells of {self.fits[0].source}"

    @property
    def numbers(self) -> str:
        return ", ".join(f"{found.law} RMSE {found.rmse:.5f}" for found in self.fits)

    @property
    def reading(self) -> str:
        if self.comparison is None:
            return self.shown.reading
        return f"Least held-out error: {self.comparison.best}. {self.shown.reading}"

    def values(self) -> dict[str, Any]:
        """One law gives its own record; several give a list of them."""
        if len(self.fits) == 1:
            held = {} if self.comparison is None else {"held_out": self.comparison.ranking[0].to_dict()}
            return {**self.fits[0].values(), **held}
        return {
            "fits": [found.to_dict() for found in self.fits],
            "best": None if self.comparison is None else self.comparison.best,
            "comparison": None if self.comparison is None else self.comparison.to_dict(),
        }

    def rows(self) -> list[dict[str, Any]]:
        """One row a law."""
        keys = ("law", "r2", "rmse", "nrmse", "mape", "max_error", "aic", "n")
        return [{**{key: getattr(found, key) for key in keys}, **found.params} for found in self.fits]


@verb
def fit_laws(
    table: TableLike,
    laws: Annotated[tuple[str, ...] | None, Option("Names of laws; None for all that can be fitted.")] = None,
    *,
    on: On = "epsilon",
    include_degenerate: IncludeDegenerate = False,
    bootstrap: Bootstrap = 500,
    holdout: Holdout = "cells",
    folds: Folds = None,
    seed: Seed = 0,
    on_law: Callable[[str], OnDraw] | None = None,
) -> Fits:
    """`fit` for several laws on the same table, and cross-validation on the same folds.

    on_law: called with the name of each law as its fit begins; what it returns is called with (draws done, draws).

    Raises
    ------
    InputError
        as `fit`; with `laws` None only if no law at all can be fitted.
    """
    asked, data = dict(locals()), packings(table)
    shared = {name: asked[name] for name in ("on", "include_degenerate", "seed")}
    fits: list[Fit] = []
    left_out: list[tuple[str, str]] = []
    for name in LAWS if laws is None else dict.fromkeys(laws):
        try:
            tick = None if on_law is None else on_law(name)
            fits.append(fit(data, name, **chosen(fit, asked), on_progress=tick))
        except InputError as error:  # noqa: PERF203 - four laws
            if laws is not None:
                raise
            left_out.append((name, str(error)))
    if not fits:
        raise InputError(f"{data.source}: no law can be fitted to {len(data)} cells; give more cells with k > d")
    comparison, why = _compared(data, fits, holdout, folds, shared)
    return Fits(tuple(fits), comparison, tuple(left_out), why)


def _compared(
    data: PackingTable, fits: list[Fit], holdout: str, folds: int | None, shared: dict[str, Any]
) -> tuple[Comparison | None, str]:
    if holdout == "none":
        return None, ""
    try:
        return compare(data, [found.law for found in fits], by=holdout, folds=folds, **shared), ""
    except InputError as error:
        return None, str(error)


__all__ = ["Fit", "Fits", "fit", "fit_laws"]
