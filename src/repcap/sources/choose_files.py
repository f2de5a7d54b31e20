"""Which files of a directory, or of a folder on the Hub, make up the checkpoint: by their names alone."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Sequence

from repcap.errors import SourceError
from repcap.sources import formats
from repcap.sources.checkpoint import Checkpoint
from repcap.sources.formats import INDEX, Format

NOT_WEIGHTS = re.compile(
    r"^(optimizer|scheduler|training_args|rng_state|random_states|tokenizer|mmproj)", re.IGNORECASE
)
NO_SET = re.compile(r"^adapter_", re.IGNORECASE)
"""Beside weights this is no second set of them."""


@dataclasses.dataclass(frozen=True)
class Choice:
    """What to open."""

    format: Format
    names: tuple[str, ...]
    """An index alone, or the files in order."""
    others: tuple[str, ...] = ()
    """Files of the same kind that are not opened, unless the index names them."""

    @property
    def index(self) -> bool:
        """Whether `names` is an index."""
        return self.names[0].lower().endswith(INDEX)


def choose_files(names: Sequence[str], where: str, folders: Sequence[str] = ()) -> Choice:
    """The first kind of FORMATS that is there under its usual name, else under any; of several sets the usual one.

    names: files of one folder. where: the folder, as it would be named in a source. folders: those in it, for messages.

    Raises
    ------
    SourceError
        if there are none, or several of which one has to be named.
    """
    kept = [name for name in sorted(names) if not NOT_WEIGHTS.match(name)]
    kinds = []
    for row in formats.FORMATS:
        sure = [name for name in kept if row.is_sure(name)]
        indexes = [name for name in kept if row.indexed and _is_index(name) and row.is_sure(name[: -len(INDEX)])]
        if sure or indexes:
            kinds.append((row, sure, indexes))
    if kinds:  # `pytorch_model.bin` goes before a stray `x.safetensors`
        return _choose(*next((kind for kind in kinds if _has_main(*kind)), kinds[0]), where)
    rest = [name for name in kept if not _is_index(name) and formats.format_of(name)]
    if rest:
        chosen = named_file(_one([(name,) for name in rest], where, "weight")[0])
        assert chosen is not None
        return chosen
    raise SourceError(_nothing(names, where, folders))


def named_file(name: str) -> Choice | None:
    """What one file that the user has named is; None where it is no file of weights."""
    row = formats.format_of(name)
    return Choice(row, (name,)) if row is not None else None


def note_others(checkpoint: Checkpoint, choice: Choice) -> None:
    """Name the files of other sets of weights, which are not read, in the checkpoint's warnings."""
    if not choice.others:
        return
    read = {*choice.names, *checkpoint.files}
    others = [name for name in choice.others if name not in read and not NO_SET.match(name)]
    if others:
        checkpoint.note(f"{choice.names[0]} is read; other weights beside it are not: {_listed(others)}")


def _is_index(name: str) -> bool:
    return name.lower().endswith(INDEX)


def _has_main(row: Format, sure: list[str], indexes: list[str]) -> bool:
    stems = [*(stem for stem, _ in _sets(row, sure)), *(row.stem(name[: -len(INDEX)]) or "" for name in indexes)]
    return any(stem.lower() in row.main for stem in stems)


def _choose(row: Format, sure: list[str], indexes: list[str], where: str) -> Choice:
    sets = _sets(row, sure)
    for main in row.main:
        index = [name for name in indexes if row.stem(name[: -len(INDEX)]) == main]
        if index:
            return Choice(row, (index[0],), tuple(sure))
        found = [files for stem, files in sets if stem == main]
        if found:
            return _with_others(row, _one(found, where, row.name), sure)
    if indexes:
        return Choice(row, (_one([(name,) for name in indexes], where, "index")[0],), tuple(sure))
    return _with_others(row, _one([files for _, files in sets], where, row.name), sure)


def _with_others(row: Format, files: tuple[str, ...], sure: Iterable[str]) -> Choice:
    return Choice(row, files, tuple(name for name in sure if name not in files))


def _sets(row: Format, names: Iterable[str]) -> list[tuple[str, tuple[str, ...]]]:
    """(stem, files) of each set of weights: a file by itself, or the parts that belong together."""
    found: dict[tuple[str, ...], list[str]] = {}
    for name in names:
        stem = row.stem(name) or ""
        part = re.fullmatch(row.part, stem, re.IGNORECASE)
        key = (part.group("stem"), *part.groups(), "parts") if part else (stem, name)
        found.setdefault(key, []).append(name)
    return [(key[0], tuple(files)) for key, files in found.items()]


def _one(sets: Sequence[tuple[str, ...]], where: str, what: str) -> tuple[str, ...]:
    """The only set."""
    if len(sets) == 1:
        return sets[0]
    shown = _listed([files[0] for files in sets])
    several = any(len(files) > 1 for files in sets)
    count = f"{len(sets)} {'sets of ' if several else ''}{what} files"
    way = "move the others away, or name" if several else "name"
    raise SourceError(f"{where} holds {count} ({shown}): {way} one, {where}/{sets[0][0]}")


def _listed(names: Sequence[str], most: int = 6) -> str:
    return ", ".join(names[:most]) + (" ..." if len(names) > most else "")


def _nothing(names: Sequence[str], where: str, folders: Sequence[str]) -> str:
    files = f"; its files: {_listed(sorted(names))}" if names else ""
    below = f"; its folders, one of which could be named, {where}/FOLDER: {_listed(folders)}" if folders else ""
    return f"{where} holds no weights that repcap reads ({formats.kinds()}){files}{below}"
