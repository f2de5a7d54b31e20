"""The optimisers of `pack`: objects that carry their own parameters and turn a task into k lines.

One more is one file, with a frozen dataclass that is a `Method`, and one line in `METHODS`. Torch comes with the class.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, runtime_checkable

from repcap.errors import OptionError

if TYPE_CHECKING:
    from repcap.packing.search.method import Found, Task

METHODS: dict[str, str] = {
    "optimise": "repcap.packing.search.optimise:Optimise",
    "random": "repcap.packing.search.random_lines:RandomLines",
    "adam-pnorm": "repcap.packing.search.adam_pnorm:AdamPnorm",
}
"""Name, as `pack(method=...)` and `--method` take it, -> module and class that carries its parameters."""


@runtime_checkable
class Method(Protocol):
    """An optimiser: a frozen dataclass whose fields are its parameters, checked when it is made."""

    name: ClassVar[str]
    about: ClassVar[str]
    """One line of help."""
    baseline: ClassVar[bool]
    """Whether it is asked for to be seen: an explicit construction beside it would hide it."""

    def run(self, task: Task) -> Found:
        """k lines in R^d.

        Raises
        ------
        InputError
            where the parameters do not fit the task.
        """


def method_of(method: str | Method, options: Mapping[str, Any]) -> Method:
    """The optimiser of that name with those of `options` that are parameters of it; one that is made already as it is.

    Raises
    ------
    InputError
        for an unknown name, or a parameter that means nothing.
    """
    if isinstance(method, Method):
        return method
    if method not in METHODS:
        raise OptionError("method", method, f"use {', '.join(METHODS)}")
    module, _, name = METHODS[method].partition(":")
    kind: Any = getattr(import_module(module), name)
    names = {field.name for field in dataclasses.fields(kind)}
    made: Method = kind(**{name: value for name, value in options.items() if name in names})
    return made
