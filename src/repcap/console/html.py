"""The terminal's tables as HTML, for notebooks: text in the notebook's own colours, light and dark."""

from __future__ import annotations

import io
from collections.abc import Iterable

from rich.console import Console, RenderableType
from rich.terminal_theme import TerminalTheme

WIDTH = 100
_THEME = TerminalTheme((255, 255, 255), (0, 0, 0), [(0, 0, 0)] * 8)
_FORMAT = (
    '<pre style="background:none;color:inherit;line-height:1.35;overflow-x:auto;'
    "font-family:ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace;margin:0\">{code}</pre>"
)
"""No colour of its own: the text takes the page's, whatever its theme."""


def to_html(parts: Iterable[RenderableType]) -> str:
    """`parts` as one `<pre>`; what stands in them is escaped. Memory: the text."""
    console = Console(
        file=io.StringIO(),
        record=True,
        width=WIDTH,
        highlight=False,
        markup=False,
        no_color=True,
        legacy_windows=False,
        force_jupyter=False,
    )
    for part in parts:
        console.print(part)
    return console.export_html(theme=_THEME, code_format=_FORMAT, inline_styles=True)
