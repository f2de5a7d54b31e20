"""What was given, checked against a signature; what of it a key and a record hold."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from repcap.errors import DomainError, InputError, OptionError
from repcap.options.option import Parameter, checked, parameters


def check(function: Callable[..., Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """`given` in plain Python values, each checked against the signature of `function`.

    Names that carry no Option pass as they are.

    Raises
    ------
    OptionError, DomainError
        for a value of another kind or outside its limits.
    """
    known = parameters(function)
    return {name: checked(known[name], value) if name in known else value for name, value in given.items()}


def check_options(function: Callable[..., Any], given: Mapping[Any, Any], where: str) -> dict[str, Any]:
    """The same for options out of a list that people write (YAML): names are checked too.

    Raises
    ------
    InputError
        for a name that `function` does not have or that a list may not set, or a bad value; it says `where`.
    """
    known = {name: item for name, item in parameters(function).items() if item.option.listed}
    found = {}
    for name, value in given.items():
        if name not in known:
            raise InputError(f"{where}: unknown option {str(name)[:60]}{near(str(name), known)}")
        try:
            found[str(name)] = checked(known[name], value)
        except (OptionError, DomainError) as error:
            raise InputError(f"{where}: {error}") from error
    return found


def near(name: str, known: Iterable[str]) -> str:
    """What to say after an unknown name: the near one, or all of them."""
    names = list(known)
    close = difflib.get_close_matches(name, names, n=1)
    return f"; did you mean {close[0]}?" if close else f"; known are {', '.join(names)}"


def defaults(function: Callable[..., Any]) -> dict[str, Any]:
    """Name -> default of every option that has one."""
    return {name: item.default for name, item in parameters(function).items() if not item.required}


def key_options(function: Callable[..., Any], given: Mapping[str, Any], **other_defaults: Any) -> dict[str, Any]:
    """The part of `given` that a unit's key depends on: what changes a number and is not at its default.

    other_defaults: where a study has defaults of its own. An option at its default gives the key that it gives where
    it is left out.
    """
    known, usual = parameters(function), {**defaults(function), **other_defaults}
    said: dict[str, Any] = {}
    for name, value in given.items():
        if name not in known or known[name].option.silent or value is None:
            continue
        plain = written(known[name], checked(known[name], value))
        if plain != written(known[name], usual.get(name)):
            said[name] = plain
    return said


def written(parameter: Parameter, value: Any) -> Any:
    """`value` as a record holds it."""
    if value is not None and parameter.option.write is not None:
        return parameter.option.write(value)
    if isinstance(value, tuple):
        return list(value)
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return str(value)


def chosen(function: Callable[..., Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Those of `given` that are options of `function` too: what one function hands on to another."""
    return {name: given[name] for name in parameters(function) if name in given}


def recorded(function: Callable[..., Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """`options` of a record: every option of `function` by name, with its value or its default, ready for JSON."""
    return {
        name: written(parameter, given.get(name, None if parameter.required else parameter.default))
        for name, parameter in parameters(function).items()
    }
