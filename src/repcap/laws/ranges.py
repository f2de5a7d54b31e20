"""The data that `ratio` and `full` were fitted to: which (k, d) they cover, and words for a point outside."""

from __future__ import annotations

import math
from functools import lru_cache

from repcap.laws.data import optimized_packing
from repcap.numerics import LN10, format_power


@lru_cache(maxsize=1)
def fitted() -> dict[int, tuple[float, float]]:
    """d -> (least k, greatest k) of the published optimised packings, from the shipped file."""
    table = optimized_packing()
    found: dict[int, tuple[float, float]] = {}
    for d, k in zip(table.d.tolist(), table.k.tolist(), strict=True):
        low, high = found.get(int(d), (k, k))
        found[int(d)] = min(low, k), max(high, k)
    return found


def outside(d: float, log_k: float) -> str | None:
    """Why (k, d) lies outside the data that `ratio` and `full` were fitted to, in words; None inside.

    Between two fitted dimensions the range of k is what both of them cover.
    """
    data = fitted()
    least, greatest = min(data), max(data)
    if not least <= d <= greatest:
        return f"d = {d:g} is outside {least} to {greatest}"
    below, above = max(x for x in data if x <= d), min(x for x in data if x >= d)
    low, high = max(data[below][0], data[above][0]), min(data[below][1], data[above][1])
    slack = 1e-9
    if math.log(low) - slack <= log_k <= math.log(high) + slack:
        return None
    return (
        f"k = {format_power(log_k / LN10)} is outside {low:g} to {high:g} "
        f"(k/d from {low / d:.3g} to {high / d:.3g} at d = {d:g})"
    )
