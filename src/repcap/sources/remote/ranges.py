"""Ranges of one remote file, and nothing but ranges: a server that would send the whole file is cut off.

The session, its proxies and its certificates are huggingface_hub's own. Redirects are followed here, so that the token
stays with the host it is meant for; a lost connection goes on from the byte where it broke.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import urljoin, urlsplit

from huggingface_hub.utils import get_session  # type: ignore[attr-defined]

from repcap.errors import RemoteError
from repcap.sources.remote.hub_errors import RETRIED, explain, explain_status, http_library
from repcap.sources.remote.patience import (
    Cancelled,
    Deadline,
    Patience,
    TooLate,
    Watch,
    retry_after,
    timeout_seconds,
    within,
)

CONTENT_RANGE = re.compile(r"\s*bytes\s+([0-9]{1,18})-([0-9]{1,18})/([0-9]{1,18}|\*)\s*", re.IGNORECASE)
REDIRECTS = (301, 302, 303, 307, 308)
MAX_REDIRECTS = 10
LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})

Write = Callable[[int, bytes], None]
"""Called with (position in the file, bytes), in order, as bytes arrive."""


PATIENCE = Patience()


class RangesRefused(RemoteError):
    """The server answers a range with the whole file.

    size: bytes that it would send, or None. version: what tells this version of the file from others, or None.
    """

    def __init__(self, where: str, headers: Mapping[str, str]) -> None:
        self._headers = dict(headers)
        length = headers.get("content-length", "")
        self.where, self.size = where, int(length) if length.isdigit() else None
        self.version = version_of(headers.get("etag"), headers.get("last-modified"), self.size)
        cost = f"{self.size / 1e6:,.0f} MB" if self.size else "the whole file"
        super().__init__(
            f"{where}: the server sends whole files only (it ignores ranges), so this would download {cost}: "
            "pass --allow-full-download to do that"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return RangesRefused, (self.where, self._headers)  # workers send it to the process that drives them


class _Passing(Exception):
    """A failure that may pass. `error` is what to raise if it does not; `after` what the server asks us to wait."""

    def __init__(self, error: RemoteError, after: float | None = None) -> None:
        self.error, self.after = error, after


def version_of(etag: str | None, modified: str | None, size: int | None) -> str | None:
    """A name for one version of a file, or None where the server says nothing that would change with it."""
    if etag is None and (modified is None or size is None):
        return None
    return hashlib.sha256(f"{etag} {modified if etag is None else ''} {size}".encode()).hexdigest()[:16]


def origin(url: str) -> tuple[str, str, int]:
    """(scheme, host, port) of a URL."""
    parts = urlsplit(url)
    return parts.scheme, (parts.hostname or "").lower(), parts.port or {"http": 80, "https": 443}.get(parts.scheme, 0)


def check_url(url: str) -> None:
    """Raise RemoteError unless `url` is https, or http on this machine, with no password in it."""
    try:
        parts = urlsplit(url)
        origin(url)
    except ValueError as error:
        raise RemoteError(f"not an address ({error}); write https://host/path/file.safetensors") from error
    if parts.username or parts.password:
        raise RemoteError(
            f"{parts.hostname}: put no user name or password into the address; use a signed address instead"
        )
    if not parts.hostname:
        raise RemoteError(f"{url}: not an address; write https://host/path/file.safetensors")
    if parts.scheme == "http" and parts.hostname.lower() not in LOOPBACK:
        raise RemoteError(f"{url}: plain http can be read and changed by anyone on the way: use https")


class RangeFile:
    """One file at one address, read by ranges.

    Parameters
    ----------
    url : str
        where it is; it may redirect.
    where : str
        its name in messages.
    authorization : str, optional
        sent to the origin of `url` and to no other.
    repo, endpoint, revision : str
        for messages, where the address is the Hub's; the file then is of one commit and cannot change.
    patience : Patience, optional
        when to try again.
    agent : str, optional
        User-Agent.

    Threads may share one. `size`, `etag` and `modified` are known after the first range.
    """

    def __init__(
        self,
        url: str,
        where: str,
        *,
        authorization: str | None = None,
        repo: str | None = None,
        endpoint: str = "",
        revision: str = "",
        patience: Patience | None = None,
        agent: str | None = None,
    ) -> None:
        self.url, self.where, self.patience = url, where, patience or PATIENCE
        self.size: int | None = None
        self.etag: str | None = None
        self.modified: str | None = None
        self.content: str | None = None
        """What the Hub calls the content of the file: two files of one name of it are equal."""
        self._authorization, self._agent = authorization, agent
        self._hub: dict[str, Any] = {"repo": repo, "endpoint": endpoint, "revision": revision}
        self._location: str | None = None
        self._lock = threading.Lock()

    def read(self, start: int, stop: int) -> bytes:
        """Bytes start..stop-1, all of them. Memory: the range."""
        out = bytearray(stop - start)

        def write(position: int, piece: bytes) -> None:
            out[position - start : position - start + len(piece)] = piece

        self.copy(start, stop, write)
        return bytes(out)

    def copy(self, start: int, stop: int, write: Write, cancel: threading.Event | None = None) -> None:
        """Hand bytes start..stop-1 to `write` in order, trying again from where it broke.

        Raises
        ------
        RemoteError
            if the server refuses, lies, or fails too often in a row. What `write` was given is right.
        RangesRefused
            if the server ignores ranges.
        Cancelled
            if `cancel` is set meanwhile.
        """
        at, mark, failures = start, start, 0

        def note(position: int, piece: bytes) -> None:
            nonlocal at
            write(position, piece)
            at = position + len(piece)

        while at < stop:
            try:
                self._attempt(at, stop, note, cancel)
            except _Passing as passing:  # noqa: PERF203 - a request costs more
                if at - mark >= self.patience.progress:
                    failures = 0
                failures += 1
                mark = at if failures == 1 else mark
                self._pause(passing, failures, cancel)

    def _pause(self, passing: _Passing, failures: int, cancel: threading.Event | None) -> None:
        too_long = passing.after is not None and passing.after > self.patience.longest_retry_after
        if failures >= self.patience.tries or too_long:
            raise passing.error
        seconds = self.patience.wait(failures) if passing.after is None else passing.after
        if (cancel or threading.Event()).wait(seconds):
            raise Cancelled

    def _attempt(self, start: int, stop: int, write: Write, cancel: threading.Event | None) -> None:
        with self._explained():
            self._request(start, stop, write, cancel)

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        """Failures of the network as errors of ours; those of our own disk as they are."""
        http = http_library()
        try:
            yield
        except (http.TimeoutException, http.NetworkError, http.RemoteProtocolError) as error:
            raise _Passing(explain(error, self.where, **self._hub)) from error
        except (http.HTTPError, http.InvalidURL, UnicodeEncodeError, OSError) as error:
            if isinstance(error, OSError) and error.errno is not None and not isinstance(error, ConnectionError):
                raise
            raise explain(error, self.where, **self._hub) from error

    def _request(self, start: int, stop: int, write: Write, cancel: threading.Event | None) -> None:
        """One answer to one range, its body handed on."""
        with self._answer(f"bytes={start}-{stop - 1}", cancel) as (answer, url):
            self._check(answer, start, stop, url)
            self._location = url
            self._body(answer, start, stop, write, cancel)

    def whole(self, write: Write) -> None:
        """Hand the whole file to `write`, from its first byte on: for servers that know no ranges. Tried once.

        Raises
        ------
        RemoteError
            if the server refuses, fails, or stops before the end.
        """
        try:
            with self._explained(), self._answer(None, None) as (answer, url):
                if answer.status_code != 200:
                    raise self._refusal(answer, url)
                self._check_plain(answer.headers)
                length = answer.headers.get("content-length", "")
                self.size = int(length) if length.isdigit() else None
                self._body(answer, 0, self.size, write, None)
        except _Passing as passing:
            raise passing.error from passing

    @contextlib.contextmanager
    def _answer(self, wanted: str | None, cancel: threading.Event | None) -> Iterator[tuple[Any, str]]:
        """(answer that is not a redirect, its address), the body not yet read; cut off when the block ends."""
        url, deadline = self._location or self.url, Deadline(self.patience.answer * timeout_seconds())
        for _ in range(MAX_REDIRECTS):
            if cancel is not None and cancel.is_set():
                raise Cancelled
            with self._opened(url, wanted, deadline, cancel) as answer:
                if answer.status_code in REDIRECTS and "location" in answer.headers:
                    if url == self.url and self._hub["repo"] is not None:
                        self.content = answer.headers.get("x-linked-etag", "").strip('"') or self.content
                    url = self._redirect(url, answer.headers["location"])
                    continue
                if url == self._location != self.url and answer.status_code in (401, 403, 404, 410):
                    # A signed address that has expired: ask for a new one.
                    self._location, url = None, self.url
                    continue
                yield answer, url
                return
        raise RemoteError(f"{self.where}: the server redirects more than {MAX_REDIRECTS} times")

    @contextlib.contextmanager
    def _opened(
        self, url: str, wanted: str | None, deadline: Deadline, cancel: threading.Event | None
    ) -> Iterator[Any]:
        """The answer to one request, its head read. No library limits the time that a head may take."""
        stream = self._session().stream(
            "GET", url, headers=self._headers(url, wanted), follow_redirects=False, timeout=self._timeout()
        )
        with contextlib.ExitStack() as stack:
            try:
                answer = within(
                    deadline, stream.__enter__, cancel=cancel, late=lambda _: stream.__exit__(None, None, None)
                )
            except TooLate as error:
                raise _Passing(
                    RemoteError(
                        f"{self.where}: the server does not come to the point in {deadline.seconds:.0f} s: try later, "
                        "or set HF_HUB_DOWNLOAD_TIMEOUT higher"
                    )
                ) from error
            stack.push(stream)
            yield answer

    def _session(self) -> Any:
        """huggingface_hub's own; it reads certificates and proxies when it is made."""
        try:
            return get_session()
        except Exception as error:
            raise explain(error, self.where, **self._hub) from error

    def _headers(self, url: str, wanted: str | None) -> dict[str, str]:
        # identity: a compressed body has another length, and some caches drop the range for it
        headers = {"Accept-Encoding": "identity"}
        if wanted is not None:
            headers["Range"] = wanted
        if self._agent:
            headers["User-Agent"] = self._agent
        if self._authorization and origin(url) == origin(self.url):
            headers["Authorization"] = self._authorization
        return headers

    def _timeout(self) -> Any:
        read = timeout_seconds()
        return http_library().Timeout(read, connect=min(read, self.patience.connect_seconds), pool=None)

    def _redirect(self, url: str, location: str) -> str:
        try:
            target = urljoin(url, location)
            scheme, host, _ = origin(target)
        except ValueError as error:
            raise RemoteError(f"{self.where}: the server redirects to what is no address ({error})") from error
        if scheme not in ("http", "https"):
            raise RemoteError(f"{self.where}: the server redirects to {scheme}:, which is no web address")
        if origin(url)[0] == "https" and scheme == "http":
            raise RemoteError(f"{self.where}: the server redirects from https to plain http ({host})")
        return target

    def _check(self, answer: Any, start: int, stop: int, url: str) -> None:
        """Raise unless the answer is the range that was asked for, of the file that was seen before."""
        status, headers = answer.status_code, answer.headers
        if status == 200:
            raise RangesRefused(self.where, headers)
        if status != 206:
            raise self._refusal(answer, url)
        size = self._check_range(headers, start, stop)
        self._check_plain(headers)
        self._same_file(size, headers)

    def _check_plain(self, headers: Mapping[str, str]) -> None:
        encoding = headers.get("content-encoding", "identity").lower()
        if encoding != "identity":
            raise RemoteError(
                f"{self.where}: the server compresses what it sends ({encoding[:20]}) though it was asked not to, so "
                "bytes cannot be counted"
            )

    def _refusal(self, answer: Any, url: str) -> Exception:
        # The store behind the Hub speaks for itself; only the Hub's own answers carry its codes.
        hub = self._hub if origin(url) == origin(self.url) else {}
        error = explain_status(answer.status_code, answer.headers, self.where, **hub)
        return _Passing(error, retry_after(answer.headers)) if answer.status_code in RETRIED else error

    def _check_range(self, headers: Mapping[str, str], start: int, stop: int) -> int | None:
        given = CONTENT_RANGE.fullmatch(headers.get("content-range", ""))
        if given is None or (int(given[1]), int(given[2])) != (start, stop - 1):
            said = (headers.get("content-range") or "nothing")[:80]
            if given is not None and given[3] != "*" and int(given[3]) < stop and int(given[1]) == start:
                raise RemoteError(
                    f"{self.where}: the file has {given[3]} bytes, {stop} are needed: it is truncated, or no such file"
                )
            raise RemoteError(
                f"{self.where}: asked for bytes {start}-{stop - 1}, the server says that it sends {said}: "
                "its answers cannot be trusted"
            )
        length = headers.get("content-length")
        if length is not None and length != str(stop - start):
            raise _Passing(
                RemoteError(
                    f"{self.where}: asked for {stop - start} bytes, the server sends {length}: "
                    "its answers cannot be trusted"
                )
            )
        return None if given[3] == "*" else int(given[3])

    def _same_file(self, size: int | None, headers: Mapping[str, str]) -> None:
        etag, modified = headers.get("etag"), headers.get("last-modified")
        with self._lock:
            if self.size is None and self.etag is None:
                self.size, self.etag, self.modified = size, etag, modified
                return
            changed = size is not None and self.size is not None and size != self.size
            if self._hub["repo"] is None and etag is not None and self.etag is not None:
                changed = changed or etag != self.etag
        if changed:
            raise RemoteError(f"{self.where}: the file changed while it was read: run again")

    def _body(self, answer: Any, start: int, stop: int | None, write: Write, cancel: threading.Event | None) -> None:
        at, watch = start, Watch(self.patience)
        for piece in answer.iter_raw():
            if stop is not None and at + len(piece) > stop:
                raise RemoteError(
                    f"{self.where}: the server sends more than was asked for: its answers cannot be trusted"
                )
            write(at, piece)
            at += len(piece)
            if cancel is not None and cancel.is_set():
                raise Cancelled
            if watch.stalled(len(piece)) and at != stop:
                raise _Passing(RemoteError(f"{self.where}: the server sends next to nothing: try again later"))
        if stop is not None and at != stop:
            raise _Passing(RemoteError(f"{self.where}: the connection ended {stop - at} bytes early, again and again"))
