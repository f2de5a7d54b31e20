"""One repository of the Hub at one commit: which files it has, and how to get at each.

The revision is resolved once; every later call and every cache key uses the commit, so a branch that moves meanwhile
changes nothing.
"""

from __future__ import annotations

import contextlib
import inspect
import itertools
import json
import logging
import re
import threading
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from huggingface_hub import HfApi, constants, hf_hub_download, hf_hub_url, try_to_load_from_cache
from huggingface_hub.file_download import repo_folder_name
from huggingface_hub.utils import build_hf_headers, tqdm  # type: ignore[attr-defined]

from repcap._version import __version__
from repcap.errors import InputError, RemoteError, RepcapError
from repcap.matrix import ProgressFn
from repcap.sources.beside import MAX_JSON
from repcap.sources.remote.cache import cache_dir, file_name, make_directory, taking_turns, write_bytes
from repcap.sources.remote.hub_errors import RETRIED, explain, http_library
from repcap.sources.remote.patience import Deadline, TooLate, retry_after, timeout_seconds, within
from repcap.sources.remote.ranges import PATIENCE, RangeFile
from repcap.sources.remote.remote_file import RemoteFile

# An error that says the same follows.
warnings.filterwarnings("ignore", message="Not enough free disk space", module="huggingface_hub")

COMMIT = re.compile(r"[0-9a-f]{40}")
T = TypeVar("T")


class TooLarge(RemoteError):
    """A small file that is not small."""


class HubRepo:
    """A repository at a commit.

    name: `org/name`. revision: as asked for. commit: what it stands for. files: every path in it, sorted.
    """

    def __init__(self, name: str, revision: str | None, commit: str, files: tuple[str, ...]) -> None:
        self.name, self.revision, self.commit, self.files = name, revision, commit, files
        self.warnings: tuple[str, ...] = ()
        self._headers: dict[str, str] | None = None

    @classmethod
    def resolve(cls, name: str, revision: str | None = None) -> HubRepo:
        """Ask the Hub what `revision` (default: the main branch) stands for.

        Without a network the answer of last time is used, ours or huggingface_hub's.

        Raises
        ------
        RemoteError
            if there is no such repository or revision, or it cannot be reached and was never seen before.
        """
        if revision is not None and COMMIT.fullmatch(revision):
            files = _known_files(name, revision)
            if files is not None:
                return cls(name, revision, revision, files)
        try:
            commit, files = _ask(name, revision)
        except RemoteError as error:
            return cls._from_memory(name, revision, error)
        _remember(name, revision, commit, files)
        return cls(name, revision, commit, files)

    @classmethod
    def _from_memory(cls, name: str, revision: str | None, error: RemoteError) -> HubRepo:
        commit = _known_commit(name, revision) if _unreachable(error) else None
        files = None if commit is None else _known_files(name, commit)
        if commit is None or files is None:
            raise error
        repo = cls(name, revision, commit, files)
        if commit != revision and not _offline():
            repo.warnings = (f"the Hub cannot be reached: commit {commit[:12]} is the one known from last time",)
        return repo

    @property
    def endpoint(self) -> str:
        return _endpoint()

    def cached(self, file: str) -> Path | None:
        """The whole file in huggingface_hub's own cache, at this commit, or None."""
        found = try_to_load_from_cache(self.name, file, revision=self.commit)
        return Path(found) if isinstance(found, str) else None

    def download(self, file: str, on_progress: ProgressFn | None = None, most: int | None = None) -> Path:
        """The whole file, through huggingface_hub's own cache; tried again while the Hub fails in passing.

        Raises
        ------
        TooLarge
            if it has more than `most` bytes; it is cut off there.
        RemoteError
            if it cannot be had.
        """
        options: dict[str, Any] = {"library_name": "repcap", "library_version": __version__}
        deadline = _deadline()
        if "tqdm_class" in inspect.signature(hf_hub_download).parameters:
            options["tqdm_class"] = _bar(f"{self.name}/{file}", on_progress, most, deadline)

        def get() -> Path:
            return Path(hf_hub_download(self.name, file, revision=self.commit, endpoint=self.endpoint, **options))

        if most is not None:
            return self._call(get, f"{self.name}/{file}", deadline)
        # huggingface_hub lets processes take turns, too, but a wait of hours is then no fault of the server.
        with taking_turns(_home(self.name) / self.commit / f"{file_name(file)}.lock"):
            deadline.put_off(deadline.seconds)
            return self._call(get, f"{self.name}/{file}", deadline)

    def small(self, file: str) -> Path:
        """`download` of a configuration, an index or a tokenizer: what is larger than those ever are is refused."""
        return self.download(file, most=MAX_JSON)

    def remote(self, file: str, whole: bool = False, on_progress: ProgressFn | None = None) -> RemoteFile:
        """The file by ranges; with `whole`, by a full download where the server refuses ranges."""
        headers = self._call(self._request_headers, self.name)
        ranges = RangeFile(
            hf_hub_url(self.name, file, revision=self.commit, endpoint=self.endpoint),
            f"{self.name}/{file}",
            authorization=headers.get("authorization"),
            agent=headers.get("user-agent"),
            repo=self.name,
            endpoint=self.endpoint,
            revision=self.commit,
        )
        download = (lambda: self.download(file, on_progress)) if whole else None
        home = _home(self.name) / self.commit / file_name(file)
        return RemoteFile(file.rpartition("/")[2], ranges, home, download, on_progress)

    def size(self, file: str) -> int | None:
        """Bytes of a file, from the Hub's own listing; None where it does not say."""
        api = HfApi(endpoint=self.endpoint, library_name="repcap", library_version=__version__)
        with contextlib.suppress(Exception):  # only for a message

            def ask() -> Any:
                return api.model_info(self.name, revision=self.commit, files_metadata=True, timeout=10.0)

            listed = within(_deadline(), ask)
            return next((s.size for s in listed.siblings or () if s.rfilename == file), None)
        return None

    def _request_headers(self) -> dict[str, str]:
        if self._headers is None:
            self._headers = build_hf_headers(library_name="repcap", library_version=__version__)
        return self._headers

    def _call(self, function: Callable[[], T], what: str, deadline: Deadline | None = None) -> T:
        facts = {"repo": self.name, "endpoint": self.endpoint, "revision": self.commit}
        return _patiently(function, what, facts, deadline or _deadline())


