"""Units on a Ray cluster: one task each, as many in flight as the cluster has room for, retried by us.

Ray's own retries are off: we must know of every loss to count it, and hand on each result exactly once.
"""

from __future__ import annotations

import logging
import os
import pickle
import socket
import sys
import time
from collections import Counter, deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from repcap._version import __version__
from repcap.errors import InputError, MissingExtraError, RepcapError
from repcap.jobs.units import LOST, Fault, Limits, OnFailure, OnResult, Report, Tally, Unit, WorkerFn, fault_of

_CONNECT_SECONDS = 10.0
_POLL_SECONDS = 1.0
_RESOURCES_SECONDS = 1.0
"""How often the size of the cluster is looked up: nodes come and go."""


def call(blob: bytes, paths: list[str], version: str) -> tuple[Any, ...]:
    """In the Ray worker: ("ok", value) or ("error", class, reason). Only a lost worker shows up as Ray's own error.

    blob: pickled (worker, payload). paths: the driver's import paths, which Ray does not pass on.
    """
    try:
        if version != __version__:
            raise RepcapError(
                f"this node has repcap {__version__}, the driver {version}: install one version everywhere"
            )
        sys.path.extend(path for path in paths if path not in sys.path)
        worker, payload = pickle.loads(blob)
        return ("ok", worker(payload))
    except Exception as error:
        fault = fault_of(error)
        return ("error", fault.error, fault.reason)


def _check_reachable(address: str) -> None:
    # Ray itself tries for minutes, several times over, before it gives up on a head node that is not there.
    host, _, port = address.rpartition("://")[2].rpartition(":")
    if not port.isdigit():  # `auto`, `local`: not a place
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_CONNECT_SECONDS).close()
    except (OSError, OverflowError) as error:
        raise RepcapError(f"no Ray cluster at {address}: {error}; start one with: ray start --head") from error


@contextmanager
def _connected(address: str | None) -> Iterator[Any]:
    """The ray module, connected; disconnected at the end unless it was connected before."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
    except ImportError as error:
        raise MissingExtraError("--engine ray", "ray") from error
    if ray.is_initialized():
        yield ray
        return
    if address:
        _check_reachable(address)
    try:
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
    except (ConnectionError, RuntimeError, ValueError, TimeoutError, ray.exceptions.RayError) as error:
        raise RepcapError(f"no Ray cluster at {address or 'the default address'}: {_first_line(error)}") from error
    try:
        yield ray
    finally:
        ray.shutdown()


class _Cluster:
    """The state of one run on a cluster."""

    def __init__(self, ray: Any, units: list[Unit], worker: WorkerFn, limits: Limits) -> None:
        self.ray = ray
        self.pending = deque(units)
        self.worker = worker
        self.limits = limits
        self.attempts: Counter[str] = Counter()
        self.flying: dict[Any, tuple[Unit, float]] = {}
        self.late: set[Any] = set()
        self.tally = Tally()
        self.paths = [path or str(Path.cwd()) for path in sys.path]
        self._room, self._looked = 1, float("-inf")
        # A node for each where there are few. Else every processor is busy anyhow, and SPREAD may go on choosing a node
        # that has died until Ray has noticed (10 s), with all that is in flight waiting; and it costs more a task.
        strategy = "SPREAD" if len(units) < self.room() else "DEFAULT"
        options = {"num_cpus": 1, "num_gpus": limits.gpus, "max_retries": 0, "scheduling_strategy": strategy}
        self.task = ray.remote(**options)(call)
        gpus = ray.cluster_resources().get("GPU", 0)
        if limits.gpus > gpus:
            raise InputError(f"{limits.gpus:g} GPUs for each unit were asked for, the Ray cluster has {gpus:g}")

    def room(self) -> int:
        """Units that the cluster can run at the same time, now."""
        if time.monotonic() - self._looked > _RESOURCES_SECONDS:
            resources = self.ray.cluster_resources()
            self._room = int(resources.get("CPU", 1))
            if self.limits.gpus:
                self._room = min(self._room, int(resources.get("GPU", 0) / self.limits.gpus + 1e-9))
            self._room, self._looked = max(1, self._room), time.monotonic()
        return self._room

    def submit(self) -> None:
        while self.pending and len(self.flying) < self.room():
            unit = self.pending.popleft()
            self.attempts[unit.key] += 1
            blob = pickle.dumps((self.worker, unit.payload))
            self.flying[self.task.remote(blob, self.paths, __version__)] = (unit, time.monotonic())

    def landed(self) -> Iterator[tuple[Unit, tuple[Any, ...] | None, str]]:
        """Units that ended since the last call: (unit, answer, "") or, where the worker was lost, (unit, None, why)."""
        ready, _ = self.ray.wait(list(self.flying), num_returns=1, timeout=_POLL_SECONDS)
        for ref in ready:
            unit, _ = self.flying.pop(ref)
            try:
                yield unit, self.ray.get(ref), ""
            except self.ray.exceptions.RayTaskError as error:
                # Not from the worker function (see call): the task could not be set up, or its value not pickled.
                yield unit, ("error", type(error).__name__, _first_line(error.cause or error)), ""
            except self.ray.exceptions.RayError as error:
                late = ref in self.late
                yield unit, None, f"no answer within {self.limits.timeout:g} s" if late else _first_line(error)
        self._cancel_late()

    def _cancel_late(self) -> None:
        if self.limits.timeout is None:
            return
        for ref, (_, since) in self.flying.items():
            if ref not in self.late and time.monotonic() - since > self.limits.timeout:
                self.late.add(ref)
                self.ray.cancel(ref, force=True)

    def cancel(self) -> None:
        for ref in self.flying:
            self.ray.cancel(ref, force=True)


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0] if lines else ''}"


def _fly(cluster: _Cluster, on_result: OnResult, on_failure: OnFailure) -> Report:
    tally = cluster.tally
    while cluster.pending or cluster.flying:
        cluster.submit()
        for unit, reply, why in cluster.landed():
            tries = cluster.attempts[unit.key]
            if reply is None:
                tally.lost += 1
                if tries <= cluster.limits.retries:
                    cluster.pending.append(unit)
                    continue
                reply = ("error", LOST, f"{why} ({tries} tries)")
            if reply[0] == "ok":
                tally.done += 1
                on_result(unit, reply[1])
            else:
                tally.failed += 1
                on_failure(unit, Fault(reply[1], " ".join(reply[2].split())))
    return tally.report()


def run_ray(
    units: list[Unit],
    worker: WorkerFn,
    address: str | None,
    limits: Limits,
    on_result: OnResult,
    on_failure: OnFailure,
) -> Report:
    """See `repcap.jobs.engine.run`. A unit takes one CPU and `limits.gpus` GPUs of the cluster.

    Every node needs repcap, the same version, and the same paths where units read local files.
    """
    with _connected(address) as ray:
        cluster = _Cluster(ray, units, worker, limits)
        try:
            return _fly(cluster, on_result, on_failure)
        except BaseException:
            cluster.cancel()
            raise
