"""`pack_max`: see `repcap.packing.largest`."""

from __future__ import annotations

from repcap.packing.largest import PackMax, pack_max

__all__ = ["PackMax", "pack_max"]
