"""`repcap neighbours`."""

from __future__ import annotations

from repcap.console import common
from repcap.console.common import JsonOption, PlotOption, SourceArgument
from repcap.console.derive import Options, command_of
from repcap.errors import InputError
from repcap.verbs.neighbours.study import neighbours


@command_of(neighbours)
def command(options: Options, source: SourceArgument, plot: PlotOption = None, json: JsonOption = False) -> None:
    """Nearest and most opposed tokens, analogies, word pairs, and an overview of the vocabulary.

    Without --token, --analogy or --word-pairs it scans all pairs: primary tokens (nearest neighbour of many others)
    with their clusters, how much of the right tail is forms of one word, and rows that are nearly identical.
    --plot draws the word pairs.
    """
    common.check_plot(plot)
    if plot is not None and options["word_pairs"] is None:
        raise InputError("--plot draws word pairs: give --word-pairs FILE, or --word-pairs shipped")
    with common.progress("Neighbours", "%") as on_progress:
        found = neighbours(source, **options, on_progress=on_progress)
    common.present(found, json, plot)
