"""When to try a server again, when to give it up, and what it says about that itself."""

from __future__ import annotations

import dataclasses
import random
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime


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
    stall_seconds: float = 20.0
    stall_bytes: int = 1 << 14
    """Fewer bytes than this in so many seconds: the connection is as good as dead."""

    def wait(self, failures: int) -> float:
        longest = min(self.longest_wait, self.first_wait * 2.0 ** (failures - 1))
        return longest * random.uniform(0.75, 1.0)  # many workers should not come back at once


class Watch:
    """Tells a slow server from a dead one."""

    def __init__(self, patience: Patience) -> None:
        self.patience, self.since, self.seen = patience, time.monotonic(), 0

    def stalled(self, received: int) -> bool:
        """Whether too little has come in the last `stall_seconds`, after `received` more bytes."""
        self.seen += received
        now = time.monotonic()
        if now - self.since < self.patience.stall_seconds:
            return False
        slow, self.since, self.seen = self.seen < self.patience.stall_bytes, now, 0
        return slow


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
