"""Packing lines: search, explicit constructions, files of vectors. Names are imported when first used."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from repcap.packing.result import Packing, PackProgress
    from repcap.packing.solve import pack

_WHERE = {
    "PackProgress": "repcap.packing.result",
    "Packing": "repcap.packing.result",
    "pack": "repcap.packing.solve",
}

__all__ = ["PackProgress", "Packing", "pack"]


def __getattr__(name: str) -> Any:
    if name in _WHERE:
        return getattr(import_module(_WHERE[name]), name)
    raise AttributeError(f"module 'repcap.packing' has no attribute {name!r}")
