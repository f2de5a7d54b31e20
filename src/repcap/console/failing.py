"""From an error to one line on stderr and an exit code, in the words of the command line."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from contextlib import suppress

from repcap.console import interrupt
from repcap.errors import OptionError, RepcapError
from repcap.text import printable

Flags = Mapping[str, str]
"""Parameter of the verb's function -> its option on the command line."""


def print_error(message: str) -> None:
    """`repcap: error: ...` on stderr: one line, whatever a library or a name in a file put into the message."""
    with suppress(OSError):  # nobody may be listening
        sys.stderr.write(f"repcap: error: {printable(' '.join(message.split()))}\n")
        sys.stderr.flush()


def fail(message: str, code: int) -> int:
    print_error(message)
    return code


def in_flags(error: BaseException, flags: Flags) -> str:
    """The message of `error` with the options of the command line in place of parameters (`seed` -> --seed)."""
    message = str(error)
    if isinstance(error, OptionError) and error.parameter in flags:
        before = f"{error.parameter} = "
        message = f"{flags[error.parameter]} {message.removeprefix(before)}"
    return helpful(in_words(message, flags), flags)


NO_HELP = (
    ("--allow-truncated", r", or pass --allow-truncated .*$", ""),
    (
        "--allow-full-download",
        r"pass --allow-full-download to do that",
        "repcap measure can, with --allow-full-download",
    ),
    ("--matrix", r"; measure --matrix embedding$|, or name a tensor with --matrix$|: --matrix unembedding(?=;)", ""),
    ("--matrix", r"; pick one with --matrix NAME$", "; repcap measure can measure those, with --matrix NAME"),
    ("--block-rows", r"; try a smaller --block-rows$", ""),
)
"""(option, advice that names it, what stands for the advice where the verb has no such option)."""


def helpful(message: str, flags: Flags) -> str:
    """`message` without advice to use options that this verb does not have."""
    for option, advice, instead in NO_HELP:
        if option not in flags.values():
            message = re.sub(advice, instead, message)
    return message


def in_words(message: str, flags: Flags) -> str:
    """`message` with options of the command line in place of parameters in backticks."""
    return re.sub(r"`(\w+)`", lambda found: flags.get(found[1], found[1]), message)


def explain(error: BaseException, verb: str | None, flags: Flags) -> int:
    """Print one line for `error` and return the exit code."""
    if isinstance(error, RepcapError):
        return fail(in_flags(error, flags), error.exit_code)
    if hasattr(error, "format_message") and hasattr(error, "exit_code"):  # click's own, from whichever click typer uses
        hint = f"repcap {verb} --help" if verb else "repcap --help"
        message: str = error.format_message()
        return fail(f"{message.rstrip('.')}; see {hint}", 2) if message else 2
    if isinstance(error, KeyboardInterrupt) or type(error).__name__ == "Abort":
        return fail(*interrupt.ending())
    if isinstance(error, OSError):
        where = f"{error.filename}: " if error.filename else ""
        return fail(f"{where}{error.strerror or error}", 2)
    if isinstance(error, MemoryError):
        return fail(helpful("out of memory; try a smaller --block-rows", flags), 2)
    return fail(f"internal error: {type(error).__name__}: {error}; run again with --debug and report it", 1)
