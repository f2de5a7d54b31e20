"""`repcap pairs`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from repcap.cli import common
from repcap.cli.common import DeviceOption, JsonOption, SeedOption
from repcap.cli.printable import printable

if TYPE_CHECKING:
    from repcap.studies.pairs import NamedPair, PairDistribution


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
    from repcap.cli.ids import parse_ids
    from repcap.studies.pairs import pairs

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
        from repcap.report.pairs_figure import draw_pairs

        for written in draw_pairs(result.to_dict(), plot):
            common.note(f"wrote {written}")


def _show(result: PairDistribution) -> None:
    console = common.stdout()
    what = f"a sample of {result.pairs:,} pairs" if result.sampled else f"all {result.pairs:,} pairs"
    console.print(
        Text.assemble((printable(result.source), "bold"), printable(f" {result.matrix}"))
        + Text(f", {result.count} x {result.dim}: {what}")
    )
    table = common.new_table(None, "", ">measured", ">normal", ">random")
    spread, null = result.spread, result.dim**-0.5
    error = f" ± {1.96 * result.standard_error:.6f}" if result.standard_error is not None else ""
    table.add_row("mean", f"{spread.mean:.6f}", f"{spread.mean:.6f}", "0")
    table.add_row("std", f"{spread.std:.6f}", f"{spread.std:.6f}", f"{null:.6f}")
    table.add_row("epsilon", f"{spread.epsilon:.6f}{error}", f"{spread.epsilon:.6f}", f"{spread.null:.6f}")
    table.add_row("skewness", f"{result.skewness:.4f}", "0", "0")
    table.add_row("excess kurtosis", f"{result.excess_kurtosis:.4f}", "0", f"{-6 / (result.dim + 2):.4f}")
    for name in ("above", "below"):
        sign = "> epsilon" if name == "above" else "< -epsilon"
        shares = [getattr(t, name) for t in (result.tail, result.tail_normal, result.tail_random)]
        table.add_row(f"share {sign}", *(f"{share:.3e}" for share in shares))
    if result.coherence is not None:
        table.add_row("coherence (largest |cos|)", f"{result.coherence:.6f}", "", "")
    console.print(table)
    line = common.new_table(None, *(f">{_share(share)}" for share, _ in result.quantiles))
    line.add_row(*(f"{cosine:.3f}" for _, cosine in result.quantiles))
    console.print("\nquantiles of the cosine", style="bold")
    console.print(line)
    for title, chosen in (("most alike", result.largest), ("most opposed", result.smallest)):
        if chosen:
            console.print(_pair_table(title, chosen))
    console.print(f"\n{result.sentence}", markup=False)


def _share(share: float) -> str:
    """`1e-6`, `5%`, `1-1e-6`."""
    if share < 0.005:
        return f"{share:.0e}".replace("e-0", "e-")
    return f"1-{1 - share:.0e}".replace("e-0", "e-") if share > 0.995 else f"{share:.0%}"


def _pair_table(title: str, chosen: tuple[NamedPair, ...]) -> object:
    table = common.new_table(f"\n{title}", ">cosine", ">row", "token", ">row", "token")
    for pair in chosen:
        texts = [Text("" if text is None else common.visible(text)) for text in (pair.token_i, pair.token_j)]
        table.add_row(f"{pair.cosine:.6f}", str(pair.i), texts[0], str(pair.j), texts[1])
    return table
