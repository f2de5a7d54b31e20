"""What the terminal shows of `track`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.text import Text

from repcap.console.common import new_table
from repcap.console.prose import prose
from repcap.text import shorten
from repcap.verbs.track.points import Drift, TrackPoint
from repcap.verbs.track.study import Track


def parts(result: Track) -> Iterator[RenderableType]:
    both = any(point.unembedding for point in result.points)
    yield _table([(point.step, point) for point in result.points], "embedding" if both else None)
    if both:
        yield _table([(point.step, point.unembedding) for point in result.points if point.unembedding], "unembedding")
        yield _alignment(result)
    yield prose(result.reading)
    yield from (prose(f"Note: {note}.") for note in result.notes)


def _table(points: Sequence[tuple[int | None, TrackPoint]], title: str | None) -> RenderableType:
    table = new_table(title, ">step", "checkpoint", ">epsilon", ">± se", ">ratio", "class", ">to first", ">to last one")
    for step, found in points:
        table.add_row(
            "?" if step is None else str(step),
            Text(shorten(found.source, 18)),
            f"{found.epsilon:.5f}",
            "" if found.epsilon_se is None else f"{found.epsilon_se:.1g}",
            f"{found.epsilon_ratio:.2f}",
            found.class_name,
            _cosine(found.to_first),
            _cosine(found.to_previous),
        )
    return table


def _alignment(result: Track) -> RenderableType:
    table = new_table(
        "embedding and unembedding, row by row", ">step", ">mean cosine", ">5 % quantile", ">length ratio"
    )
    for point in result.points:
        if (found := point.alignment) is not None:
            step = "?" if point.step is None else str(point.step)
            table.add_row(step, f"{found.mean:.6f}", f"{found.low:.6f}", f"{found.norm_ratio:.4f}")
    return table


def _cosine(drift: Drift | None) -> str:
    return "" if drift is None else f"{drift.mean:.6f}"
