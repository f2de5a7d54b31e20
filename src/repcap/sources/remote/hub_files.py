"""The files of a checkpoint on the Hub, and what lies beside them, as `formats` wants them."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any

from repcap.matrix import ProgressFn
from repcap.sources.beside import CONFIGS, Beside, Folder
from repcap.sources.remote.hub_repo import HubRepo, TooLarge
from repcap.sources.stored_files import DiskFile, Files, StoredFile
from repcap.sources.tokens import VocabTokens

TOKENIZERS = ("tokenizer.json", "vocab.json", "vocab.txt")


@dataclasses.dataclass(frozen=True)
class Reading:
    """What the caller allows, and whom to tell."""

    allow_truncated: bool = False
    allow_full_download: bool = False
    on_progress: ProgressFn | None = None
    quick: bool = False
    """A few rows will be read: a tokenizer that is not in the cache is not worth its download."""


class HubFiles(Files):
    """Files in a folder (ending in `/`, or empty) of a repository: from the cache if they are there, else by ranges."""

    def __init__(self, spec: str, repo: HubRepo, folder: str, names: Sequence[str], reading: Reading) -> None:
        self.spec, self._repo, self._folder, self.names, self._reading = spec, repo, folder, names, reading
        self.allow_truncated = reading.allow_truncated
        self.here = {file.removeprefix(folder) for file in repo.files if file.startswith(folder)}
        self.beside = HubFolder(repo, folder, reading.quick)

    def find(self, name: str) -> StoredFile:
        path = self._repo.cached(self._folder + name)
        if path is not None:
            return DiskFile(path)
        return self._repo.remote(self._folder + name, self._reading.allow_full_download, self._reading.on_progress)

    def text(self, name: str) -> bytes:
        return self._repo.small(self._folder + name).read_bytes()


class HubFolder(Beside):
    """Configuration and tokenizer of a folder of a repository, where huggingface_hub keeps them.

    quick: leave out a tokenizer that would have to be downloaded.
    """

    def __init__(self, repo: HubRepo, folder: str, quick: bool) -> None:
        super().__init__()
        self.warnings += repo.warnings
        self._repo, self._prefix, self._quick = repo, folder, quick

    def _first(self, names: tuple[str, ...]) -> str | None:
        return next((self._prefix + name for name in names if self._prefix + name in self._repo.files), None)

    def _beside(self, file: str, without: str) -> Folder | None:
        """The directory that `file` lies in, once it is on the disk; None, and a warning, where it is too large."""
        try:
            return Folder(self._repo.small(file).parent)
        except TooLarge as error:
            self.warnings.append(f"{error}; {without}")
            return None

    @functools.cached_property
    def config(self) -> dict[str, Any]:
        file = self._first(CONFIGS)
        folder = self._beside(file, "tying is judged without it") if file is not None else None
        found = folder.config if folder is not None else {}
        self.warnings += folder.warnings if folder is not None else []
        return found

    @functools.cached_property
    def tokens(self) -> VocabTokens | None:
        file = self._first(TOKENIZERS)
        if file is None or (self._quick and self._repo.cached(file) is None):
            return None
        folder = self._beside(file, "rows are shown without their tokens")
        found = folder.tokens if folder is not None else None
        self.warnings += folder.warnings if folder is not None else []
        return found

    def facts(self, name: str) -> dict[str, Any]:
        if self._prefix + name not in self._repo.files:
            return {}
        return Folder(self._repo.small(self._prefix + name).parent).facts(name)
