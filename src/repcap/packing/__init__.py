"""Packing lines: search, explicit constructions, files of vectors. Names are imported when first used."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from repcap.packing.largest import PackMax, pack_max
    from repcap.packing.packed import Packing, PackProgress
    from repcap.packing.solve import pack
    from repcap.packing.verification import Verification, verify

_WHERE = {
    "PackMax": "repcap.packing.largest",
    "PackProgress": "repcap.packing.packed",
    "Packing": "repcap.packing.packed",
    "Verification": "repcap.packing.verification",
    "pack": "repcap.packing.solve",
    "pack_max": "repcap.packing.largest",
    "verify": "repcap.packing.verification",
}

__all__ = ["PackMax", "PackProgress", "Packing", "Verification", "pack", "pack_max", "verify"]


def __getattr__(name: str) -> Any:
    if name in _WHERE:
        return getattr(import_module(_WHERE[name]), name)
    raise AttributeError(f"module 'repcap.packing' has no attribute {name!r}")
