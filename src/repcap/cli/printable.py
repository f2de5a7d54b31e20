"""Text from strangers' files (tensor names, tokens, messages that quote them) made safe for a terminal."""

from __future__ import annotations

import sys
from contextlib import suppress


def printable(text: str) -> str:
    r"""`text` with line breaks, terminal codes and other invisible characters written as escapes.

    >>> printable("a\x1b[2Jb")
    'a\\x1b[2Jb'
    """
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode("ascii") for char in text)


def print_error(message: str) -> None:
    """`repcap: error: ...` on stderr: one line, whatever a library or a name in a file put into the message."""
    with suppress(OSError):  # nobody may be listening
        sys.stderr.write(f"repcap: error: {printable(' '.join(message.split()))}\n")
        sys.stderr.flush()
