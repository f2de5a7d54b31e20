"""`@verb`: a function whose calls are checked by its signature, and whose result knows what was asked."""

from __future__ import annotations

import functools
import inspect
import sys
import time
import typing
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Annotated, Any, ParamSpec, TypeVar

from repcap.errors import InputError
from repcap.matrix import HEARD
from repcap.options.checking import check, near, recorded
from repcap.options.option import Parameter, parameters
from repcap.result import Result

P = ParamSpec("P")
R = TypeVar("R")


def verb(function: Callable[P, R]) -> Callable[P, R]:
    """Make `function` a verb: its calls are checked by its signature, and its result knows what was asked.

    A result that is a `Result` gets `options` (what was asked, by name) and `seconds` (wall time of the call; loading
    torch, for a function that computes on a `device`, is no part of it). A function with `on_progress` takes `progress`
    too: in a notebook a bar shows by itself after a second, unless it is False.
    """
    signature = inspect.signature(function)
    return _verb(function, signature, computes="device" in signature.parameters)


def verb_over(base: Callable[..., Any], *, leave: Sequence[str] = ()) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """`verb`, where `**options` of the function stand for the options of `base` that it does not name itself.

    It hands the work on (to workers, to `base`): nothing is loaded for it here.

    The signature that people and the command line see names them all. leave: those that have no place here.
    """

    def named(function: Callable[P, R]) -> Callable[P, R]:
        signature = inspect.signature(function)
        own = [item for item in signature.parameters.values() if item.kind is not inspect.Parameter.VAR_KEYWORD]
        taken = {item.name for item in own} | set(leave)
        of_base = inspect.signature(base).parameters
        more = [
            of_base[name].replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=_annotated(item))
            for name, item in parameters(base).items()
            if name not in taken and of_base[name].kind is inspect.Parameter.KEYWORD_ONLY
        ]
        return _verb(function, signature.replace(parameters=[*own, *more]), computes=False)

    return named


def _annotated(parameter: Parameter) -> Any:
    kind = parameter.type
    if isinstance(kind, tuple):
        kind = typing.Union[kind]  # noqa: UP007 - made of a tuple
    return Annotated[kind | None if parameter.optional else kind, parameter.option]


def _verb(function: Callable[P, R], signature: inspect.Signature, *, computes: bool) -> Callable[P, R]:
    signature = _with_progress(signature)

    @functools.wraps(function)
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        for name in kwargs:
            if name not in signature.parameters:
                raise InputError(f"{function.__name__} has no option {name}{near(name, signature.parameters)}")
        bound = signature.bind(*args, **kwargs)
        shown = bound.arguments.pop("progress", True) and _takes_progress(signature)
        bound.arguments.update(check(checked, bound.arguments))
        if computes:
            import_module("torch")  # takes longer than many a call: before the clock starts
        began = time.perf_counter()
        with (
            _progress(function.__name__, shown and bound.arguments.get("on_progress") is None) as bar,
            _listening() as heard,
        ):
            found = function(*bound.args, **bound.kwargs, **bar)
        if isinstance(found, Result):
            found = found.with_call(recorded(checked, bound.arguments), time.perf_counter() - began, _told(heard))
        return found

    checked.__signature__ = signature  # type: ignore[attr-defined]
    return checked


@contextmanager
def _listening() -> Iterator[list[tuple[str, str]]]:
    """What is to be said of the sources that are opened; a verb around this one hears it, too."""
    outer = HEARD.get()
    heard: list[tuple[str, str]] = []
    token = HEARD.set(heard)
    try:
        yield heard
    finally:
        HEARD.reset(token)
        if outer is not None:
            outer += heard


def _told(heard: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    """Each warning once, with its source where there are several."""
    several = len({source for source, _ in heard}) > 1
    return tuple(dict.fromkeys(f"{source}: {warning}" if several else warning for source, warning in heard))


def _takes_progress(signature: inspect.Signature) -> bool:
    return "on_progress" in signature.parameters


def _with_progress(signature: inspect.Signature) -> inspect.Signature:
    """The signature with `progress`, where the function can say how far it is."""
    if not _takes_progress(signature):
        return signature
    more = inspect.Parameter("progress", inspect.Parameter.KEYWORD_ONLY, default=True, annotation="bool")
    return signature.replace(parameters=[*signature.parameters.values(), more])


@contextmanager
def _progress(label: str, wanted: bool) -> Iterator[dict[str, Any]]:
    """{"on_progress": a bar} in a notebook, where the caller gave none; else nothing."""
    notebook = import_module("repcap.console.notebook") if wanted and "ipykernel" in sys.modules else None
    if notebook is None or not notebook.running():
        yield {}
        return
    with notebook.bar(label) as update:
        yield {"on_progress": update}
