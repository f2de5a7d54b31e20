"""`repcap measure`."""

from __future__ import annotations

from typing import Annotated

import typer

from repcap.cli import common
from repcap.cli.common import DeviceOption, JsonOption, MatrixOption, SeedOption


def command(
    sources: Annotated[
        list[str],
        typer.Argument(help="File, directory, Hub name, pkg:// ... (see repcap inspect).", metavar="SOURCE..."),
    ],
    matrix: MatrixOption = "embedding",
    z: Annotated[float, typer.Option("--z", help="epsilon = mean + z std.")] = 2.0,
    rows: Annotated[
        int | None, typer.Option("--rows", help="Estimate from this many random rows, with an interval.")
    ] = None,
    seed: SeedOption = 0,
    influence: Annotated[
        int, typer.Option("--influence", help="List so many tokens that raise and that lower epsilon.", metavar="N")
    ] = 0,
    centre: Annotated[
        bool, typer.Option("--centre", "--center", help="Also measure without the mean of the rows.")
    ] = False,
    remove_top: Annotated[
        int, typer.Option("--remove-top", help="Also measure without the M strongest directions.", metavar="M")
    ] = 0,
    exclude_ids: Annotated[str, typer.Option("--exclude-ids", help="Rows to leave out: 0,5,100-199 or @FILE.")] = "",
    only_ids: Annotated[str, typer.Option("--only-ids", help="Measure these rows alone.")] = "",
    vocab_size: Annotated[
        int | None, typer.Option("--vocab-size", help="Measure the first V rows alone.", metavar="V")
    ] = None,
    dtype: Annotated[str, typer.Option("--dtype", help="Precision of the products: float32 or float64.")] = "float32",
    block_rows: Annotated[
        int | None, typer.Option("--block-rows", help="Rows in memory at once (default: 64 MiB of them).")
    ] = None,
    device: DeviceOption = "auto",
    allow_truncated: Annotated[
        bool, typer.Option("--allow-truncated", help="Read a truncated file if this matrix is whole.")
    ] = False,
    allow_full_download: Annotated[
        bool, typer.Option("--allow-full-download", help="Download a whole file from a server that sends no parts.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Measure epsilon, its class and the capacity of a model, from its weights, exactly.

    epsilon = mean + 2 std of the cosines between all pairs of rows (tokens): how far from orthogonal the model's own
    directions are. One pass over the rows; the n x n cosines are never formed. Several sources make one table.
    """
    from repcap.cli.ids import parse_ids
    from repcap.studies.measure import measure_all

    with common.progress_bars(("Measuring", "rows"), ("Fetching", "B")) as (on_progress, on_bytes):
        measured = measure_all(
            sources,
            matrix,
            z=z,
            rows=rows,
            seed=seed,
            influence=influence,
            centre=centre,
            remove_top=remove_top,
            exclude_ids=parse_ids(exclude_ids),
            only_ids=parse_ids(only_ids),
            vocab_size=vocab_size,
            dtype=dtype,
            block_rows=block_rows,
            device=device,
            allow_truncated=allow_truncated,
            allow_full_download=allow_full_download,
            on_progress=on_progress,
            on_bytes=on_bytes,
        )
    if json:
        common.print_json(measured[0] if len(measured) == 1 else measured)
        return
    from repcap.cli.measure_view import detail, overview

    console = common.stdout()
    if len(measured) == 1:
        for part in detail(measured[0]):
            console.print(part)
    else:
        console.print(overview(measured))
