"""The signature of a verb is the only list of its options: the command line, YAML lists, keys and records follow it."""

from __future__ import annotations

import dataclasses
import inspect
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

import repcap
from repcap.cli import build_app
from repcap.console import common
from repcap.console.common import JsonOption
from repcap.console.derive import Options, command_of, flag, flags
from repcap.errors import InputError, OptionError
from repcap.options import Option, Parameter, Z, check_options, key_options, parameters, recorded, verb, verb_over
from repcap.result import Result
from repcap.verbs import VERBS

PACKAGE = Path(repcap.__file__).parent
OF_FUNCTIONS = [name for name, row in VERBS.items() if row.exports]
Sharpness = Annotated[int, Option("How sharp.", least=1, most=9)]


def function_of(name: str) -> Any:
    return getattr(repcap, VERBS[name].exports[0])


def click_options(app: typer.Typer, name: str) -> tuple[set[str], set[str]]:
    """(option names, argument names) of a verb on the command line; of `survey`, those of `survey run`."""
    command = typer.main.get_command(app).commands[name]
    command = getattr(command, "commands", {}).get("run", command)
    found = [parameter for parameter in command.params if parameter.param_type_name == "option"]
    arguments = {parameter.name for parameter in command.params if parameter.param_type_name == "argument"}
    return {word for item in found for word in (*item.opts, *item.secondary_opts)}, arguments


def another(parameter: Parameter) -> Any:
    """A value that means something and is not the default."""
    option, default, kind = parameter.option, parameter.default, parameter.type
    if isinstance(kind, tuple):
        kind = kind[0]
    usual = default if isinstance(default, tuple) else (default,)
    other = [word for word in option.choices if word not in usual]
    if other:
        return (other[0],) if getattr(kind, "__args__", None) is not None else other[0]
    if kind is bool:
        return not default
    if kind in (int, float):
        low = option.least if option.least is not None else 1 if option.above is None else option.above + 0.25
        return kind(low) if kind(low) != default else kind(low) + 1
    if getattr(kind, "__args__", None) is not None:
        return {int: (3,), float: (0.25,)}.get(kind.__args__[0], ("other",))
    return "other"


# --- each verb --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", OF_FUNCTIONS)
def test_the_command_line_has_the_options_of_the_signature(name):
    function = function_of(name)
    known = parameters(function)
    assert known, "no parameter carries an Option"
    shown, arguments = click_options(build_app([name]), name)
    for parameter in known.values():
        if parameter.option.shown and parameter.name not in arguments:
            assert flag(parameter) in shown, parameter.name
        elif not parameter.option.shown:
            assert flag(parameter) not in shown, parameter.name


@pytest.mark.parametrize("name", OF_FUNCTIONS)
def test_yaml_lists_take_the_listed_options_and_no_others(name):
    function = function_of(name)
    assert parameters(function), "no parameter carries an Option"
    for parameter in parameters(function).values():
        given = {parameter.name: another(parameter)}
        if parameter.option.listed:
            assert list(check_options(function, given, "line 3")) == [parameter.name]
        else:
            with pytest.raises(InputError, match=f"line 3: unknown option {parameter.name}"):
                check_options(function, given, "line 3")
    with pytest.raises(InputError, match="line 3: unknown option sharpness"):
        check_options(function, {"sharpness": 3}, "line 3")


@pytest.mark.parametrize("name", OF_FUNCTIONS)
def test_a_key_holds_what_changes_a_number_and_is_not_the_default(name):
    function = function_of(name)
    assert parameters(function), "no parameter carries an Option"
    for parameter in parameters(function).values():
        if not parameter.required:
            assert key_options(function, {parameter.name: parameter.default}) == {}
        said = key_options(function, {parameter.name: another(parameter)})
        assert list(said) == ([] if parameter.option.silent else [parameter.name])


