"""What the benchmarks share: the shape of what they return, the clock of memory, the parts of a page that they write.

A benchmark has `rows(quick)`, which gives a list of `Measured`, and prints what it does when it is run by itself.
"""

from __future__ import annotations

import dataclasses
import datetime
import os
import platform
import threading
import time
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

MB = 1e6
LOAD = os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")
"""Processes that wanted a processor when this one began: well below the cores, or the figures are worth little."""


@dataclasses.dataclass(frozen=True)
class Measured:
    """One line of docs/performance.md.

    name, size: what was done, to how much. seconds: how long it took; `unit` says where it is something else (MB).
    floor: seconds of the least work that it could be, at the rate of this machine; `floor_is` says which work.
    reference: seconds of the method that it stands in for; `reference_is` says which. capped: that one was stopped
    there. Both are timed in the same run. memory: bytes of peak anonymous memory over what was there before it.
    bound: bytes that the documentation states for it.
    """

    name: str
    size: str
    seconds: float
    floor: float | None = None
    floor_is: str = ""
    reference: float | None = None
    reference_is: str = ""
    capped: bool = False
    memory: float | None = None
    bound: float | None = None
    unit: str = "s"

    @property
    def over_floor(self) -> float | None:
        return self.seconds / self.floor if self.floor else None

    @property
    def times_faster(self) -> float | None:
        """How many times the reference takes longer; at least so many where it was stopped."""
        return self.reference / self.seconds if self.reference else None

    def __str__(self) -> str:
        words = [f"{self.name}, {self.size}: {self.seconds:.3g} {self.unit}"]
        if self.over_floor is not None:
            words.append(f"{self.over_floor:.3g} x {self.floor_is}")
        if self.times_faster is not None:
            words.append(f"{'more than ' * self.capped}{self.times_faster:.3g} times faster than {self.reference_is}")
        if self.memory is not None:
            words.append(f"memory {self.memory / MB:.0f} MB" + (f" of {self.bound / MB:.0f}" if self.bound else ""))
        return "; ".join(words)


class PeakMemory:
    """Peak anonymous memory (RssAnon of Linux) while the block runs, sampled every 5 ms; `used` is above the start."""

    def __enter__(self) -> PeakMemory:
        self.start = self.peak = anonymous_bytes()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._stop.set()
        self._thread.join()
        self.peak = max(self.peak, anonymous_bytes())

    def _watch(self) -> None:
        while not self._stop.wait(0.005):
            self.peak = max(self.peak, anonymous_bytes())

    @property
    def used(self) -> int:
        return self.peak - self.start


def anonymous_bytes() -> int:
    """Anonymous memory of this process; 0 where the system does not say."""
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon")), 0)


def seconds_of(work: Callable[[], object], repeats: int = 1) -> float:
    """Seconds of the fastest of so many calls."""
    found = []
    for _ in range(repeats):
        began = time.perf_counter()
        work()
        found.append(time.perf_counter() - began)
    return min(found)


def machine() -> str:
    """Processor, cores, torch, system, day and load, in one line."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    name = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    threads = os.environ.get("OMP_NUM_THREADS")
    limited = f" (OMP_NUM_THREADS={threads})" if threads else ""
    return (
        f"{name or platform.machine()}, {cores} cores{limited}, torch {metadata.version('torch')}, "
        f"Python {platform.python_version()}, {platform.system()}, {datetime.date.today().isoformat()}, "
        f"load {LOAD:.1f} at the start"
    )


def write_part(page: Path, name: str, text: str) -> None:
    """Put `text` between the marks `<!-- NAME: begin ... -->` and `<!-- NAME: end -->`; the rest is written by hand."""
    from repcap.files import atomic_path

    begin, end = f"<!-- {name}: begin", f"<!-- {name}: end -->"
    whole = page.read_text()
    if whole.count(begin) != 1 or whole.count(end) != 1:
        raise SystemExit(f"{page}: needs the marks `{begin} -->` and `{end}` once each")
    before, rest = whole.split(begin)
    mark, after = rest.split("-->", 1)[0], rest.split(end)[1]
    with atomic_path(page) as temporary:
        temporary.write_text(f"{before}{begin}{mark}-->\n\n{text.strip()}\n\n{end}{after}")
