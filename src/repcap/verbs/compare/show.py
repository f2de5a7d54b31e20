"""What the terminal shows of `compare`."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from repcap.console.common import new_table
from repcap.console.prose import prose
from repcap.studies.row_cosines import RowCosines
from repcap.text import shorten, visible
from repcap.verbs.compare.study import Comparison, NeighbourOverlap


def parts(result: Comparison) -> Iterator[RenderableType]:
    yield _sides(result)
    if result.difference is not None:
        found = result.difference
        line = (
            f"epsilon of b less a: {found.epsilon:+.6f} ± {found.se:.2g} (paired, over {found.rows} corresponding rows)"
        )
        yield Text(f"\n{line}")
    if result.corresponding is not None:
        yield from _rows(result.corresponding)
    if result.neighbours is not None and result.neighbours.least:
        yield _neighbours(result.neighbours)
    yield prose(result.reading)
    yield from (prose(f"Note: {note}.") for note in result.notes)


def _sides(result: Comparison) -> RenderableType:
    sides = [side for side in (result.a, result.b) if side is not None]
    table = new_table(None, "", *(f">{name}" for name in ("a", "b")[: len(sides)]))
    lines = {
        "source": [shorten(side.info.source, 30) for side in sides],
        "matrix": [shorten(side.info.name, 30) for side in sides],
        "rows x columns": [f"{side.info.count} x {side.dim}" for side in sides],
        "dtype": [side.info.dtype for side in sides],
        "mean cosine": [f"{side.mean:.6f}" for side in sides],
        "std": [f"{side.std:.6f}" for side in sides],
        "epsilon": [f"{side.epsilon:.6f}" for side in sides],
        "standard error": ["" if side.epsilon_se is None else f"{side.epsilon_se:.2g}" for side in sides],
        "times random": [f"{side.epsilon_ratio:.3f}" if side.spread.null else "-" for side in sides],
        "class": [side.class_name for side in sides],
        "effective dimension": [f"{side.effective_dim:.1f}" for side in sides],
    }
    for name, values in lines.items():
        table.add_row(name, *(Text(value) for value in values))
    return table


def _rows(rows: RowCosines) -> list[RenderableType]:
    line = new_table(
        f"\ncosine of corresponding rows, {rows.rows} pairs", *(f">{share:.0%}" for share, _ in rows.quantiles)
    )
    line.padding = (0, 0, 0, 1)  # nine columns of eight, which fit
    line.add_row(*(f"{cosine:.5f}" for _, cosine in rows.quantiles))
    facts = f"mean {rows.mean:.6f}, std {rows.std:.6f}, length in b / length in a: {rows.norm_ratio:.4f} (median)"
    parts: list[RenderableType] = [line, Text(facts)]
    if rows.worst:
        table = new_table("\nrows that differ most", ">cosine", ">length b/a", ">row", "token")
        for row in rows.worst:
            number = str(row.row_a) if row.row_a == row.row_b else f"{row.row_a}/{row.row_b}"
            token = Text("" if row.token is None else visible(row.token, 30))
            table.add_row(f"{row.cosine:.6f}", f"{row.norm_ratio:.3f}", number, token)
        parts.append(table)
    return parts


def _neighbours(found: NeighbourOverlap) -> RenderableType:
    title = (
        f"\n{found.top} nearest neighbours of {found.rows} random rows: Jaccard {found.mean:.3f} ± "
        f"{found.standard_error:.3f}\n(median {found.median:.3f}; by chance {found.chance:.1e}); those that keep fewest"
    )
    table = new_table(title, ">Jaccard", ">row", "token")
    for token, row, value in found.least[:5]:
        table.add_row(f"{value:.3f}", str(row), Text("" if token is None else visible(token, 30)))
    return table
