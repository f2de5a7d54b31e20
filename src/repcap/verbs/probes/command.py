"""`repcap probes`."""

from __future__ import annotations

from typing import Annotated

import typer

from repcap.console import common
from repcap.console.common import JsonOption, PlotOption
from repcap.console.derive import Options, command_of
from repcap.errors import InputError
from repcap.verbs.probes.show import SHOWN, parts
from repcap.verbs.probes.study import probes


@command_of(probes)
def command(
    options: Options,
    model: Annotated[str, typer.Argument(help="File, directory, Hub name, pkg:// ... (see repcap inspect).")],
    show: Annotated[str, typer.Option("--show", help="In the table: ratio, epsilon, alignment or length.")] = "ratio",
    plot: PlotOption = None,
    json: JsonOption = False,
) -> None:
    """The weights that read from and write to the residual stream, layer by layer.

    Rows of q, k, v, gate and up read from it, columns of o and down write to it (experts and what stands in place of
    attention, too): how near to orthogonal each set is, how near to the token embeddings its vectors come, how long
    they are, and the gains of the norms.
    """
    if show not in SHOWN:
        raise InputError(f"--show {show}: use {', '.join(SHOWN)}")
    common.check_plot(plot)
    with common.progress("Blocks", "blocks") as on_progress:
        result = probes(model, **options, on_progress=on_progress)
    if json:
        common.print_json(result)
    else:
        for part in parts(result, show):
            common.stdout().print(part)
    common.draw(result, plot)
