"""Fit a law to a table of packings (k, d, epsilon): least squares, bootstrap intervals, residuals by dimension.

    from repcap.laws.fitting.fit import fit
    fit("optimized", "ratio").params                      # {'C': 1.293...}

Cells with k <= d are left out unless asked for and always counted: an orthonormal set has coherence 0 there, so their
epsilon is an optimiser's residue (1e-4 to 1e-3 in the published data), and relative errors on it say nothing.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from repcap.errors import InputError
from repcap.laws import named
from repcap.laws.fitting import metrics
from repcap.laws.fitting.data import Floats, PackingTable, load_table
from repcap.laws.fitting.least_squares import Scale, at_bounds, cells_for, predict, solve
from repcap.laws.law import Law
from repcap.numerics import finite
from repcap.result import Result

TableLike = PackingTable | str | os.PathLike[str] | tuple[npt.ArrayLike, npt.ArrayLike, npt.ArrayLike]

BOOTSTRAP = 500
"""Default number of bootstrap draws."""
CONFIDENCE = 0.95
FEWEST_D = 5
"""Different d from which on whole d are resampled."""


@dataclasses.dataclass(frozen=True, repr=False)
class Fit(Result):
    """A law fitted to a table. Errors are of epsilon whatever scale was fitted on; `aic` is on the fitted scale."""

    kind = "fit"

    law: str
    formula: str
    on: str
    """`epsilon` or `log`: what the squares are taken of."""
    params: dict[str, float]
    ci: dict[str, tuple[float, float]]
    """Bootstrap percentile intervals; empty without bootstrap."""
    r2: float
    rmse: float
    nrmse: float
    mape: float
    max_error: float
    aic: float
    n: int
    excluded: int
    """Cells with k <= d left out."""
    degenerate_included: int
    by_d: tuple[dict[str, float], ...]
    """Residuals by dimension: d, n, bias (mean of fitted - observed), rmse, mape, max_error."""
    range: dict[str, list[float]]
    """[least, largest] of k, d, k/d, epsilon of the fitted cells. Outside it the law extrapolates."""
    bootstrap: int
    confidence: float
    seed: int
    source: str
    resampled: Literal["", "d", "sizes", "cells"] = ""
    """What the bootstrap drew: whole d, since cells of one d are not independent; sizes (k, d) or cells where there are
    too few. Empty without bootstrap."""
    warnings: tuple[str, ...] = ()
    """Why the parameters say less than their digits."""

    def predict(self, k: npt.ArrayLike, d: npt.ArrayLike) -> Floats:
        """epsilon that the fitted law gives; k and d broadcast. Raises DomainError where k <= 1 or d < 1."""
        return np.asarray(named(self.law).epsilon(np.asarray(k), np.asarray(d), **self.params))

    def at(self, table: PackingTable) -> Floats:
        """epsilon that the fitted law gives every cell of a table, as in the fit: 0 where it is about k > d alone."""
        return predict(named(self.law), table, self.params)

    @property
    def title(self) -> str:
        return f"{self.law} fitted to {self.n} cells of {self.source}"

    @property
    def numbers(self) -> str:
        params = ", ".join(f"{name} {value:.6g}" for name, value in self.params.items())
        return f"{params}; R² {self.r2:.4f}, RMSE {self.rmse:.5f}, MAPE {self.mape:.1%}"

    @property
    def reading(self) -> str:
        low, high = self.range["k_over_d"]
        return (
            f"{self.formula}: off by {self.mape:.1%} on average and {self.max_error:.4f} at most, on k/d {low:.4g} to "
            f"{high:.4g}; outside that it extrapolates."
        )

    def values(self) -> dict[str, Any]:
        """Every number, JSON-ready: null where one is not finite."""
        record = super().values()
        record["ci"] = {name: list(interval) for name, interval in self.ci.items()}
        record["by_d"] = [{name: finite(value) for name, value in row.items()} for row in self.by_d]
        record |= {name: finite(record[name]) for name in ("r2", "nrmse", "mape", "aic")}
        law = named(self.law)
        record["published"] = {"params": dict(law.reference), "valid": law.valid}
        record["nrmse_normaliser"] = metrics.NRMSE_NORMALISER
        return record

    def rows(self) -> list[dict[str, Any]]:
        """Residuals, one row a dimension."""
        return [{"law": self.law, **row} for row in self.by_d]


def as_table(data: TableLike) -> PackingTable:
    """A table from a table, a path, the name of a shipped one, or a tuple of arrays (k, d, epsilon)."""
    if isinstance(data, PackingTable):
        return data
    if isinstance(data, tuple):
        if len(data) != 3:
            raise InputError(f"a table given as a tuple is (k, d, epsilon), got {len(data)} items")
        try:
            k, d, epsilon = (np.atleast_1d(np.asarray(column, dtype=np.float64)) for column in data)
        except (TypeError, ValueError) as error:
            raise InputError(f"a table as a tuple is (k, d, epsilon), three arrays of numbers: {error}") from error
        return PackingTable(k, d, epsilon)
    if not isinstance(data, (str, os.PathLike)):
        raise InputError(f"cannot fit to a {type(data).__name__}: give a path, a PackingTable or (k, d, epsilon)")
    return load_table(data)


def _residuals_by_d(cells: PackingTable, predicted: Floats) -> tuple[dict[str, float], ...]:
    rows = []
    for d in np.unique(cells.d):
        here = cells.d == d
        observed, fitted = cells.epsilon[here], predicted[here]
        found = metrics.Metrics.of(observed, fitted)
        bias = float(np.mean(fitted - observed))
        rows.append(
            {"d": float(d), "n": int(here.sum()), "bias": bias, "rmse": found.rmse}
            | {"mape": found.mape, "max_error": found.max_error}
        )
    return tuple(rows)


def _sizes(law: Law, cells: PackingTable) -> int:
    """Sizes (k, d) that say something of the law's parameters."""
    return len((cells if not law.above_d else cells.take(~cells.degenerate)).sizes())


