"""`repcap pairs`."""

from __future__ import annotations

from repcap.console import common
from repcap.console.common import JsonOption, PlotOption, SourceArgument
from repcap.console.derive import Options, command_of
from repcap.verbs.pairs.study import pairs


@command_of(pairs)
def command(options: Options, source: SourceArgument, plot: PlotOption = None, json: JsonOption = False) -> None:
    """The exact distribution of the cosines of all pairs of rows, and what its tail holds.

    Mean and standard deviation hide the tail. This multiplies every pair once, in blocks, and gives quantiles,
    the share of pairs beyond epsilon on both sides, and the most alike and most opposed tokens.
    """
    common.check_plot(plot)
    with common.progress("Pairs", "pairs" if options["engine"] is None else "lots") as on_progress:
        result = pairs(source, **options, on_progress=on_progress)
    common.present(result, json, plot)
