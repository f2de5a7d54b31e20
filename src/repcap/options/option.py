"""What an option is: the meaning and the limits of a parameter, read from a signature."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import math
import os
import sys
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args, get_origin

from repcap.errors import DomainError, OptionError


@dataclasses.dataclass(frozen=True)
class Option:
    """What a parameter means, and which of its values mean something.

    help: one line, shown by --help and in notebooks.
    least, most: inclusive limits. above, below: exclusive ones. choices: the words that are allowed.
    why: what a refused value is told, such as `a block holds at least one row`; by default made from the limits.
    flags: names on the command line where `--name` will not do, or others beside it. metavar: of its value.
    read: turns the text of the command line into the value (lists of row numbers); None where the type does.
    write: turns the value into what a record holds; None where it is JSON already.
    silent: it changes no number, so it is no part of a unit's key (device, block sizes, permissions).
    listed: whether a YAML list may set it.
    shown: whether the command line has it; False for what only Python can give.
    domain: a value outside the limits is a DomainError, as a formula raises it, and no OptionError.
    """

    help: str
    least: float | None = None
    most: float | None = None
    above: float | None = None
    below: float | None = None
    choices: tuple[str, ...] = ()
    why: str = ""
    flags: tuple[str, ...] = ()
    metavar: str | None = None
    read: Callable[[str], Any] | None = None
    write: Callable[[Any], Any] | None = None
    silent: bool = False
    listed: bool = True
    shown: bool = True
    domain: bool = False

    def reason(self) -> str:
        """What values mean something."""
        if self.why:
            return self.why
        if self.choices:
            return f"use {', '.join(self.choices)}"
        limits = {"at least": self.least, "above": self.above, "at most": self.most, "below": self.below}
        parts = [f"{word} {limit:g}" for word, limit in limits.items() if limit is not None]
        return f"give {' and '.join(parts)}" if parts else "that means nothing"

    def allows(self, value: Any) -> bool:
        """Whether `value`, of the right kind, lies within the limits."""
        if self.choices and isinstance(value, str):
            return value in self.choices
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return (
                (self.least is None or value >= self.least)
                and (self.most is None or value <= self.most)
                and (self.above is None or value > self.above)
                and (self.below is None or value < self.below)
            )
        return True


@dataclasses.dataclass(frozen=True)
class Parameter:
    """One parameter of a verb that carries an `Option`."""

    name: str
    type: Any
    """Without `Annotated` and without None."""
    optional: bool
    """Whether None is a value."""
    default: Any
    """`inspect.Parameter.empty` where one must be given."""
    option: Option

    @property
    def required(self) -> bool:
        return self.default is inspect.Parameter.empty


@functools.cache
def parameters(function: Callable[..., Any]) -> dict[str, Parameter]:
    """The parameters of `function` that carry an Option, in the order of its signature."""
    plain = inspect.unwrap(function)
    found: dict[str, Parameter] = {}
    for name, parameter in inspect.signature(function).parameters.items():
        hint = _evaluated(parameter.annotation, plain)
        option = next((part for part in getattr(hint, "__metadata__", ()) if isinstance(part, Option)), None)
        if option is not None:
            kind, optional = _without_none(get_args(hint)[0])
            found[name] = Parameter(name, kind, optional, parameter.default, option)
    return found


def _evaluated(annotation: Any, function: Callable[..., Any]) -> Any:
    """The annotation as an object; None where it names what is imported for type checkers alone."""
    if not isinstance(annotation, str):
        return annotation
    try:
        return eval(annotation, getattr(function, "__globals__", None) or vars(sys.modules[function.__module__]))
    except NameError:
        return None


def _without_none(hint: Any) -> tuple[Any, bool]:
    """(the type, whether None may stand in its place)."""
    if get_origin(hint) in (typing.Union, types.UnionType):
        parts = tuple(part for part in get_args(hint) if part is not type(None))
        return (parts[0] if len(parts) == 1 else parts), len(parts) < len(get_args(hint))
    return hint, False


def _plain(parameter: Parameter, value: Any) -> Any:
    """`value` in plain Python numbers, words and tuples.

    Raises
    ------
    OptionError
        if it is of another kind than the signature says.
    """
    kinds = parameter.type if isinstance(parameter.type, tuple) else (parameter.type,)
    for kind in kinds:
        try:
            return _as_kind(kind, value)
        except (TypeError, ValueError, OverflowError):  # noqa: PERF203 - two kinds at most
            continue
    raise OptionError(parameter.name, value, f"give {' or '.join(_said(kind) for kind in kinds)}")


def _as_kind(kind: Any, value: Any) -> Any:
    """`value` as `kind`; TypeError, ValueError or OverflowError where it is none."""
    if kind is bool:
        if isinstance(value, bool) or type(value).__name__ == "bool_":
            return bool(value)
        raise TypeError
    if kind is int:
        if isinstance(value, bool) or not hasattr(value, "__index__"):
            raise TypeError
        return int(value)
    if kind is float:
        if isinstance(value, (bool, str, bytes)):
            raise TypeError
        number = float(value)
        if not math.isfinite(number):
            raise ValueError
        return number
    if kind is str:
        if not isinstance(value, str):
            raise TypeError
        return str(value)
    if get_origin(kind) in (tuple, Sequence, Iterable) or kind in (tuple, Sequence, Iterable):
        if isinstance(value, (str, bytes, Mapping)):
            raise TypeError
        inner = get_args(kind)[0] if get_args(kind) else None
        return tuple(value) if inner is None or inner is Any else tuple(_as_kind(inner, item) for item in value)
    if _is_path(kind) and not isinstance(value, (str, os.PathLike)):
        raise TypeError
    return value  # a path, a device, a table: the function knows


def _is_path(kind: Any) -> bool:
    return kind is Path or (get_origin(kind) or kind) is os.PathLike


def _said(kind: Any) -> str:
    names = {int: "a whole number", float: "a finite number", bool: "true or false", str: "text"}
    if kind in names or _is_path(kind):
        return names.get(kind, "a path")
    inner = get_args(kind)
    return f"a list of {_said(inner[0]).split(' ', 1)[-1]}s" if inner and inner[0] in names else "a list"


def checked(parameter: Parameter, value: Any) -> Any:
    if value is None:
        if parameter.optional or parameter.default is None:
            return None
        raise OptionError(parameter.name, value, f"give {_said(parameter.type)}")
    plain = _plain(parameter, value)
    option = parameter.option
    for item in plain if isinstance(plain, tuple) else (plain,):
        if not option.allows(item):
            if option.domain:
                raise DomainError(f"{parameter.name} = {item!r} is outside the domain: {option.reason()}")
            raise OptionError(parameter.name, item, option.reason())
    return plain
