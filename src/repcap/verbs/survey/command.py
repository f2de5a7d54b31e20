"""`repcap survey MODELS` and `repcap survey trend`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from repcap.console.common import (
    DeviceOption,
    JsonOption,
    SeedOption,
    new_table,
    note,
    print_json,
    progress,
    stdout,
    warn,
)
from repcap.console.printable import cell
from repcap.errors import InputError

if TYPE_CHECKING:
    from rich.table import Table

    from repcap.jobs.batch import Batch
    from repcap.jobs.store import Failure
    from repcap.verbs.survey.trend import GroupTrend, Trend

FAILED = 3
"""Exit code where the run ended but some units failed."""

StoreOption = Annotated[str, typer.Option("--store", help="Result store; made if missing.", metavar="FILE")]
EngineOption = Annotated[
    str, typer.Option("--engine", help="local, local:N, ray, ray:ADDRESS, or inline.", metavar="ENGINE")
]

TimeoutOption = Annotated[
    float | None, typer.Option("--timeout", help="Seconds after which a unit of work counts as hung.")
]
RetriesOption = Annotated[int, typer.Option("--retries", help="New tries after a worker was lost.")]


class _RunByDefault(TyperGroup):
    """A group in which `survey X` means `survey run X`, unless X names a verb of its own."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if not args or args[0] not in self.commands:
            args = ["run", *args]
        return super().parse_args(ctx, args)


app = typer.Typer(cls=_RunByDefault, rich_markup_mode="rich")