ROWS = np.random.default_rng(0).standard_normal((40, 6))
CALLS = {
    "measure": lambda: repcap.measure(ROWS, z=1.5),
    "pairs": lambda: repcap.pairs(ROWS, z=1.5),
    "neighbours": lambda: repcap.neighbours(ROWS, z=1.5),
    "compare": lambda: repcap.compare(ROWS, ROWS[::-1], z=1.5),
    "dictionary": lambda: repcap.dictionary(ROWS, z=1.5),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_record_holds_every_option_of_the_signature(name):
    record = CALLS[name]().to_dict()
    assert record["options"] == recorded(function_of(name), {"z": 1.5})
    assert record["options"].keys() == parameters(function_of(name)).keys()
    assert record["kind"] == name


@pytest.mark.parametrize("name", OF_FUNCTIONS)
def test_a_parameter_more_shows_in_all_of_them(name):
    """On a copy of the verb: the same signature and one parameter more, written nowhere else."""
    function = function_of(name)
    assert parameters(function), "no parameter carries an Option"

    @verb_over(function)
    def copy(*, sharpness: Sharpness = 2, **options: Any) -> None: ...

    @command_of(copy)
    def command(options: Options) -> None: ...

    assert "sharpness" in inspect.signature(copy).parameters
    assert "sharpness" in inspect.signature(command).parameters
    assert flags(copy)["sharpness"] == "--sharpness"
    assert check_options(copy, {"sharpness": 3}, "line 3") == {"sharpness": 3}
    with pytest.raises(InputError, match="line 3: sharpness = 10: give at least 1 and at most 9"):
        check_options(copy, {"sharpness": 10}, "line 3")
    assert key_options(copy, {"sharpness": 2}) == {}
    assert key_options(copy, {"sharpness": 3}) == {"sharpness": 3}
    assert recorded(copy, {})["sharpness"] == 2
    with pytest.raises(OptionError, match="sharpness = 0"):
        copy(sharpness=0)


# --- what people see --------------------------------------------------------------------------------------------------


def test_no_public_function_hides_its_options():
    functions = [name for name in repcap.__all__ if inspect.isfunction(getattr(repcap, name))]
    assert len(functions) > 15
    hidden = {
        name
        for name in functions
        for parameter in inspect.signature(getattr(repcap, name)).parameters.values()
        if parameter.kind is inspect.Parameter.VAR_KEYWORD
    }
    assert hidden == set()


def test_shift_tab_in_a_notebook_names_the_options():
    signature = inspect.signature(repcap.measure)
    assert {"source", "matrix", "z", "seed", "device", "rows"} <= signature.parameters.keys()
    assert signature.parameters["z"].default == 2.0
    assert {"rows", "seed", "centre", "store", "engine"} <= inspect.signature(repcap.survey).parameters.keys()


# --- a verb of its own ------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True, repr=False)
class Doubled(Result):
    value: float

    kind = "double"

    @property
    def reading(self) -> str:
        return f"Twice that is {self.value:g}."

    def values(self) -> dict[str, Any]:
        return {"value": self.value}


@verb
def double(x: float, *, z: Z = 2.0, sharpness: Sharpness = 2) -> Doubled:
    """Twice x."""
    return Doubled(2.0 * x * sharpness / 2.0 + 0.0 * z)


@command_of(double)
def double_command(options: Options, x: Annotated[float, typer.Argument()], json: JsonOption = False) -> None:
    """Twice x."""
    common.present(double(x, **options), json)


def test_a_verb_runs_from_its_signature():
    app = typer.Typer()
    app.command()(double_command)
    shown = CliRunner().invoke(app, ["4", "--sharpness", "3", "--json"])
    record = json.loads(shown.output)
    assert (record["kind"], record["value"], record["reading"]) == ("double", 12.0, "Twice that is 12.")
    assert record["options"] == {"z": 2.0, "sharpness": 3}
    assert "How sharp." in CliRunner().invoke(app, ["--help"]).output
    refused = CliRunner().invoke(app, ["4", "--sharpness", "10"])
    assert str(refused.exception) == "sharpness = 10: give at least 1 and at most 9"
    assert repr(double(4)).splitlines() == ["Doubled: double", "  Twice that is 8."]


STUDY = '''
"""`treble`: three times a number."""

from __future__ import annotations

import dataclasses
from typing import Annotated, Any

from repcap.options import Option, verb
from repcap.result import Result

Sharpness = Annotated[int, Option("How sharp.", least=1)]


@dataclasses.dataclass(frozen=True, repr=False)
class Trebled(Result):
    """Three times a number."""

    value: float

    kind = "treble"

    @property
    def reading(self) -> str:
        return f"It is {self.value:g}."

    def values(self) -> dict[str, Any]:
        return {"value": self.value}


@verb
def treble(x: float, *, sharpness: Sharpness = 1) -> Trebled:
    """Three times x, sharpened."""
    return Trebled(3.0 * x * sharpness)
'''
COMMAND = '''
"""`repcap treble`."""

from __future__ import annotations

from typing import Annotated

import typer

from repcap.console import common
from repcap.console.common import JsonOption
from repcap.console.derive import Options, command_of
from repcap.verbs.treble.study import treble


@command_of(treble)
def command(options: Options, x: Annotated[float, typer.Argument()], json: JsonOption = False) -> None:
    """Three times x."""
    common.present(treble(x, **options), json)
'''
SHOW = """
def parts(result):
    yield result.reading
"""
LINE = '    "treble": Verb("Three times a number.", MEASURE, ("treble", "Trebled")),\n'


@pytest.fixture(scope="module")
def with_treble(tmp_path_factory):
    """A copy of the package with one folder and one line more; runs a program in it."""
    root = tmp_path_factory.mktemp("copy")
    shutil.copytree(PACKAGE, root / "repcap", ignore=shutil.ignore_patterns("__pycache__"))
    folder = root / "repcap" / "verbs" / "treble"
    folder.mkdir()
    for name, text in (("__init__", ""), ("study", STUDY), ("command", COMMAND), ("show", SHOW)):
        (folder / f"{name}.py").write_text(text)
    table = root / "repcap" / "verbs" / "__init__.py"
    before, head, after = table.read_text().partition('    "inspect": Verb(')
    assert head
    table.write_text(before + LINE + head + after)

    def run(*words: object) -> str:
        program = "import sys; sys.path.insert(0, sys.argv.pop(1)); import repcap; " + str(words[0])
        done = subprocess.run(
            [sys.executable, "-c", program, str(root), *map(str, words[1:])],
            capture_output=True,
            text=True,
            check=False,
        )
        return done.stdout + done.stderr

    return run


MAIN = "from repcap.__main__ import main; main()"


def test_a_verb_is_one_folder_and_one_line(with_treble):
    assert "Three times a number." in with_treble(MAIN, "--help")
    assert "How sharp." in with_treble(MAIN, "treble", "--help")
    assert with_treble(MAIN, "treble", 4, "--sharpness", 2) == "It is 24.\n"
    assert json.loads(with_treble(MAIN, "treble", 4, "--json"))["options"] == {"sharpness": 1}
    assert with_treble(MAIN, "treble", 4, "--sharpness", 0) == "repcap: error: --sharpness 0: give at least 1\n"
    assert with_treble("print(repcap.treble(4), 'Trebled' in dir(repcap), 'treble' in repcap.__all__)") == (
        "Trebled: treble\n  It is 12. True True\n"
    )
