"""The signature is the only list of options.

A parameter of a verb is declared once, as `Annotated[type, Option(...)]`; the aliases that several verbs share stand at
the end of this file. From the signature of the function come

- the options of the command line, with their help (`repcap.console.derive`),
- the checks of what was given, in Python, on the command line or in a YAML list (`check`, `check_options`),
- the part of a unit's key in a store that options make up (`key_options`),
- `options` of a record (`recorded`).

`@verb` on the function checks every call and writes `options` and `seconds` into the result. Nothing here imports
anything heavy.
"""

from __future__ import annotations

import dataclasses
import difflib
import functools
import inspect
import math
import os
import sys
import time
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, ParamSpec, TypeVar, get_args, get_origin

from repcap.errors import DomainError, InputError, OptionError
from repcap.numerics import SEED_MOST
from repcap.result import Result

MOST_IDS = 50_000_000
"""Rows that one list may name: more is a slip of the keyboard, and would fill memory."""

P = ParamSpec("P")
R = TypeVar("R")


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


def _checked(parameter: Parameter, value: Any) -> Any:
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


def check(function: Callable[..., Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """`given` in plain Python values, each checked against the signature of `function`.

    Names that carry no Option pass as they are.

    Raises
    ------
    OptionError, DomainError
        for a value of another kind or outside its limits.
    """
    known = parameters(function)
    return {name: _checked(known[name], value) if name in known else value for name, value in given.items()}


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
            found[str(name)] = _checked(known[name], value)
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
        plain = _written(known[name], _checked(known[name], value))
        if plain != _written(known[name], usual.get(name)):
            said[name] = plain
    return said


def _written(parameter: Parameter, value: Any) -> Any:
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
        name: _written(parameter, given.get(name, None if parameter.required else parameter.default))
        for name, parameter in parameters(function).items()
    }


def verb(function: Callable[P, R]) -> Callable[P, R]:
    """Make `function` a verb: its calls are checked by its signature, and its result knows what was asked.

    A result that is a `Result` gets `options` (what was asked, by name) and `seconds` (wall time of the call). A
    function with `on_progress` takes `progress` too: in a notebook a bar shows by itself after a second, unless it is
    False.
    """
    return _verb(function, inspect.signature(function))


def verb_over(base: Callable[..., Any], *, leave: Sequence[str] = ()) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """`verb`, where `**options` of the function stand for the options of `base` that it does not name itself.

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
        return _verb(function, signature.replace(parameters=[*own, *more]))

    return named


def _annotated(parameter: Parameter) -> Any:
    kind = parameter.type
    if isinstance(kind, tuple):
        kind = typing.Union[kind]  # noqa: UP007 - made of a tuple
    return Annotated[kind | None if parameter.optional else kind, parameter.option]


def _verb(function: Callable[P, R], signature: inspect.Signature) -> Callable[P, R]:

    signature = _with_progress(signature)

    @functools.wraps(function)
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        for name in kwargs:
            if name not in signature.parameters:
                raise InputError(f"{function.__name__} has no option {name}{near(name, signature.parameters)}")
        bound = signature.bind(*args, **kwargs)
        shown = bound.arguments.pop("progress", True) and _takes_progress(signature)
        bound.arguments.update(check(checked, bound.arguments))
        began = time.perf_counter()
        with _progress(function.__name__, shown and bound.arguments.get("on_progress") is None) as bar:
            found = function(*bound.args, **bound.kwargs, **bar)
        if isinstance(found, Result):
            found = found.with_call(recorded(checked, bound.arguments), time.perf_counter() - began)
        return found

    checked.__signature__ = signature  # type: ignore[attr-defined]
    return checked


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


def _as_ids(ids: Sequence[int]) -> str:
    """Row numbers as the command line takes them: `0,5,100-199`."""
    pieces: list[list[int]] = []
    for row in sorted(set(ids)):
        if pieces and row == pieces[-1][1] + 1:
            pieces[-1][1] = row
        else:
            pieces.append([row, row])
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in pieces)


def parse_ids(text: str, what: str = "row") -> tuple[int, ...]:
    """Numbers of rows (or blocks, ...), each once, ascending. Separators: commas, white space; `a-b` has both ends.

    `@FILE` reads the same from a file.

    >>> parse_ids("5, 0, 2-4")
    (0, 2, 3, 4, 5)

    Raises
    ------
    InputError
        if a piece is no number and no range, or the file of `@FILE` cannot be read.
    """
    if text.startswith("@"):
        path = Path(text[1:])
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "not a text file"
            raise InputError(f"cannot read the {what} numbers in {path}: {reason.lower()}") from error
    found: set[int] = set()
    for piece in text.replace(",", " ").split():
        first, dash, last = piece.partition("-")
        if not (first.isdecimal() and (last.isdecimal() if dash else True)):
            raise InputError(f"{piece!r} is no {what} number: write them as 0,5,100-199 or @FILE")
        low, high = int(first), int(last or first)
        if high < low or high - low >= MOST_IDS:
            raise InputError(
                f"{piece!r} is no range of {what}s: write the smaller number first, at most {MOST_IDS:,} {what}s"
            )
        found.update(range(low, high + 1))
    return tuple(sorted(found))


# --- the options that several verbs share -----------------------------------------------------------------------------

MatrixName = Annotated[
    str, Option("embedding, unembedding, or a tensor name (see repcap inspect).", listed=False, metavar="NAME")
]
Z = Annotated[float, Option("epsilon = mean + z std.", least=0.0, why="give a finite z >= 0 (the default is 2)")]
Seed = Annotated[
    int, Option("Same seed, same numbers.", least=0, most=SEED_MOST, why="give a whole number in 0..2^63 - 1")
]
Device = Annotated[str, Option("auto, cpu, cuda, cuda:N or mps.", silent=True, listed=False)]
Rows = Annotated[
    int | None,
    Option("Estimate from this many random rows, with an interval.", least=2, why="give 2 or more", listed=False),
]
Dtype = Annotated[str, Option("Precision of the products: float32 or float64.", choices=("float32", "float64"))]
BlockRows = Annotated[
    int | None,
    Option("Rows in memory at once (default: 64 MiB of them).", least=1, why="a block holds one or more", silent=True),
]
AllowTruncated = Annotated[bool, Option("Read a truncated file if this matrix is whole.", silent=True)]
AllowFullDownload = Annotated[bool, Option("Download a whole file from a server that sends no parts.", silent=True)]
Top = Annotated[int, Option("How many to name.", least=0, most=10_000, why="give 0 to 10000")]
EngineName = Annotated[
    str | None, Option("Spread the work: local[:N] or ray[:ADDRESS].", silent=True, listed=False, metavar="ENGINE")
]
Influence = Annotated[
    int,
    Option("List so many tokens that raise and that lower epsilon.", least=0, why="give how many rows, 0 for none",
           metavar="N"),
]  # fmt: skip
Centre = Annotated[bool, Option("Also measure without the mean of the rows.", flags=("--centre", "--center"))]
RemoveTop = Annotated[
    int,
    Option("Also measure without the M strongest directions.", least=0, metavar="M",
           why="give how many directions, 0 for none"),
]  # fmt: skip
ExcludeIds = Annotated[
    Iterable[int] | None,
    Option("Rows to leave out: 0,5,100-199 or @FILE.", read=parse_ids, write=_as_ids, metavar="IDS"),
]
OnlyIds = Annotated[
    Iterable[int] | None, Option("Measure these rows alone.", read=parse_ids, write=_as_ids, metavar="IDS")
]
TokenizerRows = Annotated[bool, Option("Leave out rows beyond the tokenizer.")]
VocabSize = Annotated[int | None, Option("Measure the first V rows alone.", metavar="V")]
StorePath = Annotated[
    str | os.PathLike[str],
    Option("Result store; made if missing.", flags=("--store",), metavar="FILE", silent=True, listed=False),
]
Engine = Annotated[
    str, Option("local, local:N, ray, ray:ADDRESS, or inline.", metavar="ENGINE", silent=True, listed=False)
]
Timeout = Annotated[
    float | None, Option("Seconds after which a unit of work counts as hung.", above=0.0, silent=True, listed=False)
]
Retries = Annotated[int, Option("New tries after a worker was lost.", least=0, silent=True, listed=False)]
Refresh = Annotated[bool, Option("Work out again what is stored.", silent=True, listed=False)]
