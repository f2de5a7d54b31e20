"""What the terminal shows of `neighbours`."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from repcap.console.common import new_table
from repcap.console.prose import prose
from repcap.text import printable, visible
from repcap.verbs.neighbours.neighbourhood import (
    Analogy,
    Cluster,
    Neighbour,
    Neighbourhood,
    Overview,
    PairKind,
    TokenNeighbours,
)


def parts(found: Neighbourhood) -> Iterator[RenderableType]:
    yield Text(printable(found.source), style="bold")
    yield Text(printable(f"{found.matrix}, {found.count} x {found.dim}, epsilon {found.epsilon:.4f}"))
    yield from (_token(one) for one in found.tokens)
    yield from (_analogy(one) for one in found.analogies)
    if found.word_pairs:
        yield _pairs(found)
    if found.overview is not None:
        yield from _overview(found.overview)


def _text(token: str | None) -> Text:
    return Text("" if token is None else visible(token, 20))


def _lines(chosen: tuple[Neighbour, ...]) -> list[tuple[str, Text, str]]:
    return [(str(one.row), _text(one.token), f"{one.cosine:.4f}") for one in chosen]


def _token(found: TokenNeighbours) -> Table:
    name = visible(found.token) if found.token is not None else ""
    table = new_table(None, ">row", "nearest", ">cosine", "  ", ">row", "most opposed", ">cosine")
    table.title = Text(f"\n{name} (row {found.row})")
    for near, far in zip(_lines(found.nearest), _lines(found.opposed), strict=True):
        table.add_row(*near, "", *far)
    return table


def _analogy(found: Analogy) -> Table:
    table = new_table(None, ">", ">row", "nearest", ">cosine")
    rank = f'; "{printable(found.expected or "")}" is number {found.rank}' if found.rank is not None else ""
    table.title = Text(f"\n{printable(found.expression)} ({found.excluded} forms of these words left out){rank}")
    for place, line in enumerate(_lines(found.nearest), start=1):
        table.add_row(str(place), *line)
    return table


def _pairs(found: Neighbourhood) -> Table:
    table = new_table(None, "kind", ">pairs", ">mean cosine", ">least", ">most", ">beyond epsilon", ">missing")
    table.title = Text("\nword pairs")
    for kind in found.word_pairs:
        table.add_row(kind.kind, str(len(kind.cosines)), *_range(kind), str(kind.missing))
    return table


def _range(kind: PairKind) -> tuple[str, str, str, str]:
    if not kind.cosines:
        return ("", "", "", "")
    return (f"{kind.mean:.4f}", f"{min(kind.cosines):.4f}", f"{max(kind.cosines):.4f}", f"{kind.above:.0%}")


def _overview(found: Overview) -> Iterator[RenderableType]:
    quantiles = ", ".join(f"{cosine:.3f} ({share:.0%})" for share, cosine in found.nearest_quantiles)
    yield prose(f"Cosine of a row with its nearest neighbour, quantiles: {quantiles}.")
    title = Text(f"\n{found.primary_count} primary tokens: nearest neighbour of more than {found.tau} others")
    yield _primary(title, found.primary) if found.primary else title
    if found.tail is not None:
        tail = found.tail
        yield prose(
            f"{tail.beyond:,} of {tail.pairs:,} pairs are beyond epsilon. Forms of one word (case, plural, leading "
            f"space) are {tail.lexical_beyond:,} of them, {tail.share:.2%}; of all {tail.lexical_pairs:,} pairs of "
            f"forms {tail.lexical_beyond / max(tail.lexical_pairs, 1):.0%} are beyond epsilon."
        )
    if found.suspects:
        yield _suspects(found)


def _primary(title: Text, primary: tuple[Cluster, ...]) -> Table:
    table = new_table(None, ">row", "primary token", ">cluster", "some of the tokens nearest to it")
    table.title = title
    for cluster in primary:
        members = " ".join(f"#{one.row}" if one.token is None else visible(one.token, 14) for one in cluster.members)
        table.add_row(str(cluster.row), _text(cluster.token), str(cluster.size), Text(members, no_wrap=True))
    return table


def _suspects(found: Overview) -> Table:
    table = new_table(None, ">row", "token", ">twin", "its token", ">cosine", ">influence", ">length")
    groups = len(found.twin_groups)
    table.title = Text(
        f"\n{found.suspect_count} rows nearly equal another ({groups} groups): duplicates or untrained tokens"
    )
    for one in found.suspects:
        table.add_row(
            str(one.row),
            _text(one.token),
            str(one.twin),
            _text(one.twin_token),
            f"{one.cosine:.6f}",
            f"{one.influence:+.1e}",
            f"{one.length:.3f}",
        )
    return table