def _endpoint() -> str:
    return constants.ENDPOINT


def _offline() -> bool:
    return bool(constants.HF_HUB_OFFLINE)


def _ask(name: str, revision: str | None) -> tuple[str, tuple[str, ...]]:
    """(commit, files) from the Hub; tried again while it fails in passing."""
    api = HfApi(endpoint=_endpoint(), library_name="repcap", library_version=__version__)
    facts = {"repo": name, "endpoint": _endpoint(), "revision": revision or "main"}

    def get() -> Any:
        return api.model_info(name, revision=revision, expand=["sha", "siblings"], timeout=10.0)

    info = _patiently(get, name, facts, _deadline())
    if not info.sha or not COMMIT.fullmatch(info.sha):
        raise RemoteError(f"{name}: {_endpoint()} does not say which commit {revision or 'main'} is: check HF_ENDPOINT")
    return info.sha, tuple(sorted(sibling.rfilename for sibling in info.siblings or ()))


def _deadline() -> Deadline:
    """For one call of huggingface_hub, its requests and waits, and our tries of it."""
    return Deadline(PATIENCE.call * timeout_seconds())


def _patiently(function: Callable[[], T], what: str, facts: dict[str, str], deadline: Deadline) -> T:
    """`function()`, a call of huggingface_hub, tried again while it fails in passing; else a RemoteError."""

    def quietly() -> T:
        with quiet():
            return function()

    for failures in itertools.count(1):
        try:
            return within(deadline, quietly)
        except RepcapError:  # noqa: PERF203 - a request costs more
            raise
        except TooLate as error:
            raise RemoteError(
                f"{what}: the server does not come to an end in {deadline.seconds:.0f} s: try later, or set "
                "HF_HUB_DOWNLOAD_TIMEOUT higher"
            ) from error
        except Exception as error:
            seconds = _again(error, failures)
            if seconds is None or deadline.left <= 0:
                raise explain(error, what, **facts) from error
            threading.Event().wait(seconds)
            deadline.put_off(seconds)
    raise AssertionError("the count has no end")


def _again(error: Exception, failures: int) -> float | None:
    """Seconds to wait before the next try, or None where it is no use."""
    http, response = http_library(), getattr(error, "response", None)
    passing = response is not None and response.status_code in RETRIED
    if not passing and not isinstance(error, (http.ReadTimeout, http.ReadError, http.RemoteProtocolError)):
        return None
    asked = retry_after(response.headers) if response is not None else None
    if failures >= PATIENCE.tries or (asked is not None and asked > PATIENCE.longest_retry_after):
        return None
    return PATIENCE.wait(failures) if asked is None else asked


