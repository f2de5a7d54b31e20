"""Text from strangers' files (names, tokens, messages that quote them) made safe for where it goes. The one place."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

_SURROGATE = re.compile("[\ud800-\udfff]")
_FORMULA = tuple("=+-@\t\r")


def printable(text: str) -> str:
    r"""`text` for a terminal: line breaks, terminal codes and other invisible characters are written as escapes.

    >>> printable("a\x1b[2Jb")
    'a\\x1b[2Jb'
    """
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode("ascii") for char in text)


def markdown(text: str) -> str:
    r"""`text` in a line or a cell of Markdown: no tag, no end of a cell, no control characters.

    >>> markdown("a|b <b>")
    'a\\|b &lt;b>'
    """
    return printable(text).replace("&", "&amp;").replace("<", "&lt;").replace("|", "\\|")


def legible(value: Any) -> str:
    r"""`value` as text that UTF-8 can hold: the name of a file need not be, and comes to Python with lone surrogates.

    >>> legible("caf\udce9")
    'caf\\udce9'
    """
    return str(value).encode("utf-8", "backslashreplace").decode("utf-8")


def json_text(text: str) -> str:
    """JSON `text` in which lone surrogates are escapes: readers of JSON get them back."""
    return _SURROGATE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def jsonable(value: Any) -> Any:
    """`value` as strict JSON holds it: NaN and infinities are null, tuples lists, numpy numbers plain ones.

    >>> jsonable({"a": (1, float("nan"))})
    {'a': [1, None]}
    """
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): jsonable(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [jsonable(item) for item in value]
    if hasattr(value, "to_dict"):
        return jsonable(value.to_dict())
    if hasattr(value, "tolist"):
        return jsonable(value.tolist())
    return value


def flattened(record: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    """`record` as one row of a table: nested values become dotted columns, lists stay lists.

    >>> flattened({"a": {"b": 1, "c": {"d": 2}}, "e": [3]})
    {'a.b': 1, 'a.c.d': 2, 'e': [3]}
    """
    flat: dict[str, Any] = {}
    for key, value in record.items():
        flat |= flattened(value, f"{before}{key}.") if isinstance(value, Mapping) else {f"{before}{key}": value}
    return flat


def storable(value: Any) -> Any:
    """`jsonable(value)` whose texts are legible: what a store holds."""
    if isinstance(value, str):
        return legible(value)
    if isinstance(value, Mapping):
        return {legible(key): storable(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [storable(item) for item in value]
    return storable(value.tolist()) if hasattr(value, "tolist") else jsonable(value)


def spreadsheet(value: Any) -> Any:
    """`value` for a cell of a table: text that a spreadsheet would take for a formula gets an apostrophe.

    >>> spreadsheet("=1+1"), spreadsheet(2)
    ("'=1+1", 2)
    """
    return f"'{value}" if isinstance(value, str) and value[:1] in _FORMULA else value


def shorten(text: str, width: int) -> str:
    """The end of `text`, which tells sources apart, in at most `width` characters that a terminal can show."""
    shown = printable(text)
    return shown if len(shown) <= width else "…" + shown[len(shown) - width + 1 :]


PLAIN_FILES = frozenset({"model", "pytorch_model", "consolidated", "diffusion_pytorch_model", "adapter_model"})
"""Names of files that say nothing of the model: its directory does."""
_WEIGHTS = (".safetensors", ".gguf", ".bin", ".pt", ".pth", ".npy", ".npz")


def short_name(source: str, suffix: bool = True) -> str:
    """The telling part of a source, for people. suffix: with that of a file of weights.

    >>> short_name("hf://Qwen/Qwen3-8B@main"), short_name("dir/name/model.safetensors"), short_name("a/b.gguf", False)
    ('Qwen3-8B', 'name', 'b')
    """
    base, _, tensor = source.partition("::")
    parts = [part for part in base.rpartition("://")[2].replace("\\", "/").split("/") if part not in ("", ".", "..")]
    last = parts[-1].partition("@")[0] if parts else source
    stem = next((last[: -len(end)] for end in _WEIGHTS if last.lower().endswith(end)), last)
    if len(parts) > 1 and stem.partition(".")[0].partition("-00")[0] in PLAIN_FILES:
        name = parts[-2]
    else:
        name = (last if suffix else stem) or source
    return f"{name}::{tensor}" if tensor else name


def visible(text: str, width: int = 22) -> str:
    r"""Token text as a reader can see it: in quotes, so that leading spaces show, control characters escaped, cut.

    >>> visible(" cat"), visible("a\tb")
    ('" cat"', '"a\\tb"')
    """
    shown = printable(text)
    return f'"{shown if len(shown) <= width else shown[: width - 1] + "…"}"'


def abridged(text: str, width: int = 36) -> str:
    """The beginning of `text`, which tells names of sets apart, in at most `width` characters.

    >>> abridged("Delsarte-Goethals", 10)
    'Delsart...'
    """
    return text if len(text) <= width else text[: width - 3] + "..."
