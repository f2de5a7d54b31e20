"""When to try a server again, when to give it up, and what it says about that itself."""

from __future__ import annotations

import dataclasses
import random
import threading
import time
from collections.abc import Callable, Mapping
from email.utils import parsedate_to_datetime
from typing import TypeVar

from huggingface_hub import constants

T = TypeVar("T")


@dataclasses.dataclass(frozen=True)
class Patience:
    """When to try again, and when to give up."""

    tries: int = 6
    """Failures in a row, without `progress` bytes between them, before giving up."""
    first_wait: float = 0.5
    longest_wait: float = 8.0
    """Seconds between tries, doubled each time; a server's Retry-After is obeyed instead."""
    longest_retry_after: float = 120.0
    """A server that asks for more than this is taken at its word, and the run ends."""
    progress: int = 1 << 16
    connect_seconds: float = 10.0
    stall: float = 2.0
    stall_bytes: int = 1 << 14
    """Fewer bytes than this in so many time-outs: the connection is as good as dead."""
    answer: float = 3.0
    """The head of an answer, redirects included, may take so many time-outs."""
    call: float = 12.0
    """A call of huggingface_hub, all its requests and tries, may take so many time-outs without progress."""
    least_rate: float = 1e4
    """Bytes a second that a download of huggingface_hub must bring. It counts them in lots of 10 MB."""

    def wait(self, failures: int) -> float:
        longest = min(self.longest_wait, self.first_wait * 2.0 ** (failures - 1))
        return longest * random.uniform(0.75, 1.0)  # many workers should not come back at once


def timeout_seconds() -> float:
    """HF_HUB_DOWNLOAD_TIMEOUT: seconds without a byte after which a connection counts as lost."""
    return max(float(constants.HF_HUB_DOWNLOAD_TIMEOUT), 1e-3)


class Watch:
    """Tells a slow server from a dead one."""

    def __init__(self, patience: Patience) -> None:
        self.patience, self.since, self.seen = patience, time.monotonic(), 0
        self.window = patience.stall * timeout_seconds()

    def stalled(self, received: int) -> bool:
        """Whether too little has come in the last window, after `received` more bytes."""
        self.seen += received
        now = time.monotonic()
        if now - self.since < self.window:
            return False
        slow, self.since, self.seen = self.seen < self.patience.stall_bytes, now, 0
        return slow


class TooLate(Exception):
    """A deadline has passed."""


class Cancelled(Exception):
    """Another part of the same transfer failed: stop."""


class Deadline:
    """A moment, `seconds` from now, that may be put off while there is progress. Threads may share one."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self._until = seconds, time.monotonic() + seconds

    @property
    def left(self) -> float:
        return self._until - time.monotonic()

    def put_off(self, seconds: float) -> None:
        """Not before `seconds` from now."""
        self._until = max(self._until, time.monotonic() + seconds)


def within(
    deadline: Deadline,
    function: Callable[[], T],
    *,
    cancel: threading.Event | None = None,
    late: Callable[[T], object] | None = None,
) -> T:
    """`function()` in a thread of its own: for calls that a server can stretch without end, a byte at a time.

    late: called with a result that nobody waits for any more. The thread itself cannot be stopped; it is a daemon, so
    that it does not keep the program from ending.

    Raises
    ------
    TooLate
        if there is no result at the deadline.
    Cancelled
        if `cancel` is set meanwhile.
    """
    ended, lock = threading.Event(), threading.Lock()
    results: list[T] = []
    failures: list[BaseException] = []
    gone = False

    def work() -> None:
        try:
            result = function()
        except BaseException as error:  # raised again where it is waited for
            failures.append(error)
        else:
            with lock:
                results.append(result)
                unwanted = gone
            if unwanted and late is not None:
                late(result)
        ended.set()

    threading.Thread(target=work, name="repcap-call", daemon=True).start()
    try:
        while not ended.wait(max(0.0, min(deadline.left, 0.1))):
            if cancel is not None and cancel.is_set():
                raise Cancelled
            if deadline.left <= 0:
                raise TooLate
    except BaseException:
        with lock:
            gone, came = True, list(results)
        if came and late is not None:
            late(came[0])
        raise
    if failures:
        raise failures[0]
    return results[0]


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds that a server asks to wait (`Retry-After`, a number or a date), or None."""
    value = headers.get("retry-after", "").strip()
    if value.isascii() and value.isdigit():
        return float(value)
    if not value:
        return None
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    except (TypeError, ValueError, OverflowError, OSError):  # no date, or one that no clock shows
        return None
