"""`pack_max`: see `repcap.packing.largest`. Torch comes with the names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from repcap import packing

if TYPE_CHECKING:
    from repcap.packing.largest import PackMax as PackMax
    from repcap.packing.largest import pack_max as pack_max


def __getattr__(name: str) -> Any:
    return getattr(packing, name)
