"""`capacity` is what design and measure share, so it lies below the verbs: `repcap.bracket.capacity`."""

from __future__ import annotations

from repcap.bracket.capacity import Capacity, capacity

__all__ = ["Capacity", "capacity"]
