"""`repcap survey MODELS` and `repcap survey trend`."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from repcap.console.batches import FAILED, resumable, show_batch
from repcap.console.common import JsonOption, note, print_json, progress
from repcap.console.derive import Options, command_of
from repcap.errors import InputError
from repcap.verbs.survey import show
from repcap.verbs.survey.study import store_published, survey
from repcap.verbs.survey.trend import trend as find_trend


class _RunByDefault(TyperGroup):
    """A group in which `survey X` means `survey run X`, unless X names a verb of its own."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if not args or args[0] not in self.commands:
            args = ["run", *args]
        return super().parse_args(ctx, args)


app = typer.Typer(cls=_RunByDefault, rich_markup_mode="rich")


@app.command("run")
@command_of(survey)
def run(
    options: Options,
    models: Annotated[
        str | None, typer.Argument(help="List of models: text, one source a line, or YAML.", metavar="MODELS")
    ] = None,
    table_only: Annotated[
        bool, typer.Option("--table-only", help="With --published: store the table's numbers, measure nothing.")
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
    store = options["store"]
    if table_only:
        if models is not None or not options["published"]:
            raise InputError("--table-only goes with --published and without a list of models")
        return _store_table(store, json)
    with resumable(store), progress("Surveying", "models") as on_unit:
        batch = survey(models or (), **options, on_unit=on_unit)
    show_batch(batch, json, show.model_table)
    if not batch.complete:
        raise typer.Exit(FAILED)


def _store_table(store: str, json: bool) -> None:
    new = store_published(store)
    if json:
        print_json({"store": store, "new": new})
    else:
        note(f"{new} rows of the published table stored in {store}")


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
    found = find_trend(store, kind=kind, role=role, without=without or ())
    if json:
        print_json(found)
        return
    show.show_trend(found)
