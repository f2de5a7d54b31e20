"""A file at a plain address, `https://host/path/file.safetensors`, by ranges."""

from __future__ import annotations

import atexit
import contextlib
import functools
import hashlib
import shutil
import uuid
from pathlib import Path
from urllib.parse import unquote, urlsplit

from huggingface_hub import constants
from huggingface_hub.utils import build_hf_headers  # type: ignore[attr-defined]

from repcap._version import __version__
from repcap.errors import InputError, RemoteError, SourceError
from repcap.files import atomic_path
from repcap.sources.beside import Beside
from repcap.sources.checkpoint import Checkpoint
from repcap.sources.formats import format_of, ranged_suffixes
from repcap.sources.remote.cache import cache_dir, file_name, make_directory, write_bytes
from repcap.sources.remote.hub_files import Reading
from repcap.sources.remote.ranges import RangeFile, RangesRefused, check_url, origin, version_of
from repcap.sources.remote.remote_file import RemoteFile
from repcap.sources.stored_files import Files


def open_url(text: str, url: str, reading: Reading) -> Checkpoint:
    """The checkpoint in one file at `url`.

    The version of the file (its ETag, or date, and its length) is asked for once, and is part of the cache's key. With
    HF_HUB_OFFLINE set, the version of last time is used.

    Raises
    ------
    RemoteError
        if the address is not acceptable, or the server refuses, fails or lies.
    """
    check_url(url)
    name = unquote(urlsplit(url).path).rpartition("/")[2]
    row = format_of(name)
    if row is None or not row.ranged:
        ends = " or ".join(ranged_suffixes())
        raise SourceError(f"{text}: cannot tell what this is; the path of an address must end in {ends}")
    authorization = _authorization(url)
    ranges = RangeFile(
        url,
        _shown(url),
        authorization=authorization,
        endpoint=constants.ENDPOINT if authorization else "",
        agent=f"repcap/{__version__}",
    )
    home = cache_dir() / "url" / f"{hashlib.sha256(url.encode()).hexdigest()[:16]}-{file_name(name)}"
    folder = home / _version(ranges, home, reading)
    whole = functools.partial(_download, ranges, folder / "whole", reading) if reading.allow_full_download else None
    file = RemoteFile(name, ranges, folder, whole, reading.on_progress)
    found: Checkpoint = row.open_files(_OneFile(text, file, reading.allow_truncated))
    return found


class _OneFile(Files):
    """A file that nothing lies beside."""

    def __init__(self, spec: str, file: RemoteFile, allow_truncated: bool) -> None:
        self.spec, self._file, self.allow_truncated = spec, file, allow_truncated
        self.names = self.here = (file.name,)
        self.beside = Beside()

    def find(self, name: str) -> RemoteFile:
        return self._file

    def text(self, name: str) -> bytes:
        raise SourceError(f"{self.spec}: an index is of no use without its files: give the address of one of them")


def _version(ranges: RangeFile, home: Path, reading: Reading) -> str:
    """Name of this version's folder. Cost: one range of 8 bytes."""
    latest = home / "latest"
    try:
        ranges.read(0, 8)
        version = version_of(ranges.etag, ranges.modified, ranges.size)
    except RangesRefused as refusal:
        if not reading.allow_full_download:
            raise
        version = refusal.version
    except RemoteError as error:
        if isinstance(error.__cause__, ConnectionError) and latest.is_file():  # offline
            return latest.read_text(encoding="ascii")
        raise
    if version is None:
        # Nothing would tell us that the file has changed: what is fetched serves this process only.
        version = f"once-{uuid.uuid4().hex[:12]}"
        atexit.register(shutil.rmtree, home / version, ignore_errors=True)
    else:
        with contextlib.suppress(InputError):  # it matters without a network only
            make_directory(home)
            write_bytes(latest, version.encode())
    return version


def _download(ranges: RangeFile, path: Path, reading: Reading) -> Path:
    """The whole file, where the server cannot send a part of it."""
    if path.exists():
        return path
    make_directory(path.parent)
    with atomic_path(path) as temporary, temporary.open("wb") as out:

        def write(position: int, piece: bytes) -> None:
            out.write(piece)
            if reading.on_progress is not None:
                done = position + len(piece)
                reading.on_progress(done, max(done, ranges.size or 0))

        try:
            ranges.whole(write)
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise SourceError(f"cannot write {path}: {reason}") from error
    return path


def _authorization(url: str) -> str | None:
    """The Hub's token, for an address at the Hub itself."""
    return build_hf_headers().get("authorization") if origin(url) == origin(constants.ENDPOINT) else None


def _shown(url: str) -> str:
    """The address for messages, without a signature in its query."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}{parts.path}"
