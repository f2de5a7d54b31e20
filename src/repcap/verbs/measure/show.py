"""What the terminal shows of a measurement."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType

from repcap.console.measured_view import detail, overview
from repcap.studies.measured import Measured

__all__ = ["overview", "parts"]


def parts(result: Measured) -> Iterator[RenderableType]:
    return detail(result)
