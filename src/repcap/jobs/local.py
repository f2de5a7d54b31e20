"""Worker processes on this machine.

Workers are fresh interpreters, not forks (torch and CUDA do not survive a fork), and do not import the caller's
`__main__` again, so that a script or a notebook needs no guard. They are kept warm: torch is imported once each.
"""

from __future__ import annotations

import json
import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from repcap.errors import InputError, RepcapError
from repcap.jobs.units import LOST, Fault, Limits, OnFailure, OnResult, Report, Tally, Unit, WorkerFn
from repcap.jobs.worker import read_frame, write_frame
from repcap.numerics import cpu_count

_BOOT = "import json, sys; sys.path[:] = json.loads(sys.argv.pop()); from repcap.jobs.worker import main; main()"
_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")
_FAILED_STARTS = 3
"""So many workers in a row that end before they are ready mean that none ever will be."""


@contextmanager
def _interrupt_blocked() -> Iterator[None]:
    # A child is born with our signal mask: blocked, Ctrl-C cannot hit it before it has learned to ignore it.
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class _Child:
    """One worker process, and the thread that listens to it and puts (child, frame or None) on `events`."""

    def __init__(self, slot: int, environment: dict[str, str], events: queue.SimpleQueue[Any]) -> None:
        self.slot = slot
        self.ready = False
        self.unit: Unit | None = None
        self.deadline: float | None = None
        self.late = False
        paths = [path or os.getcwd() for path in sys.path]  # noqa: PTH109 - '' means the directory at this moment
        with _interrupt_blocked():
            self.process = subprocess.Popen(
                [sys.executable, "-c", _BOOT, json.dumps(paths)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=environment,
            )
        self._listener = threading.Thread(target=self._listen, args=(events,), daemon=True)
        self._listener.start()

    def _listen(self, events: queue.SimpleQueue[Any]) -> None:
        assert self.process.stdout is not None
        while (frame := read_frame(self.process.stdout)) is not None:
            events.put((self, frame))
        events.put((self, None))

    def give(self, unit: Unit, data: bytes, timeout: float | None) -> None:
        """Send a unit. A worker that is gone is noticed by its listener, not here."""
        self.unit = unit
        self.deadline = None if timeout is None else time.monotonic() + timeout
        assert self.process.stdin is not None
        try:
            write_frame(self.process.stdin, data)
        except OSError:
            self.kill()

    def kill(self) -> None:
        self.process.kill()

    def end(self) -> None:
        """Kill the process and wait until it, its pipes and its thread are gone."""
        self.process.kill()
        self.process.wait()
        self._listener.join()
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                with suppress(OSError):  # what was still buffered has no reader any more
                    stream.close()


def how_it_ended(code: int) -> str:
    """An exit status in words."""
    if code >= 0:
        return f"the worker ended with exit status {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    hint = ": perhaps out of memory" if name == "SIGKILL" else ""
    return f"the worker was killed by {name}{hint}"


def visible_gpus() -> list[str]:
    """Names of the GPUs that this process may use, as CUDA_VISIBLE_DEVICES writes them."""
    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    if named is not None:
        return [name.strip() for name in named.split(",") if name.strip() and name.strip() != "-1"]
    import torch

    return [str(index) for index in range(torch.cuda.device_count())]


def share_gpus(gpus: list[str], workers: int, each: float) -> list[str]:
    """CUDA_VISIBLE_DEVICES of each worker, for as many workers (at most `workers`) as the GPUs suffice for.

    >>> share_gpus(["0", "1"], 8, 0.5), share_gpus(["0", "1", "2", "3"], 8, 2)
    (['0', '0', '1', '1'], ['0,1', '2,3'])
    """
    if each >= 1:
        width = int(each)
        groups = [",".join(gpus[first : first + width]) for first in range(0, len(gpus) - width + 1, width)]
    else:
        groups = [gpu for gpu in gpus for _ in range(int(1 / each + 1e-9))]
    if not groups:
        raise InputError(f"{each:g} GPUs for each unit were asked for, this machine offers {len(gpus)}")
    return groups[:workers]


def _environments(workers: int, gpus: float) -> list[dict[str, str]]:
    """The environment of each worker: its share of the processors, and its GPUs."""
    devices = share_gpus(visible_gpus(), workers, gpus) if gpus > 0 else []
    count = len(devices) or workers
    # One that was set counts for both: MKL goes by its own first, and its threads would wait for each other.
    share = os.environ.get("OMP_NUM_THREADS", str(max(1, cpu_count() // count)))
    base = {**dict.fromkeys(_THREADS, share), **os.environ}
    return [{**base, "CUDA_VISIBLE_DEVICES": devices[slot]} if devices else base for slot in range(count)]


class _Pool:
    """The state of one local run."""

    def __init__(
        self, units: list[Unit], worker: WorkerFn, workers: int, limits: Limits, sinks: tuple[OnResult, OnFailure]
    ) -> None:
        self.pending = deque(units)
        self.worker = worker
        self.limits = limits
        self.on_result, self.on_failure = sinks
        self.environments = _environments(workers, limits.gpus)[: len(units)]
        self.free = list(range(len(self.environments)))
        self.children: list[_Child] = []
        self.events: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.attempts: Counter[str] = Counter()
        self.failed_starts = 0
        self.tally = Tally()

    def loop(self) -> Report:
        try:
            while self.pending or any(child.unit for child in self.children):
                self._hand_out()
                self._handle_one()
        finally:
            for child in self.children:
                child.kill()
            for child in self.children:
                child.end()
        return self.tally.report()

    def _hand_out(self) -> None:
        while self.pending:
            idle = next((child for child in self.children if child.ready and child.unit is None), None)
            if idle is None:
                break
            self._give(idle, self.pending.popleft())
        starting = sum(not child.ready for child in self.children)
        while self.free and starting < len(self.pending):
            slot = self.free.pop(0)
            self.children.append(_Child(slot, self.environments[slot], self.events))
            starting += 1

    def _give(self, child: _Child, unit: Unit) -> None:
        try:
            data = pickle.dumps((self.worker, unit.payload))
        except Exception as error:
            self._fail(unit, Fault(type(error).__name__, f"the unit cannot be sent to a worker: {error}"))
            return
        self.attempts[unit.key] += 1
        child.give(unit, data, self.limits.timeout)

    def _handle_one(self) -> None:
        if not self.children:
            return
        deadlines = [child.deadline for child in self.children if child.deadline is not None and not child.late]
        wait = max(0.0, min(deadlines) - time.monotonic()) if deadlines else None
        try:
            child, frame = self.events.get(timeout=wait)
        except queue.Empty:
            for child in self.children:
                if child.deadline is not None and child.deadline <= time.monotonic():
                    child.late = True
                    child.kill()
            return
        if frame is None:
            self._lost(child)
        else:
            self._answered(child, frame)

    def _answered(self, child: _Child, frame: bytes) -> None:
        try:
            message = pickle.loads(frame)
        except Exception as error:
            message = ("error", type(error).__name__, f"the result cannot be read back: {error}")
        if message[0] == "ready":
            child.ready = True
            self.failed_starts = 0
            return
        unit, child.unit, child.deadline = child.unit, None, None
        assert unit is not None
        if message[0] == "ok":
            self.tally.done += 1
            self.on_result(unit, message[1])
        else:
            self._fail(unit, Fault(message[1], message[2]))

    def _lost(self, child: _Child) -> None:
        self.children.remove(child)
        child.end()
        self.free.append(child.slot)
        code = child.process.returncode
        if not child.ready:
            self.failed_starts += 1
            if self.failed_starts >= _FAILED_STARTS:
                raise RepcapError(f"worker processes do not start: {how_it_ended(code)} before it was ready")
        unit = child.unit
        if unit is None:
            return
        self.tally.lost += 1
        why = f"no answer within {self.limits.timeout:g} s" if child.late else how_it_ended(code)
        if self.attempts[unit.key] <= self.limits.retries:
            # Last in line: a unit that kills its workers must not keep the others waiting.
            self.pending.append(unit)
        else:
            self._fail(unit, Fault(LOST, f"{why} ({self.attempts[unit.key]} tries)"))

    def _fail(self, unit: Unit, fault: Fault) -> None:
        self.tally.failed += 1
        self.on_failure(unit, fault)


def run_local(
    units: list[Unit], worker: WorkerFn, workers: int, limits: Limits, on_result: OnResult, on_failure: OnFailure
) -> Report:
    """See `repcap.jobs.engine.run`. At most `workers` processes, each with its share of the processors and its GPUs."""
    return _Pool(units, worker, workers, limits, (on_result, on_failure)).loop()
