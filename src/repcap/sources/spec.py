"""A source is a string: which kind it is, decided without touching the network."""

from __future__ import annotations

import dataclasses
import os
import re
from pathlib import Path
from typing import Literal
from urllib.parse import unquote, urlsplit

from repcap.errors import SourceError
from repcap.sources.formats import suffixes
from repcap.sources.names import likely_name

REPO = re.compile(r"^[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*$")

Scheme = Literal["path", "package", "hub", "url"]


@dataclasses.dataclass(frozen=True)
class Spec:
    """What a source string says."""

    text: str
    """As the user gave it."""
    scheme: Scheme
    location: str
    """Path, package path (`module/path/in/package`), repository (`org/name`) or URL."""
    revision: str | None = None
    """Branch, tag or commit; Hub only."""
    folder: str = ""
    """Folder inside the repository; Hub only."""
    tensor: str | None = None
    """What follows `::`."""


def parse_spec(text: str | os.PathLike[str]) -> Spec:
    """Parse a source.

    `path[::tensor]`, `pkg://module/file[::tensor]`, `org/name[@revision][::tensor]`,
    `hf://org/name[@revision][/sub/folder][::tensor]`, `https://...[::tensor]`. A path that exists wins over a
    repository of the same name.

    Raises
    ------
    SourceError
        if it is neither an existing path nor the name of a repository.
    """
    given = os.fspath(text)
    if not given.strip() or given.startswith("::"):
        raise SourceError("the source is empty: give a file, a directory, org/name or pkg://module/file")
    given = _as_path(given)
    if _exists(given):  # a path may hold `::` itself
        return Spec(given, "path", given)
    body, tensor = _split_tensor(given)
    if body.startswith("pkg://"):
        return Spec(given, "package", body.removeprefix("pkg://"), tensor=tensor)
    if body.startswith(("https://", "http://")):
        return Spec(given, "url", body, tensor=tensor)
    if body.startswith("hf://"):
        return _hub(given, body.removeprefix("hf://"), tensor)
    if _exists(body):
        return Spec(given, "path", body, tensor=tensor)
    repo, _, revision = body.partition("@")
    if REPO.match(repo) and not is_file_name(repo) and not isinstance(text, Path):
        return Spec(given, "hub", repo, revision or None, tensor=tensor)
    raise SourceError(_missing(body))


def is_file_name(text: str) -> bool:
    """Whether a text ends as files do that are sources: it is no repository, then."""
    return text.lower().endswith((*suffixes(), ".json"))


def _as_path(text: str) -> str:
    """`~/x` and `file:///x` as the paths that they stand for; other texts as they are.

    Raises
    ------
    SourceError
        for a `file://` of another machine, or the home of a user who is not known.
    """
    if text.startswith("~"):
        try:
            return str(Path(text).expanduser())
        except RuntimeError as error:
            raise SourceError(f"{text}: there is no such home directory") from error
    if not text.startswith("file:"):
        return text
    parts = urlsplit(text)
    if parts.netloc not in ("", "localhost"):
        raise SourceError(f"{text}: a file on another machine ({parts.netloc}): write file:///path")
    return unquote(parts.path)


def _exists(path: str) -> bool:
    try:
        return Path(path).exists() or Path(path).is_symlink()  # a link that leads nowhere is named as such
    except (OSError, ValueError):  # a name that is too long, a directory that we may not look into
        return False


def _split_tensor(text: str) -> tuple[str, str | None]:
    body, mark, tensor = text.rpartition("::")
    if not mark:
        return text, None
    if not tensor:
        raise SourceError(f"{text}: no tensor name after '::'; see repcap inspect {body}")
    return body, tensor


def _hub(given: str, rest: str, tensor: str | None) -> Spec:
    """`org/name[@revision][/folder]`; refs/pr/N and refs/convert/x are revisions of three parts."""
    match = re.match(r"^([^/@]+/[^/@]+)(?:@(refs/[^/]+/[^/]+|[^/]+))?(?:/(.*))?$", rest)
    if not match or not REPO.match(match.group(1)):
        raise SourceError(f"{given}: not a Hub address; write hf://org/name, hf://org/name@revision or .../sub/folder")
    repo, revision, folder = match.groups()
    return Spec(given, "hub", repo, revision, (folder or "").strip("/"), tensor)


def _missing(body: str) -> str:
    if re.fullmatch(r"[A-Za-z0-9][\w.-]*", body) and not is_file_name(body):
        likely = likely_name(body)
        perhaps = f", perhaps {likely}" if likely else ""
        return f"{body}: no such file or directory; a Hub checkpoint is written org/name{perhaps}"
    return f"{body}: no such file or directory"
