"""`pack` is what sweep and pack share, so it lies below the verbs: `repcap.packing`."""

from __future__ import annotations

from repcap.packing.packed import Packing
from repcap.packing.solve import pack
from repcap.packing.verification import verify

__all__ = ["Packing", "pack", "verify"]
