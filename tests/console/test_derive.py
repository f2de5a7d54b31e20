"""The command line of a verb, derived from the signature of its function."""

from __future__ import annotations

from typing import Annotated, Any

import pytest
import typer
from typer.testing import CliRunner

from repcap.console.common import JsonOption, SourceArgument
from repcap.console.derive import Options, command_of, flags
from repcap.console.failing import in_flags
from repcap.errors import InputError, OptionError
from repcap.options import Centre, ExcludeIds, Option, Rows, Z


def work(
    source: Any,
    *,
    z: Z = 2.0,
    rows: Rows = None,
    centre: Centre = False,
    exclude_ids: ExcludeIds = (),
    order: Annotated[int | str, Option("auto or a number.")] = "auto",
    names: Annotated[tuple[str, ...], Option("Some names.", flags=("--name",))] = (),
    built: Annotated[bool, Option("Build.", flags=("--build/--no-build",))] = True,
    hidden: Annotated[int, Option("Python only.", shown=False)] = 0,
) -> None: ...


CALLS: list[tuple[Any, ...]] = []


@command_of(work)
def command(options: Options, source: SourceArgument, json: JsonOption = False) -> None:
    """Do it."""
    CALLS.append((options, source, json))


APP = typer.Typer()
APP.command()(command)


def call(*argv: str) -> tuple[Any, ...]:
    CALLS.clear()
    done = CliRunner().invoke(APP, list(argv))
    assert done.exit_code == 0, done.output
    return CALLS[0]


def test_defaults_are_those_of_the_signature():
    options, source, json = call("x")
    assert (source, json) == ("x", False)
    assert options == {
        "z": 2.0, "rows": None, "centre": False, "exclude_ids": (), "order": "auto", "names": (), "built": True,
    }  # fmt: skip


def test_what_is_given_arrives_as_the_function_takes_it():
    words = "--z 3 --rows 9 --center --exclude-ids 4,1-2 --order 8 --name a --name b --no-build --json x"
    options, _, json = call(*words.split())
    assert json
    assert options == {
        "z": 3.0, "rows": 9, "centre": True, "exclude_ids": (1, 2, 4), "order": 8, "names": ("a", "b"), "built": False,
    }  # fmt: skip


def test_help_lists_them():
    shown = CliRunner().invoke(APP, ["--help"], env={"COLUMNS": "100"}).output
    for words in ("--z", "epsilon = mean + z std.", "--exclude-ids", "--no-build", "--name", "--json", "Do it."):
        assert words in shown
    assert "--hidden" not in shown


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (OptionError("rows", 1, "give 2 or more"), "--rows 1: give 2 or more"),
        (OptionError("built", 1, "leave `exclude_ids` out"), "--no-build 1: leave --exclude-ids out"),
        (InputError("too many: leave `rows` out, not `this`"), "too many: leave --rows out, not this"),
    ],
)
def test_messages_speak_of_flags_on_the_command_line(error, message):
    assert in_flags(error, flags(work)) == message
