"""Numbers, lists and ranges on the command line: `512,4096`, `2^45`, `0.05..0.1:0.01`, `0.05..0.1/6`, `512..8192x2`."""

from __future__ import annotations

import math
import re

from repcap.errors import InputError

SYNTAX = "A,B,...; A..B (11 values), A..B/N (N values), A..B:STEP, A..BxFACTOR"
MOST = 10_000
"""Values in one list."""

_RANGE = re.compile(r"^(?P<low>.+?)\.\.(?P<high>[^/:x]+)(?:(?P<kind>[/:x])(?P<by>.+))?$")


def number(text: str, option: str) -> float | int:
    """One number: `4096`, `1e6`, `2^45`. Whole numbers come as int, exact however large.

    Raises
    ------
    InputError
        if `text` is no number.
    """
    word = text.strip().replace("_", "")
    try:
        if "^" in word:
            base, exponent = (int(part) for part in word.split("^"))
            if not (0 <= exponent <= 100_000 and abs(base) <= 10**6):
                raise ValueError
            power: int = base**exponent
            return power
        return int(word) if re.fullmatch(r"[+-]?\d{1,4000}", word) else float(word)
    except ValueError as error:
        raise InputError(f"{option}: {text!r} is no number; give numbers, lists or ranges ({SYNTAX})") from error


def real(text: str, option: str) -> float:
    """One number as a float.

    Raises
    ------
    InputError
        if `text` is no number, or beyond float64.
    """
    try:
        return float(number(text, option))
    except OverflowError:
        raise InputError(f"{option}: {text.strip()[:40]} is too large: numbers go up to 1e308") from None


def numbers(
    text: str | None, option: str, whole: bool = False, *, every: bool = False, most: int = MOST
) -> list[float | int]:
    """The numbers of a comma list whose items are numbers or ranges, in order, each once; `most` at most.

    `whole` rounds the inner values of a range to whole numbers, and wants every number given to be one. `every`: A..B
    has every whole number, not 11 values.

    Raises
    ------
    InputError
        if an item is neither, a range is empty or has too many values, or a whole number is not.
    """
    if text is None:
        return []
    found: list[float | int] = []
    for item in text.split(","):
        match = _RANGE.match(item.strip())
        values = _range(match, item, option, every, most) if match else [number(item, option)]
        if whole:
            values = [round(value) if match else _as_int(value, item, option) for value in values]
        found = list(dict.fromkeys([*found, *values]))
        if len(found) > most:
            raise InputError(f"{option}: more than {most} values; take a larger step")
    return found


def _range(match: re.Match[str], item: str, option: str, every: bool, most: int) -> list[float | int]:
    low, high = real(match["low"], option), real(match["high"], option)
    kind = match["kind"] or (":" if every else "/")
    by = real(match["by"], option) if match["by"] else 1.0 if every else 11.0
    if not (math.isfinite(low) and math.isfinite(high) and low < high and math.isfinite(by)):
        raise InputError(f"{option}: the range {item.strip()!r} must rise between two finite numbers")
    if kind == "x":
        if by <= 1 or low <= 0:
            raise InputError(f"{option}: in {item.strip()!r} the factor must be above 1 and the start above 0")
        count = math.floor(math.log(high / low) / math.log(by) + 1e-9) + 1
    elif kind == ":":
        if by <= 0:
            raise InputError(f"{option}: in {item.strip()!r} the step must be above 0")
        count = math.floor((high - low) / by + 1e-9) + 1
    else:
        count = int(by)
        if by != count or count < 2:
            raise InputError(f"{option}: in {item.strip()!r} the number of values must be a whole number >= 2")
    if count > most:
        raise InputError(f"{option}: {item.strip()!r} has {count} values, {most} at most; take a larger step")
    if kind == "x":
        return [low * by**i for i in range(count)]
    if kind == ":":
        return [float(f"{low + i * by:.12g}") for i in range(count)]
    return [float(f"{low + (high - low) * i / (count - 1):.12g}") for i in range(count)]


def _as_int(value: float, item: str, option: str) -> int:
    if isinstance(value, float) and not value.is_integer():
        raise InputError(f"{option}: {item.strip()!r} is not a whole number")
    return int(value)
