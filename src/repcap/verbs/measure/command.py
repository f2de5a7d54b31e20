"""`repcap measure`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from repcap.console import common
from repcap.console.common import DeviceOption, JsonOption, MatrixOption, SeedOption
from repcap.console.printable import print_error
from repcap.errors import DomainError, InputError, RepcapError

if TYPE_CHECKING:
    from repcap.studies.measured import Measured


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
    against: Annotated[
        str | None, typer.Option("--against", help="Of a dictionary (SAE): against this model (repcap dictionary).")
    ] = None,
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
    directions are. One pass over the rows; the n x n cosines are never formed. Several sources make one table; those
    that cannot be measured are named, and the exit code is 2.
    """
    from repcap.console.ids import parse_ids

    if against is not None:
        from repcap.verbs.dictionary.command import measure_against

        others = (rows, influence, centre, remove_top, exclude_ids, only_ids, vocab_size, block_rows)
        if any((*others, dtype != "float32", allow_truncated, allow_full_download)):
            raise InputError("--against goes with --matrix, --z, --seed and --device alone")
        return measure_against(sources, against, matrix=matrix, z=z, seed=seed, device=device, json=json)
    options: dict[str, Any] = {
        "z": z, "rows": rows, "seed": seed, "influence": influence, "centre": centre, "remove_top": remove_top,
        "exclude_ids": parse_ids(exclude_ids), "only_ids": parse_ids(only_ids), "vocab_size": vocab_size,
        "dtype": dtype, "block_rows": block_rows, "device": device,
        "allow_truncated": allow_truncated, "allow_full_download": allow_full_download,
    }  # fmt: skip
    _run(sources, matrix, options, json)


def _run(sources: list[str], matrix: str, options: dict[str, Any], json: bool) -> None:
    """Measure each source and show what was measured, also where the next one fails or Ctrl-C comes."""
    measured: list[Measured] = []
    failed: list[tuple[str, RepcapError]] = []
    try:
        _measure_each(sources, matrix, options, measured, failed)
    finally:
        if measured or (failed and json):
            _show(measured, failed, json)
        for source, error in failed:
            print_error(str(error) if source in str(error) else f"{source}: {error}")
    if failed:
        raise typer.Exit(RepcapError.exit_code)


def _measure_each(
    sources: list[str],
    matrix: str,
    options: dict[str, Any],
    measured: list[Measured],
    failed: list[tuple[str, RepcapError]],
) -> None:
    """Append what is measured, and of several sources what went wrong with the others."""
    from repcap.studies.measured import measure_all

    with common.progress_bars(("Measuring", "rows"), ("Fetching", "B")) as (on_progress, on_bytes):
        for source in sources:
            try:
                measured += measure_all([source], matrix, **options, on_progress=on_progress, on_bytes=on_bytes)
            except RepcapError as error:  # noqa: PERF203 - a source takes seconds
                # A number outside its domain is an option's, and wrong for every source.
                if len(sources) == 1 or isinstance(error, DomainError):
                    raise
                failed.append((source, error))


def _show(measured: list[Measured], failed: list[tuple[str, RepcapError]], json: bool) -> None:
    if json:
        records = [*measured, *({"source": source, "error": str(error)} for source, error in failed)]
        common.print_json(records[0] if len(records) == 1 else records)
        return
    from repcap.console.measured_view import detail, overview

    console = common.stdout()
    if len(measured) == 1:
        for part in detail(measured[0]):
            console.print(part)
    else:
        console.print(overview(measured))
