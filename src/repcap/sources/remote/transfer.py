"""Spans of one remote file, fetched by several workers at once, progress counted in bytes."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait

from repcap.errors import RemoteError
from repcap.matrix import ProgressFn
from repcap.sources.remote.cache import Commit, Write
from repcap.sources.remote.journal import Span
from repcap.sources.remote.ranges import RangeFile, RangesRefused


@dataclasses.dataclass(frozen=True)
class Plan:
    """How spans are cut into requests."""

    workers: int = 8
    chunk_least: int = 1 << 24
    chunk_most: int = 1 << 26
    """Bytes of one request: 16 to 64 MiB, so that a large tensor needs few and a small one still uses all workers."""
    commit: int = 1 << 22
    """What a worker has written is put on record every so many bytes."""

    def chunks(self, spans: Sequence[Span]) -> list[Span]:
        """The spans, cut to the size of one request."""
        total = sum(stop - start for start, stop in spans)
        size = min(self.chunk_most, max(self.chunk_least, -(-total // (4 * self.workers))))
        return [(at, min(at + size, stop)) for start, stop in spans for at in range(start, stop, size)]


PLAN = Plan()


class Transfer:
    """Fetches spans of a tensor that begins at byte `base` of a remote file.

    An instance is a `cache.Fetch`. Cost: one request a chunk, `plan.workers` at a time. Memory: one network buffer
    (64 kB) a worker.
    """

    def __init__(
        self, remote: RangeFile, base: int, on_progress: ProgressFn | None = None, plan: Plan | None = None
    ) -> None:
        self.remote, self.base, self.on_progress = remote, base, on_progress
        self.plan = plan
        self._lock = threading.Lock()
        self._done = 0

    def __call__(self, spans: list[Span], write: Write, commit: Commit) -> None:
        """Bring `spans` (relative to the tensor); what was committed is right even where this raises.

        Raises
        ------
        RemoteError
            if the server refuses, lies or fails too often.
        """
        plan = self.plan or PLAN
        total = sum(stop - start for start, stop in spans)
        cancel, self._done = threading.Event(), 0
        with ThreadPoolExecutor(max_workers=plan.workers, thread_name_prefix="repcap-range") as pool:
            pending = {pool.submit(self._chunk, chunk, write, commit, cancel, plan) for chunk in plan.chunks(spans)}
            try:
                self._follow(pending, total)
            except BaseException as error:
                cancel.set()
                for future in pending:
                    future.cancel()
                if isinstance(error, RemoteError) and not isinstance(error, RangesRefused) and self._done:
                    kept = f"{self._done / 1e6:,.1f} of {total / 1e6:,.1f} MB are kept: run again to go on from there"
                    raise RemoteError(f"{error}; {kept}") from error
                raise

    def _follow(self, pending: set[Future[None]], total: int) -> None:
        while pending:
            done, pending = wait(pending, timeout=0.1, return_when=FIRST_EXCEPTION)
            if self.on_progress is not None:
                self.on_progress(self._done, total)
            for future in done:
                future.result()

    def _chunk(self, chunk: Span, write: Write, commit: Commit, cancel: threading.Event, plan: Plan) -> None:
        start, stop = chunk
        mark = at = start

        def keep(position: int, piece: bytes) -> None:
            nonlocal mark, at
            write(position - self.base, piece)
            at = position - self.base + len(piece)
            with self._lock:
                self._done += len(piece)
            if at - mark >= plan.commit:
                commit(mark, at)
                mark = at

        try:
            self.remote.copy(self.base + start, self.base + stop, keep, cancel)
        finally:
            if at > mark:
                commit(mark, at)