def _groups(law: Law, cells: PackingTable) -> tuple[Literal["d", "sizes", "cells"], list[npt.NDArray[np.intp]]]:
    """What is drawn together, with the rows of each: all cells of one d, which share what the law does not know of that
    d; where there are few d, sizes with all their random starts; where there are few sizes, cells.
    """
    usable = cells if not law.above_d else cells.take(~cells.degenerate)
    if len(np.unique(usable.d)) >= max(FEWEST_D, len(law.params) + 1):
        return "d", [np.flatnonzero(cells.d == d) for d in np.unique(cells.d)]
    if len(usable.sizes()) > len(law.params):
        return "sizes", list(cells.sizes())
    return "cells", [np.array([row]) for row in range(len(cells))]


def _warnings(law: Law, cells: PackingTable, params: dict[str, float]) -> tuple[str, ...]:
    sizes, found = _sizes(law, cells), []
    if sizes <= len(params):
        found.append(f"{len(params)} parameters for {sizes} sizes (k, d): the fit is exact whatever the law")
    elif sizes <= 2 * len(params):
        found.append(f"{len(params)} parameters for {sizes} sizes (k, d): R² and errors say little")
    if names := at_bounds(law, cells, params):
        stand = "stands at the border" if len(names) == 1 else "stand at the borders"
        found.append(f"{' and '.join(names)} {stand} of the search: these cells do not determine the parameters")
    return tuple(found)


def _bootstrap(
    law: Law,
    cells: PackingTable,
    on: Scale,
    best: dict[str, float],
    draws: int,
    confidence: float,
    seed: int,
    groups: list[npt.NDArray[np.intp]],
    on_progress: Callable[[int, int], None] | None,
) -> dict[str, tuple[float, float]]:
    """Percentile intervals (Efron 1979) from resampled groups of cells. A draw with too few sizes is drawn again."""
    rng = np.random.default_rng(seed)
    found = np.empty((draws, len(law.params)))
    counts = [_sizes(law, cells.take(rows)) for rows in groups]
    for draw in range(draws):
        drawn = rng.integers(0, len(groups), len(groups))
        while sum(counts[i] for i in np.unique(drawn)) <= len(law.params):
            drawn = rng.integers(0, len(groups), len(groups))
        sample = cells.take(np.concatenate([groups[i] for i in drawn]))
        found[draw] = list(solve(law, sample, on, best).values())
        if on_progress is not None:
            on_progress(draw + 1, draws)
    tail = (1.0 - confidence) / 2.0
    low, high = np.quantile(found, [tail, 1.0 - tail], axis=0)
    return {name: (float(low[i]), float(high[i])) for i, name in enumerate(law.params)}


def fit(
    table: TableLike,
    law: str = "ratio",
    *,
    on: Scale = "epsilon",
    include_degenerate: bool = False,
    bootstrap: int = 0,
    confidence: float = CONFIDENCE,
    seed: int = 0,
    on_progress: Callable[[int, int], None] | None = None,
) -> Fit:
    """Fit one law to a table of packings; `repcap.fit` says what the options mean, and reads result stores too.

    Raises
    ------
    InputError
        unknown law, too few cells, or an epsilon of 0 on the log scale.
    """
    chosen, data = named(law), as_table(table)
    cells = cells_for(data, chosen, on, include_degenerate)
    if bootstrap < 0 or not 0.0 < confidence < 1.0:
        raise InputError(f"bootstrap = {bootstrap} must be 0 or more and confidence = {confidence} between 0 and 1")
    params = solve(chosen, cells, on)
    resampled, groups = _groups(chosen, cells)
    intervals = {}
    if bootstrap > 0:
        intervals = _bootstrap(chosen, cells, on, params, bootstrap, confidence, seed, groups, on_progress)
    return Fit(
        law=law,
        formula=chosen.formula,
        on=on,
        params=params,
        ci=intervals,
        **_errors(cells, predict(chosen, cells, params), on, len(params)),
        n=len(cells),
        excluded=len(data) - len(cells),
        degenerate_included=int(cells.degenerate.sum()),
        range=cells.ranges(),
        bootstrap=bootstrap,
        confidence=confidence,
        seed=seed,
        source=data.source,
        resampled=resampled if bootstrap > 0 else "",
        warnings=_warnings(chosen, cells, params),
    )


def _errors(cells: PackingTable, predicted: Floats, on: Scale, parameters: int) -> dict[str, Any]:
    """r2, rmse, nrmse, mape and max_error of epsilon, aic on the fitted scale, residuals by dimension."""
    found = metrics.Metrics.of(cells.epsilon, predicted)
    observed, fitted = (cells.epsilon, predicted) if on == "epsilon" else (np.log(cells.epsilon), np.log(predicted))
    return {
        "r2": found.r2,
        "rmse": found.rmse,
        "nrmse": found.nrmse,
        "mape": found.mape,
        "max_error": found.max_error,
        "aic": metrics.aic(observed, fitted, parameters),
        "by_d": _residuals_by_d(cells, predicted),
    }
