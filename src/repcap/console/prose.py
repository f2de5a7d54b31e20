"""Sentences in lines of 80 characters, also where the output is no terminal."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from repcap.text import printable

if TYPE_CHECKING:
    from rich.console import RenderableType

WIDTH = 80


def prose(text: str) -> RenderableType:
    """`text` after an empty line, wrapped at 80 columns, nothing in it taken for markup or terminal codes."""
    from rich.text import Text

    return Text("\n" + "\n".join(printable(line) for line in textwrap.wrap(text, WIDTH)))
