"""`repcap dictionary`, which `repcap measure --against` calls, too."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from repcap.console import common
from repcap.console.common import DeviceOption, JsonOption, SeedOption
from repcap.text import visible

if TYPE_CHECKING:
    from rich.console import RenderableType

    from repcap.verbs.dictionary.study import Against, Dictionary


def command(
    source: Annotated[str, typer.Argument(help="The sparse autoencoder: file, directory, Hub name ...")],
    against: Annotated[str | None, typer.Option("--against", help="The model that it was trained on.")] = None,
    matrix: Annotated[str, typer.Option("--matrix", help="The decoder, where it is not found by its name.")] = (
        "embedding"
    ),
    top: Annotated[int, typer.Option("--top", help="Name so many rows nearest to the embedding.")] = 10,
    z: Annotated[float, typer.Option("--z", help="epsilon = mean + z std.")] = 2.0,
    seed: SeedOption = 0,
    device: DeviceOption = "auto",
    json: JsonOption = False,
) -> None:
    """The decoder of a sparse autoencoder: alive and dead rows, epsilon, coherence, and k against what fits.

    With --against also how many of its rows, and of their pairs, keep within the epsilon of a model's embedding.
    """
    from repcap.verbs.dictionary.study import dictionary

    with common.progress("Dictionary", "") as on_progress:
        result = dictionary(
            source, against, matrix=matrix, top=top, z=z, seed=seed, device=device, on_progress=on_progress
        )
    if json:
        common.print_json(result)
        return
    from repcap.console.measured_view import detail
    from repcap.console.prose import prose

    console = common.stdout()
    for part in detail(result.measured):
        console.print(part)
    console.print(_rows(result))
    if result.against is not None:
        console.print(_against(result.against))
        if result.against.strongest:
            console.print(_strongest(result.against))
    console.print(prose(result.sentence))
    for note in result.notes:
        console.print(prose(f"Note: {note}."))


def measure_against(
    sources: list[str], against: str, *, matrix: str, z: float, seed: int, device: str, json: bool
) -> None:
    """What `repcap measure SOURCE --against MODEL` does."""
    from repcap.errors import InputError

    if len(sources) != 1:
        raise InputError(f"--against takes one dictionary at a time, got {len(sources)} sources")
    command(sources[0], against, matrix=matrix, z=z, seed=seed, device=device, json=json)


def _rows(result: Dictionary) -> RenderableType:
    from repcap.laws import fitted

    table = common.new_table("\nthe dictionary", "", ">", "")
    table.add_row("alive rows", str(result.alive), f"of {result.measured.info.count}")
    dead = f"{result.zero} zero, {result.non_finite} not finite, {result.tiny} tiny"
    table.add_row("dead rows", str(result.dead), dead)
    table.add_row("coherence", f"{result.coherence:.6f}", f"rows {result.pair[0]} and {result.pair[1]}")
    table.add_row("  least possible", f"{result.coherence_bound:.6f}", f"for {result.alive} lines, proven")
    table.add_row("  of random lines", f"{result.coherence_random:.6f}", "median")
    for name in (curve.key for curve in fitted()):
        table.add_row(f"epsilon of law {name}", f"{result.law_epsilon[name]:.6f}", f"at which {result.alive} fit")
    for key, share in (result.filled or {}).items():
        what = {"construction": "best explicit set", "law": "published law", "upper": "proven upper bound"}[key]
        label = "k over capacity" if key == "construction" else ""
        table.add_row(label, f"{share:.3g}", f"{what}, at epsilon {result.measured.epsilon:.4f}")
    return table


def _against(found: Against) -> RenderableType:
    from rich.text import Text

    from repcap.text import shorten

    table = common.new_table("\nagainst the embedding", "", ">", "")
    table.add_row("embedding", str(found.count), Text(shorten(found.source, 40)))
    table.add_row("its epsilon", f"{found.epsilon:.6f}", f"class {found.class_name}")
    table.add_row("rows within it", f"{found.rows_within:.2%}", "largest |cosine| with any embedding row")
    table.add_row("pairs within it", f"{found.pairs_within:.4%}", "|cosine| of two rows of the dictionary")
    shown = ", ".join(f"{share:.0%}: {cosine:.3f}" for share, cosine in found.largest)
    table.add_row("largest |cosine|", "", f"{shown} (random: {found.random:.3f})")
    table.add_row("directions in all", str(found.budget), "alive rows, embedding and unembedding")
    if found.capacity is not None:
        for key, label in (("construction", "at least"), ("law", "published law"), ("upper", "at most")):
            part = found.capacity[key]
            name = part["name"] + (" (indeterminate: epsilon >= 0.1)" if part.get("indeterminate") else "")
            table.add_row(f"room: {label}", part["k"], Text(name))
    return table


def _strongest(found: Against) -> RenderableType:
    from rich.text import Text

    table = common.new_table("\nrows nearest to the embedding", ">|cosine|", ">row", ">embedding row", "token")
    for row, other, token, cosine in found.strongest:
        shown = Text("" if token is None else visible(token, 30))
        table.add_row(f"{cosine:.4f}", str(row), str(other), shown)
    return table
