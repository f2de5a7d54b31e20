"""`repcap readout`."""

from __future__ import annotations

from repcap.console import common
from repcap.console.common import JsonOption, PlotOption, SourceArgument
from repcap.console.derive import Options, command_of
from repcap.verbs.readout.study import readout


@command_of(readout)
def command(options: Options, source: SourceArgument, plot: PlotOption = None, json: JsonOption = False) -> None:
    """How many tokens or features one vector can hold and still be told apart by a linear readout.

    Each row is read along itself, and by the linear readout of least interference, which undoes what a linear map of
    the space can undo. False alarms over the number of active rows follow from all cosines of 1024 rows.
    """
    common.check_plot(plot)
    with common.progress("Reading") as on_progress:
        result = readout(source, **options, on_progress=on_progress)
    common.present(result, json, plot)
