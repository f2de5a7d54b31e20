"""Damage with a method: trees are changed at a node, texts at a token, bytes at a field."""

from __future__ import annotations

import copy
import json
import random
import re
from typing import Any

ODD: tuple[Any, ...] = (
    None, True, False, -1, 0, 1, 2, 1 << 31, 1 << 63, -(1 << 63), 10**400, 1e308, -0.0, 5e-324, float("nan"),
    float("inf"), "", "x", "\ud800", "\u2028", "a\x00b", "../../x", "/etc/passwd", "é" * 40, "9" * 5000, [], {}, [[]],
    [1, 2, 3], {"a": 1}, ["x"] * 50, "embedding", "NaN", "F4", "BF16",
)  # fmt: skip
TOKENS = (
    "!!int", "!!float x", "!!bool x", "!!timestamp x", "!!omap [a: 1]", "!!binary ////", "!!python/name:os",
    "&a", "*a",
    "<<: *a", "? [a]", "2001-99-99", "0b2", "0o8", "1:99", "9" * 5000, "[" * 60, "{", "}", "|", ">", "~",
    ".nan", ".inf", "\t", "\x00", "\ud800", "- ", ": ", "'", '"', "\\U99999999", "%YAML 9.9\n---\n", "\n...\n",
    ",", ";", "inf", "1e999",
)  # fmt: skip
INTS = (
    0,
    1,
    2,
    7,
    8,
    127,
    255,
    256,
    1 << 16,
    (1 << 31) - 1,
    1 << 31,
    (1 << 32) - 1,
    1 << 40,
    (1 << 63) - 1,
    (1 << 64) - 1,
)


def _places(value: Any, found: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """(container, key) of every node of a tree."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in list(pairs):
        found.append((value, key))
        _places(inner, found)
    return found


def tree(value: Any, rng: random.Random) -> Any:
    """A copy of a JSON value, changed at one to four nodes."""
    value = copy.deepcopy(value)
    for _ in range(rng.randint(1, 4)):
        places = _places(value, [])
        if not places:
            return rng.choice(ODD)
        holder, key = rng.choice(places)
        action = rng.randrange(6)
        if action <= 1:
            holder[key] = copy.deepcopy(rng.choice(ODD))
        elif action == 2:
            del holder[key]
        elif action == 3:  # a part of the tree somewhere else
            other, place = rng.choice(places)
            holder[key] = (
                copy.deepcopy(other[place]) if place in (other if isinstance(other, dict) else range(len(other))) else 0
            )
        elif action == 4 and isinstance(holder, dict):
            holder[str(rng.choice(ODD))[:200]] = holder.pop(key)
        else:
            number = holder[key]
            nested: Any = number
            for _ in range(rng.choice((1, 3, 900))):
                nested = [nested]
            holder[key] = number + rng.choice((-1, 1)) if type(number) is int else nested
    return value


def json_bytes(value: Any, rng: random.Random) -> bytes:
    """A changed tree as JSON; now and then its bytes are changed, too."""
    try:
        body = json.dumps(tree(value, rng)).encode()
    except (RecursionError, ValueError):  # too deep to write, or a whole number too long
        body = b"[" * rng.choice((10, 5000, 200_000))
    return raw(body, rng) if rng.random() < 0.15 else body


def text(value: str, rng: random.Random) -> bytes:
    """A text with tokens replaced, dropped, doubled or slipped in."""
    parts = re.findall(r"\w+|\s+|[^\w\s]", value)
    for _ in range(rng.randint(1, 5)):
        place, action = rng.randrange(len(parts) or 1), rng.randrange(4)
        if action == 0 and parts:
            parts[place] = rng.choice(TOKENS)
        elif action == 1 and parts:
            del parts[place]
        elif action == 2 and parts:
            parts[place:place] = parts[rng.randrange(len(parts)) :][: rng.randint(1, 6)]
        else:
            parts.insert(place, rng.choice(TOKENS))
    body = "".join(parts).encode("utf-8", "surrogatepass")
    return raw(body, rng) if rng.random() < 0.15 else body


def raw(body: bytes, rng: random.Random) -> bytes:
    """Bytes with bits turned, fields of 1 to 8 bytes overwritten, parts cut out, doubled or moved."""
    out = bytearray(body)
    for _ in range(rng.choice((1, 1, 2, 4, 8))):
        if not out:
            return bytes(out)
        at = rng.randrange(len(out)) if rng.random() < 0.5 else rng.randrange(min(len(out), 256))
        action = rng.randrange(6)
        if action == 0:
            out[at] ^= 1 << rng.randrange(8)
        elif action == 1:
            width = rng.choice((1, 2, 4, 8))
            out[at : at + width] = (rng.choice(INTS) % (1 << (8 * width))).to_bytes(
                width, rng.choice(("little", "big"))
            )
        elif action == 2:
            del out[at : at + rng.choice((1, 4, 64, len(out)))]
        elif action == 3:
            out[at:at] = out[at : at + rng.randint(1, 64)]
        elif action == 4:
            out[at] = rng.randrange(256)
        else:
            other = rng.randrange(len(out))
            out[at : at + 8] = out[other : other + 8]
    return bytes(out)
