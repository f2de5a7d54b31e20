"""The data that `ratio` and `full` were fitted to: which (k, d) they cover, and words for a point outside."""

from __future__ import annotations

import math
from functools import lru_cache

from repcap.laws.fitting.data import optimized_packing
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

    Between two fitted dimensions the range of k/d is what both of them cover.
    """
    data = fitted()
    least, greatest = min(data), max(data)
    if not least <= d <= greatest:
        return f"d = {d:.6g} is not within {least} to {greatest}"
    near = {max(x for x in data if x <= d), min(x for x in data if x >= d)}
    low, high = max(data[x][0] / x for x in near), min(data[x][1] / x for x in near)
    share = log_k - math.log(d)
    if math.log(low) - 1e-9 <= share <= math.log(high) + 1e-9:
        return None
    return (
        f"k = {format_power(log_k / LN10)} (k/d = {format_power(share / LN10)}) is not within "
        f"k/d = {low:.3g} to {high:.3g} at d = {d:.6g}"
    )
