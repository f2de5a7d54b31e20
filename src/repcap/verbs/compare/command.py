"""`repcap compare`."""

from __future__ import annotations

from typing import Annotated

import typer

from repcap.console import common
from repcap.console.common import JsonOption, PlotOption
from repcap.console.derive import Options, command_of
from repcap.verbs.compare.study import compare


@command_of(compare)
def command(
    options: Options,
    a: Annotated[str, typer.Argument(help="File, directory, Hub name, pkg:// ... (see repcap inspect).")],
    b: Annotated[str | None, typer.Argument(help="A second source; without it A's unembedding.")] = None,
    plot: PlotOption = None,
    json: JsonOption = False,
) -> None:
    """Compare two matrices: epsilon side by side, row against row, neighbours against neighbours.

    With one model its embedding against its unembedding; with two the same matrix of both: base and chat, an earlier
    and a later checkpoint, quantised and full.
    """
    common.check_plot(plot)
    with common.progress("Comparing", "%") as on_progress:
        result = compare(a, b, **options, on_progress=on_progress)
    if plot is not None and result.corresponding is None:
        common.warn(f"no figure: {result.reason}")
        plot = None
    common.present(result, json, plot)
