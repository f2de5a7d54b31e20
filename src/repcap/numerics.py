"""What every part needs to agree on: z, classes, seeds, and how to print a power of ten.

Nothing here imports torch: the laws and the command line start without it. Devices are in `repcap.devices`.
"""

from __future__ import annotations

import math
import os
from typing import Any

from repcap.errors import InputError

Z_DEFAULT = 2.0
"""epsilon = mean + z std; the published convention is z = 2."""

THETA, DELTA = 0.5, 1e-3
"""An idle row alarms where it reads more than theta of an active one; at most the share delta of them may."""

CLASS_HIGH = 0.2
CLASS_LOW = 0.1
"""Published class borders on epsilon. They do not depend on d: see docs/footguns.md."""

LN10 = math.log(10.0)


def epsilon_class(epsilon: float) -> str:
    """Class of a matrix: `high` (epsilon > 0.2, the paper's Class 1), `low` (< 0.1, Class 2), else `between`."""
    if epsilon > CLASS_HIGH:
        return "high"
    return "low" if epsilon < CLASS_LOW else "between"


def format_power(log10: float | None, digits: int = 3) -> str:
    """A number given by its log10, for people: `3.99e7`, `139`, `10^23.3`; `none` for None, `unbounded` for inf.

    >>> format_power(7.6010), format_power(2.1430), format_power(23.317), format_power(float("inf"))
    ('3.99e7', '139', '10^23.32', 'unbounded')
    """
    if log10 is None:
        return "none"
    if math.isnan(log10):
        return "undefined"
    if math.isinf(log10):
        return "unbounded" if log10 > 0 else "0"
    if log10 < 5:
        return f"{10.0**log10:.{digits}g}" if log10 < digits else f"{10.0**log10:.0f}"
    if log10 >= 16:
        return f"10^{log10:.2f}"
    exponent = math.floor(log10)
    mantissa = f"{10.0 ** (log10 - exponent):.{digits - 1}f}"
    if float(mantissa) >= 10.0:  # 9.996 rounds up into the next power
        exponent, mantissa = exponent + 1, f"{1.0:.{digits - 1}f}"
    return f"{mantissa}e{exponent}"


def finite(value: float | None) -> float | None:
    """`value`, or None where it is NaN or infinite: what strict JSON can hold."""
    return value if value is not None and math.isfinite(value) else None


def power(log10: float | None) -> float | None:
    """10 ** log10, or None where that is no finite float64 (so that it survives JSON)."""
    if log10 is None or math.isnan(log10) or log10 > 308.0:
        return None
    return float(10.0**log10)


def whole(what: str, value: Any) -> int:
    """`value` as a plain int, if it is a whole number of Python's, numpy's or torch's; `what` names it in the message.

    Raises
    ------
    InputError
        for anything else, True and 3.0 among them.
    """
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise InputError(f"{what} {str(value)[:40]}: give a whole number")
    return int(value)


SEED_MOST = 2**63 - 1
"""Largest seed that torch and numpy both take."""


def cpu_count() -> int:
    """Processors that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # macOS, Windows
        return os.cpu_count() or 1
