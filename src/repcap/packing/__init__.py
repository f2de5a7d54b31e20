"""Packing lines: search, explicit constructions, files of vectors. Names are imported when first used."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from repcap.packing.entry import pack
    from repcap.packing.largest import PackMax, pack_max
    from repcap.packing.packed import Packing, PackProgress
    from repcap.packing.solve import best_packing
    from repcap.packing.vector_files import save
    from repcap.packing.verification import Verification, verify
    from repcap.packing.written import Written, write_set

_WHERE = {
    "PackMax": "repcap.packing.largest",
    "PackProgress": "repcap.packing.packed",
    "Packing": "repcap.packing.packed",
    "Verification": "repcap.packing.verification",
    "Written": "repcap.packing.written",
    "pack": "repcap.packing.entry",
    "pack_max": "repcap.packing.largest",
    "save": "repcap.packing.vector_files",
    "best_packing": "repcap.packing.solve",
    "verify": "repcap.packing.verification",
    "write_set": "repcap.packing.written",
}

__all__ = [
    "PackMax",
    "PackProgress",
    "Packing",
    "Verification",
    "Written",
    "best_packing",
    "pack",
    "pack_max",
    "save",
    "verify",
    "write_set",
]


def __getattr__(name: str) -> Any:
    if name in _WHERE:
        return getattr(import_module(_WHERE[name]), name)
    raise AttributeError(f"module 'repcap.packing' has no attribute {name!r}")
