"""The command line of a verb, derived from the signature of its function.

    @command_of(pairs)
    def command(options: Options, source: SourceArgument, plot: PlotOption = None, json: JsonOption = False) -> None:
        ...

typer then sees `source`, an option for every parameter of `pairs` that carries an `Option`, `--plot` and `--json`. What
the command declares itself goes to its parameters; the options of the function come as one mapping, ready to be handed
on: `pairs(source, **options)`. A parameter that the command declares itself is not derived.
"""

from __future__ import annotations

import functools
import inspect
import typing
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from repcap.options import Parameter, parameters

Options = dict[str, Any]
"""What the options of a verb's function were set to, by parameter."""

Command = Callable[..., None]


def command_of(function: Callable[..., Any], *, leave: Sequence[str] = ()) -> Callable[[Command], Command]:
    """Give a command the options of `function`. leave: parameters that the command line does not have."""

    def derived(command: Command) -> Command:
        own, known = inspect.signature(command, eval_str=True).parameters, inspect.signature(function).parameters
        taken = {**{name: item for name, item in own.items() if name != "options"}}
        found = {
            name: item
            for name, item in parameters(function).items()
            if item.option.shown and name not in taken and name not in leave
        }

        @functools.wraps(command)
        def run(**given: Any) -> None:
            options = {name: _value(item, given.pop(name)) for name, item in found.items()}
            command(options, **given)

        # Arguments first; then what the function has too, such as --matrix; the command's own options last.
        ordered = sorted(taken.values(), key=lambda item: 0 if _is_argument(item) else 1 if item.name in known else 2)
        before = [item for item in ordered if _is_argument(item) or item.name in known]
        listed = [_keyword(item) for item in before]
        listed += [_declared(item) for item in found.values()]
        listed += [_keyword(item) for item in ordered[len(before) :]]
        run.__signature__ = inspect.Signature(listed)  # type: ignore[attr-defined]
        run.__annotations__ = {item.name: item.annotation for item in listed}
        run.flags = flags(function)  # type: ignore[attr-defined]
        return run

    return derived


def flags(function: Callable[..., Any]) -> dict[str, str]:
    """Parameter -> its option on the command line."""
    return {name: flag(item) for name, item in parameters(function).items()}


def flag(parameter: Parameter) -> str:
    """The first name of a parameter on the command line."""
    names = parameter.option.flags
    return names[0].partition("/")[2] or names[0] if names else f"--{parameter.name.replace('_', '-')}"


def _is_argument(item: inspect.Parameter) -> bool:
    return any(type(part).__name__ == "ArgumentInfo" for part in getattr(item.annotation, "__metadata__", ()))


def _keyword(item: inspect.Parameter) -> inspect.Parameter:
    return item.replace(kind=inspect.Parameter.KEYWORD_ONLY)


def _declared(item: Parameter) -> inspect.Parameter:
    """The parameter as typer takes it."""
    option = item.option
    names = option.flags or (f"--{item.name.replace('_', '-')}",)
    told = typer.Option(
        *names, help=option.help, metavar=option.metavar, show_default=item.default not in ((), None, "")
    )
    return inspect.Parameter(
        item.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=inspect.Parameter.empty if item.required else _shown_default(item),
        annotation=Annotated[_typer_type(item), told],
    )


def _typer_type(item: Parameter) -> Any:
    """What typer parses: text where the option reads it itself, a list where several values may be given."""
    if item.option.read is not None:
        return str if not item.optional else str | None
    kind = item.type
    if isinstance(kind, tuple):
        kind = str if str in kind else kind[0]
    if _is_list(kind):
        inner = typing.get_args(kind)[0] if typing.get_args(kind) else str
        return list[inner] | None  # type: ignore[valid-type]
    if kind not in (int, float, str, bool, Path):
        kind = str
    return kind | None if item.optional or item.default is None else kind


def _is_list(kind: Any) -> bool:
    return typing.get_origin(kind) not in (None, typing.Literal)


def _shown_default(item: Parameter) -> Any:
    if item.option.read is not None:
        return None if item.default is None else _as_text(item.default)
    return None if _is_list(item.type) else item.default


def _as_text(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _value(item: Parameter, given: Any) -> Any:
    """What was given, as the function takes it."""
    if item.option.read is not None:
        if given is None:
            return None
        if item.default is not None and given == _shown_default(item):
            return item.default
        return item.option.read(given)
    if _is_list(item.type):
        return item.default if given is None else tuple(given)
    if isinstance(item.type, tuple) and str in item.type and int in item.type and isinstance(given, str):
        return int(given) if given.isdecimal() else given
    return given
