"""Lists of row numbers as people write them: `0,5,100-199`, or `@FILE`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from repcap.errors import InputError

MOST_IDS = 50_000_000
"""Rows that one list may name: more is a slip of the keyboard, and would fill memory."""


def as_ids(ids: Sequence[int]) -> str:
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
