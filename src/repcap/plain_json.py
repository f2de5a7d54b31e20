"""JSON from strangers' files: parsed only where what it makes fits into the memory."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

MOST_MARKS = 1 << 22
"""Of `,`, `[` and `{`: each begins an object of up to 100 bytes. A header of half a million tensors has as many."""


def parse_json(
    body: bytes, object_pairs_hook: Callable[[list[tuple[str, Any]]], Any] | None = None, finite: bool = False
) -> Any:
    """The value of a JSON text in UTF-8. Memory: at most about 100 bytes a mark, and the text's own.

    finite: numbers that no float holds, and those that JSON does not know (NaN, Infinity), are None.

    Raises
    ------
    ValueError
        if it is none, has more marks, or is nested too deeply.
    """
    if sum(map(body.count, (b",", b"[", b"{"))) > MOST_MARKS:
        raise ValueError("too many parts")
    hooks: dict[str, Any] = {}
    if finite:
        hooks = {"parse_float": _finite, "parse_int": _whole, "parse_constant": lambda _: None}
    try:
        return json.loads(body.decode("utf-8"), object_pairs_hook=object_pairs_hook, **hooks)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def _finite(text: str) -> float | None:
    number = float(text)
    return number if math.isfinite(number) else None


def _whole(text: str) -> int | None:
    return int(text) if len(text) < 300 else None  # which a float still holds
