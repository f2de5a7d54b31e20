"""`fit`: a law fitted to packings, from a result store too."""

from __future__ import annotations

from collections.abc import Callable

from repcap.laws.fitting import fit as fitting
from repcap.laws.fitting.fit import Fit, TableLike
from repcap.laws.fitting.least_squares import Scale
from repcap.studies.packings import packings


def fit(
    table: TableLike,
    law: str = "ratio",
    *,
    on: Scale = "epsilon",
    include_degenerate: bool = False,
    bootstrap: int = 0,
    confidence: float = fitting.CONFIDENCE,
    seed: int = 0,
    on_progress: Callable[[int, int], None] | None = None,
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
        draws of the bootstrap over cells; 0 for no intervals. Cells of one optimiser are no independent sample:
        the interval says how much the fit hangs on single cells, not how wrong the law is.
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


__all__ = ["Fit", "fit"]
