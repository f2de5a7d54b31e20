"""The exception tree of repcap.

::

    RepcapError                 exit code 2 on the command line, one line, no traceback
    ├── DomainError             a number is outside the domain of a formula (also a ValueError)
    ├── InputError              an argument, option or file of ours is unusable (also a ValueError)
    │   └── OptionError         a parameter has a value that means nothing, or is unknown
    ├── SourceError             a checkpoint cannot be read, or does not hold what was asked for
    │   ├── MatrixNotFound      no such tensor; the message lists what could be measured
    │   ├── UnsafeFileError     the file asks for code to be run, or points outside its directory
    │   └── RemoteError         the Hub or a server refused, failed or lied
    ├── VectorsError            the rows have no usable geometry (empty, one row, wrong rank, complex ...)
    ├── StoreError              a result store cannot be opened, or is of another schema
    └── MissingExtraError       an optional dependency is missing; the message is the pip line

Every message is one line that says what is wrong, where, and what to do.
"""

from __future__ import annotations

import sys


class RepcapError(Exception):
    """Base of everything that repcap raises on purpose."""

    exit_code = 2


class DomainError(RepcapError, ValueError):
    """A number is outside the domain of a formula. The message names the value and the domain."""


class InputError(RepcapError, ValueError):
    """An argument, an option or a small input file (CSV, YAML, list) is unusable."""


class OptionError(InputError):
    """A parameter has a value that means nothing. `str` names it as Python does; the command line adds its dashes."""

    def __init__(self, parameter: str, value: object, reason: str) -> None:
        super().__init__(parameter, value, reason)
        self.parameter, self.value, self.reason = parameter, value, reason

    def __str__(self) -> str:
        return f"{self.parameter} = {_short(self.value)}: {self.reason}"


def _short(value: object) -> str:
    """`value` in at most 60 characters."""
    shown = value if isinstance(value, str) else repr(value)
    return shown if len(shown) <= 60 else f"{shown[:57]}..."


class SourceError(RepcapError):
    """A source cannot be read, or does not hold what was asked for."""


class MatrixNotFound(SourceError, LookupError):
    """The source holds no matrix of that name or role."""


class UnsafeFileError(SourceError):
    """The file would run code, or its index points outside its directory."""


class RemoteError(SourceError):
    """The Hub or a server refused, failed, or answered something that cannot be trusted."""


class VectorsError(RepcapError, ValueError):
    """The vectors have no usable geometry: empty, a single row, wrong rank or dtype, all rows zero."""


class StoreError(RepcapError):
    """A result store cannot be opened, is damaged, or has another schema version."""


class MissingExtraError(RepcapError, ImportError):
    """An optional dependency is missing, or is there and cannot be imported (raise it where that was met)."""

    def __init__(self, what: str, extra: str) -> None:
        met = sys.exc_info()[1]
        if isinstance(met, ImportError) and not isinstance(met, ModuleNotFoundError):
            reason = (str(met).splitlines() or ["no reason given"])[0][:120]
            super().__init__(
                f"{what}: a package that it needs is installed and cannot be imported ({reason}): "
                f"pip install --force-reinstall 'repcap[{extra}]'"
            )
        else:
            super().__init__(f"{what} needs an optional package: pip install 'repcap[{extra}]'")