def _unreachable(error: RemoteError) -> bool:
    """Whether the Hub did not answer, as against having answered no."""
    cause = error.__cause__
    response = getattr(cause, "response", None)
    if response is not None:
        return int(response.status_code) >= 500
    return isinstance(cause, (http_library().TransportError, ConnectionError))


# What is remembered


def _home(name: str) -> Path:
    address = urlsplit(_endpoint())
    return (
        cache_dir()
        / "hub"
        / file_name((address.netloc + address.path).replace(":", "+"))
        / file_name(name.replace("/", "--"))
    )


def _remember(name: str, revision: str | None, commit: str, files: tuple[str, ...]) -> None:
    home = _home(name)
    listing = home / commit / "files.json"
    with contextlib.suppress(InputError):  # a cache that may only be read can be full of what is needed
        make_directory(home / commit)
        make_directory(home / "refs")
        if not listing.exists():
            write_bytes(listing, json.dumps(files).encode())
        write_bytes(home / "refs" / file_name(revision or "main"), commit.encode())


def _known_commit(name: str, revision: str | None) -> str | None:
    if revision is not None and COMMIT.fullmatch(revision):
        return revision
    for ref in (_home(name) / "refs" / file_name(revision or "main"), _hub_home(name) / "refs" / (revision or "main")):
        with contextlib.suppress(OSError, ValueError):
            commit = ref.read_text(encoding="ascii").strip()
            if COMMIT.fullmatch(commit):
                return commit
    return None


def _known_files(name: str, commit: str) -> tuple[str, ...] | None:
    with contextlib.suppress(OSError, ValueError):
        listed = json.loads((_home(name) / commit / "files.json").read_text(encoding="utf-8"))
        if isinstance(listed, list) and all(isinstance(file, str) for file in listed):
            return tuple(listed)
    snapshot = _hub_home(name) / "snapshots" / commit
    if _offline() and snapshot.is_dir():
        return tuple(sorted(path.relative_to(snapshot).as_posix() for path in snapshot.rglob("*") if path.is_file()))
    return None


def _hub_home(name: str) -> Path:
    """Where huggingface_hub keeps this repository."""
    return Path(constants.HF_HUB_CACHE) / repo_folder_name(repo_id=name, repo_type="model")


# Silence


_SILENCE = threading.Lock()
_SILENCED = {"depth": 0, "level": logging.WARNING}


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """huggingface_hub writes its retries to stderr; here they end in an error of ours or they do not matter."""
    logger = logging.getLogger("huggingface_hub")
    with _SILENCE:
        if _SILENCED["depth"] == 0:
            _SILENCED["level"] = logger.level
            logger.setLevel(logging.CRITICAL)
        _SILENCED["depth"] += 1
    try:
        yield
    finally:
        with _SILENCE:
            _SILENCED["depth"] -= 1
            if _SILENCED["depth"] == 0:
                logger.setLevel(_SILENCED["level"])


def _bar(what: str, on_progress: ProgressFn | None, most: int | None, deadline: Deadline) -> type:
    """A progress bar for huggingface_hub that draws nothing, calls `on_progress`, and stops it beyond `most` bytes.

    It is told of every `DOWNLOAD_CHUNK_SIZE` bytes, and puts the deadline off for the next.
    """

    class Bar(tqdm):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            self.seen, self.all = int(kwargs.get("initial") or 0), int(kwargs.get("total") or 0)
            super().__init__(*args, **{**kwargs, "disable": True})  # type: ignore[no-untyped-call]
            self.check()

        def check(self) -> None:
            if deadline.left <= 0:
                raise TooLate  # nobody waits any more
            if most is not None and max(self.all, self.seen) > most:
                raise TooLarge(
                    f"{what} has {max(self.all, self.seen) / 1e6:,.0f} MB or more; files of this kind have at most "
                    f"{most / 1e6:,.0f}: it is not read"
                )
            left = self.all - self.seen if self.all > self.seen else constants.DOWNLOAD_CHUNK_SIZE
            lot = min(left, constants.DOWNLOAD_CHUNK_SIZE)
            deadline.put_off(deadline.seconds + lot / PATIENCE.least_rate)

        def update(self, n: float | None = 1) -> None:
            self.seen += int(n or 0)
            self.check()
            if on_progress is not None:
                on_progress(self.seen, max(self.all, self.seen))

    return Bar
