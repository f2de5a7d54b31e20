"""`repcap measure`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from repcap.console import common
from repcap.console.common import JsonOption, PlotOption, SourcesArgument
from repcap.console.derive import Options, command_of, flags
from repcap.console.failing import in_flags, print_error
from repcap.console.prose import prose
from repcap.errors import DomainError, InputError, OptionError, RepcapError
from repcap.files import check_directory, write_text
from repcap.verbs.measure import show
from repcap.verbs.measure.card import card as section
from repcap.verbs.measure.study import Measured, measure, measure_both


@command_of(measure)
def command(
    options: Options,
    sources: SourcesArgument,
    matrix: Annotated[
        str, typer.Option("--matrix", help="embedding, unembedding, both, or a tensor name (see repcap inspect).")
    ] = "embedding",
    plot: PlotOption = None,
    card: Annotated[
        Path | None,
        typer.Option("--card", help="Write a section for a model card (Markdown); - for standard output."),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Measure epsilon, its class and the capacity of a model, from its weights, exactly.

    epsilon = mean + 2 std of the cosines between all pairs of rows (tokens): how far from orthogonal the model's own
    directions are. One pass over the rows; the n x n cosines are never formed. Several sources make one table; those
    that cannot be measured are named, and the exit code is 2.
    """
    common.check_plot(plot)
    if card is not None:
        _check_card(card, json)
    measured: list[Measured] = []
    failed: list[tuple[str, RepcapError]] = []
    try:
        _measure_each(sources, matrix, options, measured, failed)
    finally:  # what was measured is shown, also where the next source fails or Ctrl-C comes
        if measured or (failed and json):
            if card is None or str(card) != "-":
                _show(measured, failed, json)
            if card is not None and measured:
                _write_card(measured, card)
        for source, error in failed:
            message = in_flags(error, flags(measure))
            print_error(message if source in message else f"{source}: {message}")
    if plot is not None and len(measured) == 1:
        common.draw(measured[0], plot)
    elif plot is not None:
        common.note("--plot draws one measurement: give one source and one matrix")
    if failed:
        raise typer.Exit(RepcapError.exit_code)


def _check_card(card: Path, json: bool) -> None:
    """Refuse a card that could not be written, before the work that it tells of."""
    if str(card) != "-":
        check_directory(card)
    elif json:
        raise InputError("--json and --card - both want standard output: give the card a file")


def _write_card(measured: list[Measured], card: Path) -> None:
    text = section(measured)
    if str(card) == "-":
        sys.stdout.write(text)
    else:
        write_text(card, text)
        common.note(f"wrote {card}")


def _measure_each(
    sources: list[str],
    matrix: str,
    options: Options,
    measured: list[Measured],
    failed: list[tuple[str, RepcapError]],
) -> None:
    """Append what is measured, and of several sources what went wrong with the others."""
    with common.progress_bars(("Measuring", "rows"), ("Fetching", "B")) as (on_progress, on_bytes):
        watched = {**options, "on_progress": on_progress, "on_bytes": on_bytes}
        for source in sources:
            try:
                if matrix == "both":
                    measured += measure_both(source, **watched)
                else:
                    measured.append(measure(source, matrix, **watched))
            except RepcapError as error:  # noqa: PERF203 - a source takes seconds
                # An option that means nothing is wrong for every source.
                if len(sources) == 1 or isinstance(error, (DomainError, OptionError)):
                    raise
                failed.append((source, error))


def _show(measured: list[Measured], failed: list[tuple[str, RepcapError]], json: bool) -> None:
    if json:
        records = [*measured, *({"source": source, "error": str(error)} for source, error in failed)]
        common.print_json(records[0] if len(records) == 1 else records)
        return
    console = common.stdout()
    if len(measured) == 1:
        for part in show.parts(measured[0]):
            console.print(part)
    else:
        console.print(show.overview(measured))
        for told in dict.fromkeys(f"{found.info.source}: {text}" for found in measured for text in found.info.warnings):
            console.print(prose(f"Note: {told}."))
