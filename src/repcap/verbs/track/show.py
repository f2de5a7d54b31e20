"""What the terminal shows of `track`."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from repcap.console.common import new_table
from repcap.console.prose import prose
from repcap.text import shorten
from repcap.verbs.track.study import Drift, Track


def parts(result: Track) -> Iterator[RenderableType]:
    yield _table(result)
    yield prose(result.reading)
    yield from (prose(f"Note: {note}.") for note in result.notes)


def _table(result: Track) -> RenderableType:
    table = new_table(None, ">step", "checkpoint", ">epsilon", ">± se", ">ratio", "class", ">to first", ">to last one")
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
