"""Where matrices come from: `open_source` gives a Matrix, `inspect_source` says what a source offers.

Names are imported when first used: torch comes with them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from repcap.sources.opening import inspect_source, open_checkpoint, open_source, pin_source
    from repcap.sources.roles.inspection import Inspection
    from repcap.sources.roles.select import choose

_WHERE = {
    "Inspection": "repcap.sources.roles.inspection",
    "choose": "repcap.sources.roles.select",
    "inspect_source": "repcap.sources.opening",
    "open_checkpoint": "repcap.sources.opening",
    "open_source": "repcap.sources.opening",
    "pin_source": "repcap.sources.opening",
}

__all__ = ["Inspection", "choose", "inspect_source", "open_checkpoint", "open_source", "pin_source"]


def __getattr__(name: str) -> Any:
    if name in _WHERE:
        return getattr(import_module(_WHERE[name]), name)
    raise AttributeError(f"module 'repcap.sources' has no attribute {name!r}")
