"""`repcap compare`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from repcap.console import common
from repcap.console.common import DeviceOption, JsonOption, SeedOption
from repcap.text import visible

if TYPE_CHECKING:
    from rich.console import RenderableType

    from repcap.verbs.compare.study import Comparison, NeighbourOverlap, RowCosines


def command(
    a: Annotated[str, typer.Argument(help="File, directory, Hub name, pkg:// ... (see repcap inspect).")],
    b: Annotated[str | None, typer.Argument(help="A second source; without it A's unembedding.")] = None,
    matrix: Annotated[str, typer.Option("--matrix", help="What to compare: embedding, unembedding, a name.")] = (
        "embedding"
    ),
    matrix_b: Annotated[str | None, typer.Option("--matrix-b", help="The same of B, where it differs.")] = None,
    match: Annotated[str, typer.Option("--match", help="Pair rows by row, by token text, or auto.")] = "auto",
    top: Annotated[int, typer.Option("--top", help="Nearest neighbours a row.")] = 10,
    sample: Annotated[int, typer.Option("--sample", help="Rows whose neighbours are compared; 0: none.")] = 256,
    worst: Annotated[int, typer.Option("--worst", help="Name so many rows that differ most.")] = 10,
    z: Annotated[float, typer.Option("--z", help="epsilon = mean + z std.")] = 2.0,
    seed: SeedOption = 0,
    device: DeviceOption = "auto",
    plot: Annotated[Path | None, typer.Option("--plot", help="Draw it: a .png, .svg or .pdf.")] = None,
    json: JsonOption = False,
) -> None:
    """Compare two matrices: epsilon side by side, row against row, neighbours against neighbours.

    With one model its embedding against its unembedding; with two the same matrix of both: base and chat, an earlier
    and a later checkpoint, quantised and full.
    """
    from repcap.verbs.compare.study import compare

    common.check_plot(plot)
    with common.progress("Comparing") as on_progress:
        result = compare(
            a,
            b,
            matrix=matrix,
            matrix_b=matrix_b,
            match=match,
            top=top,
            sample=sample,
            worst=worst,
            z=z,
            seed=seed,
            device=device,
            on_progress=on_progress,
        )
    if json:
        common.print_json(result)
    else:
        _show(result)
    if plot is not None and result.rows is not None:
        from repcap.verbs.compare.figure import draw_rows

        for written in draw_rows(result.to_dict(), plot):
            common.note(f"wrote {written}")
    elif plot is not None:
        common.warn(f"no figure: {result.reason}")


def _show(result: Comparison) -> None:
    from repcap.console.prose import prose

    console = common.stdout()
    console.print(_sides(result))
    if result.rows is not None:
        for part in _rows(result.rows):
            console.print(part)
    if result.neighbours is not None and result.neighbours.least:
        console.print(_neighbours(result.neighbours))
    console.print(prose(result.sentence))
    for note in result.notes:
        console.print(prose(f"Note: {note}."))


def _sides(result: Comparison) -> RenderableType:
    from rich.text import Text

    from repcap.text import shorten

    sides = [side for side in (result.a, result.b) if side is not None]
    table = common.new_table(None, "", *(f">{name}" for name in ("a", "b")[: len(sides)]))
    lines = {
        "source": [shorten(side.info.source, 30) for side in sides],
        "matrix": [shorten(side.info.name, 30) for side in sides],
        "rows x columns": [f"{side.info.count} x {side.dim}" for side in sides],
        "dtype": [side.info.dtype for side in sides],
        "mean cosine": [f"{side.mean:.6f}" for side in sides],
        "std": [f"{side.std:.6f}" for side in sides],
        "epsilon": [f"{side.epsilon:.6f}" for side in sides],
        "standard error": ["" if side.epsilon_se is None else f"{side.epsilon_se:.2g}" for side in sides],
        "ratio to random": [f"{side.epsilon_ratio:.3f}" if side.spread.null else "-" for side in sides],
        "class": [side.class_name for side in sides],
        "effective dimension": [f"{side.effective_dim:.1f}" for side in sides],
    }
    for name, values in lines.items():
        table.add_row(name, *(Text(value) for value in values))
    return table


def _rows(rows: RowCosines) -> list[RenderableType]:
    from rich.text import Text

    line = common.new_table(
        f"\ncosine of corresponding rows, {rows.rows} pairs", *(f">{share:.0%}" for share, _ in rows.quantiles)
    )
    line.padding = (0, 0, 0, 1)  # nine columns of eight, which fit
    line.add_row(*(f"{cosine:.5f}" for _, cosine in rows.quantiles))
    facts = f"mean {rows.mean:.6f}, std {rows.std:.6f}, length in b / length in a: {rows.norm_ratio:.4f} (median)"
    parts: list[RenderableType] = [line, Text(facts)]
    if rows.worst:
        table = common.new_table("\nrows that differ most", ">cosine", ">length b/a", ">row", "token")
        for row in rows.worst:
            number = str(row.row_a) if row.row_a == row.row_b else f"{row.row_a}/{row.row_b}"
            token = Text("" if row.token is None else visible(row.token, 30))
            table.add_row(f"{row.cosine:.6f}", f"{row.norm_ratio:.3f}", number, token)
        parts.append(table)
    return parts


def _neighbours(found: NeighbourOverlap) -> RenderableType:
    from rich.text import Text

    title = (
        f"\n{found.top} nearest neighbours of {found.rows} random rows: Jaccard {found.mean:.3f} ± "
        f"{found.standard_error:.3f}\n(median {found.median:.3f}; by chance {found.chance:.1e}); those that keep fewest"
    )
    table = common.new_table(title, ">Jaccard", ">row", "token")
    for token, row, value in found.least[:5]:
        table.add_row(f"{value:.3f}", str(row), Text("" if token is None else visible(token, 30)))
    return table
