"""YAML from strangers' files: text, numbers, true, false, null, lists and mappings of text, and nothing else.

PyYAML composes the nodes; what they mean is decided here, so that no constructor of its own is run.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import yaml

from repcap.errors import InputError
from repcap.text import legible

Plain = str | int | float | bool | None | list[Any] | dict[str, Any]

MOST_BYTES = 1 << 22
MOST_PARTS = 1 << 18
"""Values, each use of an alias counted anew: nine lines of nine aliases each are 400 million."""
DEEPEST = 50
LONGEST_NUMBER = 100
"""Characters: more digits than any number has here."""
TAG = "tag:yaml.org,2002:"
TRUTH = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


def parse_yaml(text: str, where: str) -> Plain:
    """The value of a YAML text. where: the file, for messages.

    Dates and numbers to the base 60 stay text. A key may not be given twice.

    Raises
    ------
    InputError
        if it is no YAML, or holds more or other things than that; the message names the line.
    """
    if len(text) > MOST_BYTES:
        raise InputError(f"{where} is no valid YAML: {len(text)} characters, {MOST_BYTES} are allowed")
    try:
        _check_depth(text)
        node = yaml.compose(text, yaml.SafeLoader)
        return _Builder().value(node) if node is not None else None
    except yaml.YAMLError as error:
        raise InputError(f"{where} is no valid YAML: {_first(error)}") from error
    except _Refused as refusal:
        raise InputError(f"{where} is no valid YAML: {refusal}") from None
    except (RecursionError, ValueError, OverflowError) as error:  # of PyYAML: chr() of a large escape, say
        raise InputError(f"{where} is no valid YAML: {_first(error)}") from error


class _Refused(Exception):
    """What is wrong, and where."""

    def __init__(self, what: str, mark: Any) -> None:
        super().__init__(f"line {mark.line + 1}: {what}")


def _first(error: BaseException) -> str:
    return " ".join(legible(error).split())[:200]


def _check_depth(text: str) -> None:
    """PyYAML composes by recursion: a text of 50 000 brackets would end in the interpreter's stack."""
    depth = 0
    for event in yaml.parse(text, yaml.SafeLoader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > DEEPEST:
            raise _Refused("nested too deeply", event.start_mark)


class _Builder:
    """Nodes to plain values."""

    def __init__(self) -> None:
        self._left = MOST_PARTS
        self._open: set[int] = set()

    def value(self, node: yaml.Node) -> Plain:
        self._left -= 1
        if self._left < 0:
            raise _Refused(f"more than {MOST_PARTS} values", node.start_mark)
        if isinstance(node, yaml.ScalarNode):
            return _scalar(node)
        if id(node) in self._open:
            raise _Refused("an alias stands inside what it names", node.start_mark)
        self._open.add(id(node))
        try:
            if isinstance(node, yaml.SequenceNode) and node.tag == f"{TAG}seq":
                return [self.value(item) for item in node.value]
            if isinstance(node, yaml.MappingNode) and node.tag == f"{TAG}map":
                return self._mapping(node)
        finally:
            self._open.remove(id(node))
        raise _Refused(f"the tag {_tag(node)} is not read", node.start_mark)

    def _mapping(self, node: yaml.MappingNode) -> dict[str, Any]:
        found: dict[str, Any] = {}
        merged: dict[str, Any] = {}
        for key, item in node.value:
            if key.tag == f"{TAG}merge":
                for other in self._merged(item):
                    merged = {**other, **merged}
                continue
            if not isinstance(key, yaml.ScalarNode):
                raise _Refused("a key must be text", key.start_mark)
            name = _key(key)
            if name in found:
                raise _Refused(f"the key {name} is given twice", key.start_mark)
            found[name] = self.value(item)
        return {**merged, **found}

    def _merged(self, node: yaml.Node) -> Iterator[dict[str, Any]]:
        """The mappings that `<<` takes over."""
        held = self.value(node)
        for item in held if isinstance(held, list) else [held]:
            if not isinstance(item, dict):
                raise _Refused("<< takes mappings", node.start_mark)
            yield item


def _tag(node: yaml.Node) -> str:
    return "!!" + node.tag.removeprefix(TAG) if node.tag.startswith(TAG) else str(node.tag)


def _key(node: yaml.ScalarNode) -> str:
    value = _scalar(node)
    return value if isinstance(value, str) else str(node.value)


def _scalar(node: yaml.ScalarNode) -> str | int | float | bool | None:
    text, kind = str(node.value), node.tag.removeprefix(TAG)
    if kind in ("str", "timestamp", "value"):
        return legible(text)
    if kind == "null":
        return None
    if kind == "bool" and text.lower() in TRUTH:
        return TRUTH[text.lower()]
    if kind in ("int", "float") and ":" in text:
        return text
    if kind in ("int", "float"):
        number = _number(text.replace("_", "").lower(), kind)
        if number is not None:
            return number
        raise _Refused(f"{text[:40]!r} is no number that is read", node.start_mark)
    raise _Refused(f"the tag {_tag(node)} is not read", node.start_mark)


def _number(text: str, kind: str) -> int | float | None:
    """The number that a scalar of YAML 1.1 writes, None where it writes none.

    >>> _number("0x1f", "int"), _number("-017", "int"), _number("1.5e3", "float"), _number("x", "float")
    (31, -15, 1500.0, None)
    """
    if len(text) > LONGEST_NUMBER:
        return None
    if kind == "float":
        words = {".inf": "inf", "+.inf": "inf", "-.inf": "-inf", ".nan": "nan"}
        plain = re.fullmatch(r"[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?", text)
        return float(words.get(text, text)) if plain or text in words else None
    match = re.fullmatch(r"([-+]?)(?:0b([01]+)|0x([0-9a-f]+)|0([0-7]+)|(\d+))", text)
    if not match:
        return None
    sign, *parts = match.groups()
    value = next(int(part, base) for part, base in zip(parts, (2, 16, 8, 10), strict=True) if part is not None)
    return -value if sign == "-" else value
