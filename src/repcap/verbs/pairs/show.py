"""What the terminal shows of `pairs`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from repcap.console.common import new_table
from repcap.console.prose import prose
from repcap.geometry.pairs.tail import random_moments
from repcap.text import printable, visible
from repcap.verbs.pairs.study import NamedPair, PairDistribution


def parts(result: PairDistribution) -> Iterator[RenderableType]:
    yield Text(printable(result.source), style="bold")
    left_out = f" ({result.dropped} without a direction)" if result.dropped else ""
    what = f"a sample of {result.pairs:,} pairs" if result.sampled else f"all {result.pairs:,} pairs"
    yield Text(f"{printable(result.matrix)}, {result.count} x {result.dim}{left_out}: {what}")
    yield _numbers(result)
    yield _quantiles(result)
    if result.tails:
        yield _tails(result)
    for title, chosen in (("most alike", result.largest), ("most opposed", result.smallest)):
        if chosen:
            yield _pair_table(title, chosen)
    yield prose(result.reading)


def _numbers(result: PairDistribution) -> Table:
    """What was measured, of a sample with its interval, beside the two models."""
    sampled = [] if result.intervals is None else [">95 % interval"]
    table = new_table(None, "", ">measured", *sampled, ">normal", ">random")

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
    line = new_table("\nquantiles of the cosine", *(f">{_share(share)}" for share, _ in result.quantiles))
    line.padding = (0, 0, 0, 1)  # eleven columns of six, which fit
    line.add_row(*(f"{cosine:.3f}" for _, cosine in result.quantiles))
    if result.intervals is not None:  # from .. to, in two lines
        for end in (0, 1):
            line.add_row(*(f"{interval[end]:.3f}" for interval in result.intervals.quantiles), style="dim")
    return line


def _tails(result: PairDistribution) -> Table:
    """eps_alpha and d_alpha of each gauge, beside random directions."""
    gauges = [f">{tail.gauge}" for tail in result.tails]
    table = new_table("\n|cosine| that a share of the pairs reaches / dimension", ">share", ">random", *gauges)
    for at, point in enumerate(result.tails[0].points):
        cells = [tail.points[at] for tail in result.tails]
        shown = ["-" if one.epsilon is None else f"{one.epsilon:.4f} / {one.dim:.4g}" for one in cells]
        table.add_row(f"{point.alpha:g}", f"{point.random:.4f} / {result.dim}", *shown)
    return table


def _share(share: float) -> str:
    """`1e-6`, `5%`, `1-1e-6`."""
    if share < 0.005:
        return f"{share:.0e}".replace("e-0", "e-")
    return f"1-{1 - share:.0e}".replace("e-0", "e-") if share > 0.995 else f"{share:.0%}"


def _pair_table(title: str, chosen: tuple[NamedPair, ...]) -> Table:
    table = new_table(f"\n{title}", ">cosine", ">row", "token", ">row", "token")
    for pair in chosen:
        texts = [Text("" if text is None else visible(text)) for text in (pair.token_i, pair.token_j)]
        table.add_row(f"{pair.cosine:.6f}", str(pair.i), texts[0], str(pair.j), texts[1])
    return table
