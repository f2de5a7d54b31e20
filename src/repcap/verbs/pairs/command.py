"""`repcap pairs`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table
from rich.text import Text

from repcap.console import common
from repcap.console.common import DeviceOption, JsonOption, SeedOption
from repcap.text import printable, visible

if TYPE_CHECKING:
    from repcap.verbs.pairs.study import NamedPair, PairDistribution


def command(
    source: Annotated[str, typer.Argument(help="File, directory, Hub name, pkg:// ... (see repcap inspect).")],
    matrix: Annotated[str, typer.Option("--matrix", help="embedding, unembedding, or a tensor name.")] = "embedding",
    top: Annotated[
        int, typer.Option("--top", min=0, max=10_000, help="Name this many of the largest and smallest.")
    ] = 10,
    z: Annotated[float, typer.Option("--z", help="epsilon = mean + z std.")] = 2.0,
    sample: Annotated[
        int | None, typer.Option("--sample", help="Draw this many pairs instead of counting them all.")
    ] = None,
    seed: SeedOption = 0,
    tokenizer_rows: Annotated[
        bool, typer.Option("--tokenizer-rows", help="Leave out rows beyond the tokenizer.")
    ] = False,
    exclude_ids: Annotated[str, typer.Option("--exclude-ids", help="Rows to leave out, such as 0,5,100-199.")] = "",
    engine: Annotated[str | None, typer.Option("--engine", help="Spread the work: local[:N] or ray[:ADDRESS].")] = None,
    device: DeviceOption = "auto",
    plot: Annotated[Path | None, typer.Option("--plot", help="Draw it: a .png, .svg or .pdf.")] = None,
    json: JsonOption = False,
) -> None:
    """The exact distribution of the cosines of all pairs of rows, and what its tail holds.

    Mean and standard deviation hide the tail. This multiplies every pair once, in blocks, and gives quantiles,
    the share of pairs beyond epsilon on both sides, and the most alike and most opposed tokens.
    """
    from repcap.options import parse_ids
    from repcap.verbs.pairs.study import pairs

    common.check_plot(plot)
    with common.progress("Pairs", "pairs" if engine is None else "lots") as on_progress:
        result = pairs(
            source,
            matrix,
            z=z,
            keep=top,
            sample=sample,
            seed=seed,
            device=device,
            tokenizer_rows=tokenizer_rows,
            exclude_ids=parse_ids(exclude_ids),
            engine=engine,
            on_progress=on_progress,
        )
    if json:
        common.print_json(result)
    else:
        _show(result)
    if plot is not None:
        from repcap.verbs.pairs.figure import draw_pairs

        for written in draw_pairs(result.to_dict(), plot):
            common.note(f"wrote {written}")


def _show(result: PairDistribution) -> None:
    from repcap.console.prose import prose

    console = common.stdout()
    console.print(Text(printable(result.source), style="bold"))
    left_out = f" ({result.dropped} without a direction)" if result.dropped else ""
    what = f"a sample of {result.pairs:,} pairs" if result.sampled else f"all {result.pairs:,} pairs"
    console.print(Text(f"{printable(result.matrix)}, {result.count} x {result.dim}{left_out}: {what}"))
    console.print(_numbers(result))
    console.print(_quantiles(result))
    for title, chosen in (("most alike", result.largest), ("most opposed", result.smallest)):
        if chosen:
            console.print(_pair_table(title, chosen))
    console.print(prose(result.sentence))


def _numbers(result: PairDistribution) -> Table:
    """What was measured, of a sample with its interval, beside the two models."""
    from repcap.geometry.pairs.tail import random_moments

    sampled = [] if result.intervals is None else [">95 % interval"]
    table = common.new_table(None, "", ">measured", *sampled, ">normal", ">random")

    def add(label: str, form: str, values: Sequence[float], interval: tuple[float, float] | None = None) -> None:
        measured, *models = (_number(value, form) for value in values)
        between = "" if interval is None else f"{interval[0]:{form}} .. {interval[1]:{form}}"
        table.add_row(label, measured, *([between] if sampled else []), *models)

    spread, held = result.spread, result.intervals
    random = random_moments(result.dim)
    add("mean", ".6f", (spread.mean, spread.mean, random["mean"]), held.mean if held else None)
    add("std", ".6f", (spread.std, spread.std, random["std"]), held.std if held else None)
    add("epsilon", ".6f", (spread.epsilon, spread.epsilon, spread.null), held.epsilon if held else None)
    add("skewness", ".4f", (result.skewness, 0.0, random["skewness"]))
    add("excess kurtosis", ".4f", (result.excess_kurtosis, 0.0, random["excess_kurtosis"]))
    tails = (result.tail, result.tail_normal, result.tail_random)
    add("share > epsilon", ".3e", [tail.above for tail in tails], held.above if held else None)
    add("share < -epsilon", ".3e", [tail.below for tail in tails], held.below if held else None)
    if result.coherence is not None:
        table.add_row("coherence (largest |cos|)", f"{result.coherence:.6f}")
    return table


def _number(value: float, form: str) -> str:
    """`-` for what is not defined; short also where a huge z makes it huge."""
    if math.isnan(value):
        return "-"
    return f"{value:{form}}" if abs(value) < 1e4 else f"{value:.3e}"


def _quantiles(result: PairDistribution) -> Table:
    line = common.new_table("\nquantiles of the cosine", *(f">{_share(share)}" for share, _ in result.quantiles))
    line.padding = (0, 0, 0, 1)  # eleven columns of six, which fit
    line.add_row(*(f"{cosine:.3f}" for _, cosine in result.quantiles))
    if result.intervals is not None:  # from .. to, in two lines
        for end in (0, 1):
            line.add_row(*(f"{interval[end]:.3f}" for interval in result.intervals.quantiles), style="dim")
    return line


def _share(share: float) -> str:
    """`1e-6`, `5%`, `1-1e-6`."""
    if share < 0.005:
        return f"{share:.0e}".replace("e-0", "e-")
    return f"1-{1 - share:.0e}".replace("e-0", "e-") if share > 0.995 else f"{share:.0%}"


def _pair_table(title: str, chosen: tuple[NamedPair, ...]) -> Table:
    table = common.new_table(f"\n{title}", ">cosine", ">row", "token", ">row", "token")
    for pair in chosen:
        texts = [Text("" if text is None else visible(text)) for text in (pair.token_i, pair.token_j)]
        table.add_row(f"{pair.cosine:.6f}", str(pair.i), texts[0], str(pair.j), texts[1])
    return table