@app.command("run")
def run(
    models: Annotated[
        str | None, typer.Argument(help="List of models: text, one source a line, or YAML.", metavar="MODELS")
    ] = None,
    published: Annotated[
        bool, typer.Option("--published", help="The 45 checkpoints of the published table, from the Hub.")
    ] = False,
    table_only: Annotated[
        bool, typer.Option("--table-only", help="With --published: store the table's numbers, measure nothing.")
    ] = False,
    store: StoreOption = "repcap.sqlite",
    engine: EngineOption = "local",
    matrix: Annotated[
        str | None, typer.Option("--matrix", help="both (default), embedding, unembedding, or a tensor name.")
    ] = None,
    rows: Annotated[int | None, typer.Option("--rows", help="Estimate from this many random rows each.")] = None,
    z: Annotated[float, typer.Option("--z", help="epsilon = mean + z std.")] = 2.0,
    seed: SeedOption = 0,
    device: DeviceOption = "auto",
    gpus_per_model: Annotated[
        float, typer.Option("--gpus-per-model", help="GPUs a worker holds; below 1, workers share one.")
    ] = 0.0,
    timeout: TimeoutOption = None,
    retries: RetriesOption = 2,
    refresh: Annotated[bool, typer.Option("--refresh", help="Measure again what is stored.")] = False,
    allow_full_download: Annotated[
        bool, typer.Option("--allow-full-download", help="Download whole files from servers that send no parts.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Measure many models, each once, and keep every result in a store.

    Each result is stored as it ends, with its provenance. Run it again to go on: what is stored is skipped, what
    failed is tried again. Ctrl-C or a crash costs at most the models in hand. Failures are listed at the end, and the
    exit code is then 3.

    `repcap survey trend [STORE]` tests how epsilon goes with width (a list of that name: ./trend).

    [bold]Examples[/bold]

        repcap survey models.txt --rows 20000
        repcap survey models.yaml --store study.sqlite --engine local:4
        repcap survey --published --engine ray
    """
    if table_only:
        if models is not None or not published:
            raise InputError("--table-only goes with --published and without a list of models")
        return _store_table(store, json)
    from repcap.verbs.survey.study import survey

    extra = {"allow_full_download": True} if allow_full_download else {}
    with resumable(store), progress("Surveying", "models") as on_unit:
        batch = survey(
            models or (),
            store,
            published=published,
            matrix=matrix,
            rows=rows,
            engine=engine,
            gpus_per_unit=gpus_per_model,
            retries=retries,
            timeout=timeout,
            device=device,
            refresh=refresh,
            on_unit=on_unit,
            z=z,
            seed=seed,
            **extra,
        )
    show_batch(batch, json, model_table)
    if not batch.complete:
        raise typer.Exit(FAILED)


def _store_table(store: str, json: bool) -> None:
    from repcap.verbs.survey.study import store_published

    new = store_published(store)
    if json:
        print_json({"store": store, "new": new})
    else:
        note(f"{new} rows of the published table stored in {store}")


@contextmanager
def resumable(store: str) -> Iterator[None]:
    """On Ctrl-C, say that nothing stored is lost."""
    try:
        yield
    except KeyboardInterrupt:
        warn(f"interrupted: what is done is in {store}; run the same command again to go on")
        raise


def show_batch(batch: Batch, json: bool, table_of: Any) -> None:
    """Print what a run did: the results of its units, what failed and why, and the counts."""
    if json:
        print_json(batch)
        return
    from repcap.jobs.store import Store

    with Store(batch.store, "read") as opened:
        found = [result for key in batch.units for result in opened.unit(key)]
    console = stdout()
    if found:
        console.print(table_of(found))
    if batch.failures:
        console.print(failure_table(batch.failures))
    lost = f", {batch.lost_workers} workers lost on the way" if batch.lost_workers else ""
    note(
        f"{batch.done} done, {batch.skipped} stored before, {len(batch.failures)} failed{lost}: "
        f"{batch.store} ({batch.seconds:.0f} s)"
    )


def model_table(results: list[Any]) -> Table:
    """Measurements, one a row."""
    table = new_table(None, "Model", "Matrix", ">Rows", ">d", ">epsilon", ">/ null", "Class", "Tied")
    for result in results:
        record = result.record
        estimate = "~" if record.get("estimate") else ""
        table.add_row(
            cell(record["name"]),
            cell(record.get("role") or record["matrix"]),
            str(record.get("count") or ""),
            str(record["dim"]),
            "" if record["epsilon"] is None else f"{estimate}{record['epsilon']:.5f}",
            "" if record["epsilon_ratio"] is None else f"{record['epsilon_ratio']:.3f}",
            record["class"],
            {True: "yes", False: "no"}.get(record.get("tied"), ""),
        )
    return table


def failure_table(failures: tuple[Failure, ...] | list[Failure]) -> Table:
    """Units without a result, and why."""
    table = new_table("Failed", "What", "Reason", ">Tries")
    for failure in failures:
        table.add_row(cell(failure.label), cell(failure.reason), str(failure.attempts))
    return table


@app.command("trend")
def trend(
    store: Annotated[
        str | None, typer.Argument(help="Result store; without it, the published table.", metavar="[STORE]")
    ] = None,
    without: Annotated[
        list[str] | None,
        typer.Option("--without", help="Also without this model (name or source); may be repeated.", metavar="NAME"),
    ] = None,
    role: Annotated[str, typer.Option("--matrix", help="embedding or unembedding.")] = "embedding",
    kind: Annotated[str | None, typer.Option("--kind", help="measure or published, where a store holds both.")] = None,
    json: JsonOption = False,
) -> None:
    """Test how epsilon goes with the width d of models, against random directions.

    For all models and within each class: Spearman's correlation with d of epsilon and of epsilon / epsilon_null, and
    the log-log slope of epsilon with its 95 % interval against -0.5, the slope of random directions. Models of one
    family are not independent: read p as a lower limit.
    """
    from repcap.verbs.survey.trend import trend as find

    found = find(store, kind=kind, role=role, without=without or ())
    if json:
        print_json(found)
        return
    _show_trend(found)


def _show_trend(found: Trend) -> None:
    console = stdout()
    console.print(_trend_table(f"Trend with d in {found.source}", found.groups))
    if found.without:
        console.print()
        console.print(_trend_table(f"Without {', '.join(found.without)}", found.groups_without))
    console.print()
    pairs = [found.class_by_width, *(item for item in found.tying if any(item.sizes))]
    table = new_table("Groups compared", "Quantity", "Groups", ">n", ">medians", ">p")
    for item in pairs:
        table.add_row(
            {"ratio": "epsilon / null"}.get(item.quantity, item.quantity),
            " / ".join(item.groups),
            " / ".join(str(size) for size in item.sizes),
            " / ".join("-" if value is None else f"{value:.4g}" for value in item.medians),
            _p(item.p),
        )
    console.print(table)
    for group in found.groups:
        if group.hangs_on and group.ratio:
            name, rho = group.hangs_on
            note(
                f"{group.group}: without {name}, rho of epsilon / null is {rho:+.2f} instead of {group.ratio.rho:+.2f}"
            )
        if group.alike:
            note(f"{group.group}: {group.alike} of {group.n} models have the d and epsilon of another one")
    if not any(any(item.sizes) for item in found.tying):
        note("tied against untied: not known for these models")


def _p(value: float | None) -> str:
    return "-" if value is None else f"{value:.2g}".replace("e-0", "e-")


def _trend_table(title: str, groups: tuple[GroupTrend, ...]) -> Table:
    heads = (">n", ">rho eps", ">p", ">rho /null", ">p", ">slope", "95 %", ">p -0.5")
    table = new_table(None, "Class", *heads)
    table.title = cell(title)
    for group in groups:
        if group.epsilon is None or group.ratio is None or group.slope is None:
            table.add_row(group.group, str(group.n), *["-"] * 7)
            continue
        table.add_row(
            group.group,
            str(group.n),
            f"{group.epsilon.rho:+.3f}",
            _p(group.epsilon.p),
            f"{group.ratio.rho:+.3f}",
            _p(group.ratio.p),
            f"{group.slope.slope:+.2f}",
            f"{group.slope.low:+.2f}..{group.slope.high:+.2f}",
            _p(group.slope_p),
        )
    return table
