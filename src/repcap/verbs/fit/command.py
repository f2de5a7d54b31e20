"""`repcap fit`: fit the laws to a table of packings."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Annotated

import typer

from repcap.console import common
from repcap.console.common import JsonOption, PlotOption
from repcap.console.derive import Options, command_of
from repcap.laws import LAWS
from repcap.matrix import ProgressFn
from repcap.studies.packings import packings
from repcap.verbs import part
from repcap.verbs.fit.study import fit_laws

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


@command_of(fit_laws, leave=("laws",))
def command(
    options: Options, data: DataArgument, law: LawOption = "all", plot: PlotOption = None, json: JsonOption = False
) -> None:
    """Fit the laws to packings (k, d, epsilon) and say which predicts unseen cells best.

    Errors are of epsilon, whatever is minimised. NRMSE is the RMSE over the range of epsilon. AIC and the held-out
    error are on the fitted scale: compare them between laws, not between tables. Intervals are 95 % bootstrap
    percentiles over whole d, as cells of one d are not independent.

    [bold]Examples[/bold]

        repcap fit optimized
        repcap fit cells.csv --law ratio,full --on log --plot fit.png
        repcap fit optimized --include-degenerate --holdout d --json
    """
    common.check_plot(plot)
    table = packings(data)
    with ExitStack() as bars:

        def on_law(name: str) -> ProgressFn:
            bars.close()
            return bars.enter_context(common.progress(f"bootstrap of {name}", "draws"))

        laws = None if law == "all" else tuple(name.strip() for name in law.split(","))
        found = fit_laws(table, laws, **options, on_law=on_law)
    for name, error in found.left_out:
        common.warn(f"{name} left out: {error}")
    if found.not_compared:
        common.warn(f"no held-out comparison: {found.not_compared}")
    common.present(found, json)
    if not json and (count := found.fits[0].degenerate_included):
        common.warn(f"{count} cells with k <= d are in: relative errors there are of optimiser residue")
    if plot is not None:
        for path in part("fit", "figure").draw(found.to_dict(), plot, table=table):
            common.note(f"wrote {path}")
