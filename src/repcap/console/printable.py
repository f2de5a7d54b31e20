"""Text from strangers' files (tensor names, tokens, messages that quote them) made safe for a terminal."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.text import Text


def printable(text: str) -> str:
    r"""`text` with line breaks, terminal codes and other invisible characters written as escapes.

    >>> printable("a\x1b[2Jb")
    'a\\x1b[2Jb'
    """
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode("ascii") for char in text)


def cell(text: str) -> Text:
    """`text` for a table, as it stands: brackets are no markup, terminal codes are escapes.

    >>> cell("m[/x]\x1b[2J").plain
    'm[/x]\\x1b[2J'
    """
    from rich.text import Text

    return Text(printable(text))


def print_error(message: str) -> None:
    """`repcap: error: ...` on stderr: one line, whatever a library or a name in a file put into the message."""
    with suppress(OSError):  # nobody may be listening
        sys.stderr.write(f"repcap: error: {printable(' '.join(message.split()))}\n")
        sys.stderr.flush()
