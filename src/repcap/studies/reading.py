"""What a measurement means, for a reader who meets epsilon for the first time. Only what its numbers prove."""

from __future__ import annotations

import dataclasses
import math

from repcap.geometry.epsilon.common_direction import LIKE_RANDOM
from repcap.geometry.measurement.measurement import Measurement
from repcap.laws.limits.existence import gilbert_varshamov_coherence
from repcap.numerics import Z_DEFAULT

NO_PRAISE = "a large k is no praise: k grows because more overlap is accepted"


def reading_of(found: Measurement, has_capacity: bool = True) -> str:
    """Two to four sentences; none for d = 1, where epsilon means nothing."""
    if found.dim == 1:
        return ""
    return " ".join(part for part in (_epsilon(found), _rows(found), _share(found), has_capacity and _k(found)) if part)


def free_below(count: int, dim: int) -> float:
    """What at least half of all random directions of R^dim keep below in |cosine| with every one of `count` rows.

    By the union bound, whatever the rows are; 0 where rows are so few that some directions are orthogonal to all.
    """
    return gilbert_varshamov_coherence(None, dim, log_k=math.log(2.0 * count)) if dim > 1 else 1.0


def _epsilon(found: Measurement) -> str:
    text = f"epsilon, {_shown(found.epsilon)}"
    if found.epsilon < 0:
        return f"The rows point away from each other: {text}, is below 0."
    if not found.spread.z:
        return f"{text[0].upper()}{text[1:]}, is the mean cosine of two rows."
    return f"{text[0].upper()}{text[1:]}, is {found.epsilon_ratio:.1f} times that of random directions."


def _rows(found: Measurement) -> str:
    if found.epsilon < 0:
        return ""
    if dataclasses.replace(found.spread, z=Z_DEFAULT).ratio < LIKE_RANDOM:
        if found.class_name != "high":
            return "The rows are as nearly orthogonal as random ones."
        return f"It is high because d is small: random directions in {found.dim} dimensions have {_null(found.dim)}."
    if found.class_name != "high":
        crowd = "close to orthogonal" if found.class_name == "low" else "less than orthogonal"
        return f"Two rows of this matrix are {crowd}."
    if found.mean > found.spread.std:
        what = f"The rows share a direction: two of them have a cosine of {found.mean:.2f} on average."
    else:
        wide = found.spread.std * math.sqrt(found.dim)
        what = f"The rows prefer some directions: their cosines spread {wide:.1f} times as widely as random ones."
    free = free_below(found.count, found.dim)
    if free < found.epsilon:
        what += f" Other directions are free: half of all random ones keep a |cosine| below {free:.2f} with every row."
    return what


def _share(found: Measurement) -> str:
    """The share of pairs beyond epsilon that a normal distribution has: a measurement does not count them."""
    share = 0.5 * math.erfc(found.spread.z / math.sqrt(2.0))
    return f"Of normally distributed cosines {100 * share:.3g} % exceed epsilon; `repcap pairs` counts those that do."


def _k(found: Measurement) -> str:
    if found.class_name == "high":
        return f"At so large an epsilon k no longer counts near-orthogonal directions, and {NO_PRAISE}."
    return f"k counts the directions that fit if every two may overlap as much; {NO_PRAISE}."


def _null(dim: int) -> str:
    return f"{Z_DEFAULT / math.sqrt(dim):.2f}"


def _shown(epsilon: float) -> str:
    return f"{epsilon:.2f}" if abs(epsilon) >= 0.2 else f"{epsilon:.3f}"
