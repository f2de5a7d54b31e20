"""The kinds of file that hold weights: one row each. To add one, write its file and put its row into FORMATS.

The module of a row is imported when a file of that kind is opened. Its `open_files(files)` gives a Checkpoint; `files`
are the `stored_files.Files` that `choose_files` has chosen, or an index alone.
"""

from __future__ import annotations

import dataclasses
import re
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from repcap.sources.formats.memory import from_bytes as from_bytes
    from repcap.sources.formats.module import open_object as open_object
    from repcap.sources.stored_files import Files

INDEX = ".index.json"
PART = r"(?P<stem>.*)-\d{5}-of-(?P<total>\d{5})"


@dataclasses.dataclass(frozen=True)
class Format:
    """One kind of file."""

    name: str
    """As `Checkpoint.format` and `repcap inspect` say it."""
    suffixes: tuple[str, ...]
    """Endings of its files, in lower case."""
    module: str
    """Opens files."""
    ranged: bool = False
    """Whether it reads far files by ranges, through `StoredFile` alone; else they are downloaded whole."""
    sure: str = "(?!)"
    """Names (without the ending) that make a directory a checkpoint; others count only where they are alone."""
    main: tuple[str, ...] = ()
    """Names (without the ending) that go before others, the first before the second."""
    part: str = PART
    """Name (without the ending) of one part of several; parts that agree in the groups are one set."""
    indexed: bool = False
    """Whether parts have an index, `NAME.SUFFIX.index.json`."""

    def stem(self, name: str) -> str | None:
        """`name` without the ending; None where it is no file of this kind."""
        lower = name.lower()
        return next((name[: -len(end)] for end in self.suffixes if lower.endswith(end)), None)

    def is_sure(self, name: str) -> bool:
        stem = self.stem(name)
        return stem is not None and re.fullmatch(self.sure, stem, re.IGNORECASE) is not None

    def open_files(self, files: Files) -> Any:
        """`open_files` of its module."""
        return import_module(self.module).open_files(files)


_HERE = "repcap.sources.formats"
FORMATS: tuple[Format, ...] = (
    Format(
        "safetensors",
        (".safetensors",),
        f"{_HERE}.safetensors_file",
        ranged=True,
        sure=".*",
        main=("model", "consolidated"),
        indexed=True,
    ),
    Format(
        "pytorch",
        (".bin", ".pt", ".pth", ".ckpt"),
        f"{_HERE}.torch_file",
        ranged=True,
        sure="pytorch_model.*",
        main=("pytorch_model",),
        indexed=True,
    ),
    Format("gguf", (".gguf",), f"{_HERE}.gguf_file", ranged=True, sure=".*"),
    Format(
        "consolidated",
        (".pth",),
        f"{_HERE}.consolidated",
        sure=r"consolidated(\.\d{1,9})?",
        part=r"(?P<stem>consolidated)\.\d{1,9}",
    ),
    Format("onnx", (".onnx",), f"{_HERE}.onnx_file"),
    Format("npz", (".npz",), f"{_HERE}.arrays"),
    Format("npy", (".npy",), f"{_HERE}.arrays"),
)
"""In the order in which a directory is searched for them."""


_WHERE = {"from_bytes": f"{_HERE}.memory", "open_object": f"{_HERE}.module"}


def __getattr__(name: str) -> Any:
    """What needs torch, which a look at headers does not load."""
    if name in _WHERE:
        return getattr(import_module(_WHERE[name]), name)
    raise AttributeError(f"module {_HERE!r} has no attribute {name!r}")


def suffixes() -> tuple[str, ...]:
    """Endings of all files that hold weights."""
    return tuple(dict.fromkeys(end for row in FORMATS for end in row.suffixes))


def ranged_suffixes() -> tuple[str, ...]:
    """Endings of those that are read by ranges."""
    return tuple(end for row in FORMATS if row.ranged for end in row.suffixes)


def kinds() -> str:
    """What is read, for messages."""
    return f"{', '.join(suffixes())}, a *{INDEX}, or a directory of such"


def format_of(name: str) -> Format | None:
    """The kind of a file, or of an index, by its name; None where it is none."""
    plain = name[: -len(INDEX)] if name.lower().endswith(INDEX) else name
    rows = [row for row in FORMATS if row.stem(plain) is not None and (plain == name or row.indexed)]
    return next((row for row in rows if row.is_sure(plain)), rows[0] if rows else None)
