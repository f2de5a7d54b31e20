"""What a verb finds: one base for all results.

A result is a frozen dataclass with a `kind` (the verb's name), a `reading` (what it means, in words) and the call that
gave it (`options`, `seconds`, `version`). `to_dict()` is its JSON. How it looks belongs to the verb's folder: a
notebook shows what `repcap.verbs.KIND.show.parts` gives, `plot` draws with `repcap.verbs.KIND.figure.draw`.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from repcap._version import __version__
from repcap.errors import InputError, MissingExtraError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SCHEMA_VERSION = 2
"""Of every JSON record: raised where a key changes its name or meaning. CHANGELOG.md lists the changes."""

Self = TypeVar("Self", bound="Result")


@dataclasses.dataclass(frozen=True, repr=False, kw_only=True)
class Result:
    """Base of all results.

    options: what was asked for, by the names of the signature. seconds: wall time of the call. version: of repcap.
    warned: what is to be known of the sources. `verb` (repcap.options) fills them in.
    """

    kind: ClassVar[str] = "result"
    """Name of the verb, and of the shape of the record."""
    tells: ClassVar[bool] = False
    """Whether `values()` and the verb's `parts` say themselves what is to be known of the sources."""

    options: dict[str, Any] = dataclasses.field(default_factory=dict)
    seconds: float = 0.0
    version: str = __version__
    warned: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """What this is a result of, in one line."""
        return self.kind

    @property
    def numbers(self) -> str:
        """The numbers that matter most, in one line."""
        return ""

    @property
    def reading(self) -> str:
        """What the numbers mean, in one or two sentences."""
        return ""

    def values(self) -> dict[str, Any]:
        """What was found, by the keys of the JSON record, without what `to_dict` adds: by default every own field."""
        added = {field.name for field in dataclasses.fields(Result)}
        return {name: value for name, value in dataclasses.asdict(self).items() if name not in added}

    def to_dict(self) -> dict[str, Any]:
        """The JSON record: `values()` with kind, schema version, reading, and the call that gave them."""
        return {
            "kind": self.kind,
            "schema_version": SCHEMA_VERSION,
            **self.values(),
            **({"warnings": list(self.warned)} if self.warned and not self.tells else {}),
            "reading": self.reading,
            "options": self.options,
            "seconds": self.seconds,
            "repcap_version": self.version,
        }

    def with_call(self: Self, options: Mapping[str, Any], seconds: float, warned: tuple[str, ...] = ()) -> Self:
        """The same result, with the call that gave it."""
        return dataclasses.replace(self, options=dict(options), seconds=seconds, warned=warned)

    def rows(self) -> list[dict[str, Any]]:
        """The result as a table, one mapping a row; by default one row of all that is no list and no mapping."""
        return [{key: value for key, value in self.to_dict().items() if not isinstance(value, (list, dict))}]

    def to_frame(self) -> Any:
        """`rows()` as a pandas.DataFrame.

        Raises
        ------
        MissingExtraError
            if pandas is not installed.
        """
        try:
            pandas = import_module("pandas")
        except ImportError:
            raise MissingExtraError("to_frame", "notebook") from None
        return pandas.DataFrame(self.rows())

    def plot(self, ax: Axes | None = None, path: str | os.PathLike[str] | None = None) -> Any:
        """Draw the figure of this kind into `ax`, into a file, or into a new figure; returns what was drawn into.

        Of a figure of several panels `ax` gets the first. path: a .png, .svg or .pdf; the paths written are returned.

        Raises
        ------
        InputError
            if this kind of result has no figure, or nothing to draw.
        MissingExtraError
            if matplotlib is not installed.
        """
        try:
            draw = import_module(f"repcap.verbs.{self._folder()}.figure").draw
        except ModuleNotFoundError as error:
            if (error.name or "").startswith("repcap."):
                raise InputError(f"a result of kind {self.kind} has no figure") from None
            raise MissingExtraError("drawing a figure", "plots") from None
        return draw(self.to_dict(), path, ax=ax)

    def parts(self) -> Iterator[Any]:
        """What the terminal shows, as rich renderables."""
        yield from import_module(f"repcap.verbs.{self._folder()}.show").parts(self)
        for warning in () if self.tells else self.warned:
            yield import_module("repcap.console.prose").prose(f"Note: {warning}.")

    def _folder(self) -> str:
        return self.kind.replace("-", "_")

    def __repr__(self) -> str:
        first = f"{type(self).__name__}: {self.title}"
        return "\n".join([first, *(f"  {line}" for line in (self.numbers, self.reading) if line)])

    def _repr_html_(self) -> str:
        """The terminal's tables as HTML that follows the colours of the notebook."""
        html: str = import_module("repcap.console.html").to_html(self.parts())
        return html
