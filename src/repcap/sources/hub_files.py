"""Which files of a repository, or of a folder in it, make up the checkpoint: by their names alone."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from typing import Literal

from repcap.errors import SourceError
from repcap.sources.directory import KINDS, NOT_WEIGHTS, NUMBERED
from repcap.sources.directory import PICKLES as PICKLE_SUFFIXES
from repcap.sources.formats.gguf_file import SPLIT

INDEXES = ("model.safetensors.index.json", "consolidated.safetensors.index.json")
SHARD = re.compile(r"^(.*)-\d{5}-of-\d{5}\.safetensors$")
WHOLE_SUFFIXES = (*PICKLE_SUFFIXES, ".npz", ".npy")
"""Files of which no part can be read alone."""


@dataclasses.dataclass(frozen=True)
class Choice:
    """What to open.

    kind: `index` (of safetensors shards), `safetensors` (one file, or shards without an index), `whole index` (of
    pickled shards), `whole` (files that are read whole), `gguf` (one file, or the first part of a split one).
    """

    kind: Literal["index", "safetensors", "whole index", "whole", "gguf"]
    names: tuple[str, ...]


def choose_files(names: Sequence[str], where: str, folders: Sequence[str] = ()) -> Choice:
    """The first kind that is there: safetensors, pickles, GGUF, consolidated, others, as in a local directory.

    names: files of one folder. where: the repository, folders: those in the folder; both for messages.

    Raises
    ------
    SourceError
        if there are none, or several of which one has to be named.
    """
    for find in (_safetensors, _pickles, _gguf, _consolidated, _rest):
        found = find(list(names), where)
        if found is not None:
            return found
    listed = ", ".join(sorted(names)[:8]) + (" ..." if len(names) > 8 else "")
    hint = (
        f"; its folders, one of which could be named as hf://{where}/FOLDER: {', '.join(folders[:8])}"
        if folders
        else ""
    )
    raise SourceError(f"{where} holds no weights that repcap reads ({KINDS}); its files: {listed or 'none'}{hint}")


def kind_of(name: str) -> Choice | None:
    """What one file that the user has named is; None where it is no file of weights."""
    lower = name.lower()
    if lower.endswith(".index.json"):
        return Choice("index" if ".safetensors" in lower else "whole index", (name,))
    if lower.endswith(".safetensors"):
        return Choice("safetensors", (name,))
    if lower.endswith(".gguf"):
        return Choice("gguf", (name,))
    return Choice("whole", (name,)) if lower.endswith(WHOLE_SUFFIXES) else None


def _one(names: list[str], where: str, what: str) -> str:
    if len(names) > 1:
        listed = ", ".join(names[:6]) + (" ..." if len(names) > 6 else "")
        raise SourceError(f"{where} has {len(names)} {what} files ({listed}): name one, hf://{where}/{names[0]}")
    return names[0]


def _safetensors(names: list[str], where: str) -> Choice | None:
    indexes = [name for name in names if name.endswith(".safetensors.index.json")]
    for index, single in zip(INDEXES, ("model.safetensors", "consolidated.safetensors"), strict=True):
        if index in indexes:
            return Choice("index", (index,))
        if single in names:
            return Choice("safetensors", (single,))
    if indexes:
        return Choice("index", (_one(indexes, where, "index"),))
    kept = [name for name in names if name.endswith(".safetensors") and not NOT_WEIGHTS.match(name)]
    stems = {match.group(1) for name in kept if (match := SHARD.match(name))}
    if len(stems) == 1:
        return Choice("safetensors", tuple(name for name in kept if SHARD.match(name)))
    return Choice("safetensors", (_one(kept, where, ".safetensors"),)) if kept else None


def _pickles(names: list[str], where: str) -> Choice | None:
    if "pytorch_model.bin.index.json" in names:
        return Choice("whole index", ("pytorch_model.bin.index.json",))
    kept = ["pytorch_model.bin"] if "pytorch_model.bin" in names else []
    kept = kept or [name for name in names if re.match(r"^pytorch_model.*\.bin$", name)]
    return Choice("whole", tuple(kept)) if kept else None


def _gguf(names: list[str], where: str) -> Choice | None:
    kept = [name for name in names if name.lower().endswith(".gguf") and not name.startswith("mmproj")]
    starts = [name for name in kept if not (match := SPLIT.match(name)) or match.group(2) == "00001"]
    return Choice("gguf", (_one(starts or kept, where, "GGUF"),)) if kept else None


def _consolidated(names: list[str], where: str) -> Choice | None:
    kept = [name for name in names if NUMBERED.match(name)] or [name for name in names if name == "consolidated.pth"]
    return Choice("whole", tuple(kept)) if kept else None


def _rest(names: list[str], where: str) -> Choice | None:
    kept = [name for name in names if name.endswith(WHOLE_SUFFIXES) and not NOT_WEIGHTS.match(name)]
    return Choice("whole", (_one(kept, where, "weight"),)) if kept else None
