"""`repcap neighbours`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from repcap.console import common
from repcap.console.common import DeviceOption, JsonOption
from repcap.errors import InputError
from repcap.text import printable, visible

if TYPE_CHECKING:
    from repcap.verbs.neighbours.study import Analogy, Neighbour, Neighbourhood, Overview, PairKind, TokenNeighbours


def command(
    source: Annotated[str, typer.Argument(help="File, directory, Hub name, pkg:// ... (see repcap inspect).")],
    matrix: Annotated[str, typer.Option("--matrix", help="embedding, unembedding, or a tensor name.")] = "embedding",
    token: Annotated[
        list[str] | None, typer.Option("--token", help="A word, #row, or '\" exact\"'. May be given again.")
    ] = None,
    analogy: Annotated[
        list[str] | None, typer.Option("--analogy", help="Such as 'king - man + woman'. May be given again.")
    ] = None,
    expect: Annotated[str | None, typer.Option("--expect", help="Give the rank of this word in the analogy.")] = None,
    word_pairs: Annotated[
        str | None,
        typer.Option("--word-pairs", help="Pairs by kind: a CSV of kind,left,right, or `shipped`.", metavar="FILE"),
    ] = None,
    overview: Annotated[
        bool | None, typer.Option("--overview/--no-overview", help="Scan the whole vocabulary (default: if alone).")
    ] = None,
    top: Annotated[int, typer.Option("--top", min=1, max=10_000, help="Rows in each list.")] = 10,
    tau: Annotated[int, typer.Option("--tau", min=0, help="A primary token is nearest to more than tau others.")] = 20,
    z: Annotated[float, typer.Option("--z", help="epsilon = mean + z std.")] = 2.0,
    device: DeviceOption = "auto",
    plot: Annotated[Path | None, typer.Option("--plot", help="Draw the word pairs: .png, .svg or .pdf.")] = None,
    json: JsonOption = False,
) -> None:
    """Nearest and most opposed tokens, analogies, word pairs, and an overview of the vocabulary.

    Without --token, --analogy or --word-pairs it scans all pairs: primary tokens (nearest neighbour of many others)
    with their clusters, how much of the right tail is forms of one word, and rows that are nearly identical.
    """
    from repcap.verbs.neighbours.study import neighbours

    common.check_plot(plot)
    if plot is not None and word_pairs is None:
        raise InputError("--plot draws word pairs: give --word-pairs FILE, or --word-pairs shipped")
    with common.progress("Neighbours", "pairs") as on_progress:
        found = neighbours(
            source,
            matrix,
            tokens=token or (),
            analogies=analogy or (),
            expect=expect,
            word_pairs=True if word_pairs == "shipped" else (word_pairs or False),
            overview=overview,
            top=top,
            tau=tau,
            z=z,
            device=device,
            on_progress=on_progress,
        )
    if json:
        common.print_json(found)
    else:
        _show(found)
    if plot is not None:
        from repcap.verbs.neighbours.figure import draw_word_pairs

        for written in draw_word_pairs(found.to_dict(), plot):
            common.note(f"wrote {written}")


def _show(found: Neighbourhood) -> None:
    console = common.stdout()
    console.print(Text(printable(found.source), style="bold"))
    console.print(Text(printable(f"{found.matrix}, {found.count} x {found.dim}, epsilon {found.epsilon:.4f}")))
    parts: list[Any] = [_token(one) for one in found.tokens]
    parts += [_analogy(one) for one in found.analogies]
    parts += [_pairs(found)] if found.word_pairs else []
    for part in parts:
        console.print(part)
    if found.overview is not None:
        _overview(found.overview)


def _text(token: str | None) -> Text:
    return Text("" if token is None else visible(token, 20))


def _lines(chosen: tuple[Neighbour, ...]) -> list[tuple[str, Text, str]]:
    return [(str(one.row), _text(one.token), f"{one.cosine:.4f}") for one in chosen]


def _token(found: TokenNeighbours) -> Any:
    name = visible(found.token) if found.token is not None else ""
    table = common.new_table(None, ">row", "nearest", ">cosine", "  ", ">row", "most opposed", ">cosine")
    table.title = Text(f"\n{name} (row {found.row})")
    for near, far in zip(_lines(found.nearest), _lines(found.opposed), strict=True):
        table.add_row(*near, "", *far)
    return table


def _analogy(found: Analogy) -> Any:
    table = common.new_table(None, ">", ">row", "nearest", ">cosine")
    rank = f'; "{printable(found.expected or "")}" is number {found.rank}' if found.rank is not None else ""
    table.title = Text(f"\n{printable(found.expression)} ({found.excluded} forms of these words left out){rank}")
    for place, line in enumerate(_lines(found.nearest), start=1):
        table.add_row(str(place), *line)
    return table


def _pairs(found: Neighbourhood) -> Any:
    table = common.new_table(None, "kind", ">pairs", ">mean cosine", ">least", ">most", ">beyond epsilon", ">missing")
    table.title = Text("\nword pairs")
    for kind in found.word_pairs:
        table.add_row(kind.kind, str(len(kind.cosines)), *_range(kind), str(kind.missing))
    return table


def _range(kind: PairKind) -> tuple[str, str, str, str]:
    if not kind.cosines:
        return ("", "", "", "")
    return (f"{kind.mean:.4f}", f"{min(kind.cosines):.4f}", f"{max(kind.cosines):.4f}", f"{kind.above:.0%}")


def _overview(found: Overview) -> None:
    from repcap.console.prose import prose

    console = common.stdout()
    quantiles = ", ".join(f"{cosine:.3f} ({share:.0%})" for share, cosine in found.nearest_quantiles)
    console.print(prose(f"Cosine of a row with its nearest neighbour, quantiles: {quantiles}."))
    table = common.new_table(None, ">row", "primary token", ">cluster", "some of the tokens nearest to it")
    table.title = Text(f"\n{found.primary_count} primary tokens: nearest neighbour of more than {found.tau} others")
    for cluster in found.primary:
        members = " ".join(f"#{one.row}" if one.token is None else visible(one.token, 14) for one in cluster.members)
        table.add_row(str(cluster.row), _text(cluster.token), str(cluster.size), Text(members, no_wrap=True))
    console.print(table if found.primary else table.title)
    if found.tail is not None:
        tail = found.tail
        console.print(
            prose(
                f"{tail.beyond:,} of {tail.pairs:,} pairs are beyond epsilon. Forms of one word (case, plural, leading "
                f"space) are {tail.lexical_beyond:,} of them, {tail.share:.2%}; of all {tail.lexical_pairs:,} pairs of "
                f"forms {tail.lexical_beyond / max(tail.lexical_pairs, 1):.0%} are beyond epsilon."
            )
        )
    suspects = common.new_table(None, ">row", "token", ">twin", "its token", ">cosine", ">influence", ">length")
    groups = len(found.twin_groups)
    suspects.title = Text(
        f"\n{found.suspect_count} rows nearly equal another ({groups} groups): duplicates or untrained tokens"
    )
    for one in found.suspects:
        suspects.add_row(
            str(one.row),
            _text(one.token),
            str(one.twin),
            _text(one.twin_token),
            f"{one.cosine:.6f}",
            f"{one.influence:+.1e}",
            f"{one.length:.3f}",
        )
    if found.suspects:
        console.print(suspects)
