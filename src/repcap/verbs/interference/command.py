"""`repcap interference`."""

from __future__ import annotations

from typing import Annotated

import typer

from repcap.console import common
from repcap.console.common import JsonOption, PlotOption
from repcap.console.derive import Options, command_of
from repcap.console.values import numbers
from repcap.verbs.interference.study import METHODS, interference


@command_of(interference)
def command(
    options: Options,
    active: Annotated[str, typer.Option("--active", help="Active features: 8, or 1,2,4, or 1..64x2.")] = "1..32x2",
    methods: Annotated[str, typer.Option("--method", help="random, optimised, constructed; a comma list.")] = ",".join(
        METHODS
    ),
    plot: PlotOption = None,
    json: JsonOption = False,
) -> None:
    """Simulate reading s active features out of k directions in R^d: error, and whether the active ones are found.

    Capacity says how many directions fit at a coherence. This says what a linear readout can use of them.
    """
    common.check_plot(plot)
    with common.progress("Interference", "%") as on_progress:
        found = interference(
            active=[int(s) for s in numbers(active, "--active", whole=True)],
            methods=[name.strip() for name in methods.split(",")],
            on_progress=on_progress,
            **options,
        )
    common.present(found, json, plot)
