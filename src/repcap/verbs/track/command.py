"""`repcap track`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from repcap.console import common
from repcap.console.common import DeviceOption, JsonOption, SeedOption

if TYPE_CHECKING:
    from rich.console import RenderableType

    from repcap.verbs.track.study import Drift, Track


def command(
    sources: Annotated[
        list[str],
        typer.Argument(help="Checkpoints, a pattern ('run/checkpoint-*') or a run directory.", metavar="CHECKPOINT..."),
    ],
    matrix: Annotated[str, typer.Option("--matrix", help="embedding, unembedding, or a tensor name.")] = "embedding",
    z: Annotated[float, typer.Option("--z", help="epsilon = mean + z std.")] = 2.0,
    seed: SeedOption = 0,
    device: DeviceOption = "auto",
    plot: Annotated[Path | None, typer.Option("--plot", help="Draw it: a .png, .svg or .pdf.")] = None,
    json: JsonOption = False,
) -> None:
    """Follow epsilon over the checkpoints of a training run, and how far the rows turn.

    Steps are read from names such as checkpoint-1000, step_500 or org/name@step3000, and order the checkpoints.
    """
    from repcap.verbs.track.study import TrackInterrupted, track

    common.check_plot(plot)
    try:
        with common.progress("Checkpoints", "checkpoints") as on_progress:
            result = track(sources, matrix, z=z, device=device, seed=seed, on_progress=on_progress)
    except TrackInterrupted as stop:  # what was measured is shown
        _report(stop.track, None, json)
        raise
    _report(result, plot, json)


def _report(result: Track, plot: Path | None, json: bool) -> None:
    if json:
        common.print_json(result)
    else:
        _show(result)
    for source, reason in result.failures:
        common.warn(f"left out {source}: {reason}")
    if plot is not None:
        from repcap.verbs.compare.figure import draw_track

        for written in draw_track(result.to_dict(), plot):
            common.note(f"wrote {written}")


def _show(result: Track) -> None:
    from repcap.console.prose import prose

    console = common.stdout()
    console.print(_table(result))
    console.print(prose(result.sentence))
    for note in result.notes:
        console.print(prose(f"Note: {note}."))


def _table(result: Track) -> RenderableType:
    from rich.text import Text

    from repcap.text import shorten

    table = common.new_table(
        None, ">step", "checkpoint", ">epsilon", ">± se", ">ratio", "class", ">to first", ">to last one"
    )
    for point in result.points:
        found = point.measurement
        table.add_row(
            "?" if point.step is None else str(point.step),
            Text(shorten(point.source, 18)),
            f"{found.epsilon:.5f}",
            "" if found.epsilon_se is None else f"{found.epsilon_se:.1g}",
            f"{found.epsilon_ratio:.2f}",
            found.class_name,
            _cosine(point.to_first),
            _cosine(point.to_previous),
        )
    return table


def _cosine(drift: Drift | None) -> str:
    return "" if drift is None else f"{drift.mean:.6f}"
