"""What the terminal shows of a page that was written."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from repcap.page.site import Site
from repcap.text import printable


def parts(result: Site) -> Iterator[RenderableType]:
    yield Text(printable(result.reading))
    for path in result.figures:
        yield Text(printable(str(path)))
