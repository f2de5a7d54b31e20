"""`pack` is what sweep and pack share, so it lies below the verbs: `repcap.packing`. Torch comes with the names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from repcap import packing

if TYPE_CHECKING:
    from repcap.packing.entry import pack as pack
    from repcap.packing.packed import Packing as Packing
    from repcap.packing.verification import verify as verify


def __getattr__(name: str) -> Any:
    return getattr(packing, name)
