"""`repcap track`."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Annotated

import typer

from repcap.console import common
from repcap.console.batches import resumable
from repcap.console.common import JsonOption, PlotOption
from repcap.console.derive import Options, command_of
from repcap.verbs.track.study import Track, TrackInterrupted, track


@command_of(track)
def command(
    options: Options,
    checkpoints: Annotated[
        list[str],
        typer.Argument(help="Checkpoints, a pattern ('run/checkpoint-*') or a run directory.", metavar="CHECKPOINT..."),
    ],
    plot: PlotOption = None,
    json: JsonOption = False,
) -> None:
    """Follow epsilon over the checkpoints of a training run, and how far the rows turn.

    Steps are read from names such as checkpoint-1000, step_500 or org/name@step3000, and order the checkpoints.
    """
    common.check_plot(plot)
    store = options["store"]
    keeping = resumable(str(store)) if store else contextlib.nullcontext()
    try:
        with keeping, common.progress("Checkpoints", "checkpoints") as on_progress:
            result = track(checkpoints, **options, on_progress=on_progress)
    except TrackInterrupted as stop:  # what was measured is shown
        _report(stop.track, json, None)
        raise
    _report(result, json, plot)


def _report(result: Track, json: bool, plot: Path | None) -> None:
    for source, reason in result.failures:
        common.warn(f"left out {source}: {reason}")
    common.present(result, json, plot)
