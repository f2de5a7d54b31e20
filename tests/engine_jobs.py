"""Worker functions for the tests of the engine: they must live in a module that other processes can import."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path


def log(path, line):
    """Append one line; O_APPEND keeps the lines of several processes apart."""
    with Path(path).open("a") as file:
        file.write(f"{line}\n")


def square(number):
    return number * number


def order(payload):
    path, number = payload
    log(path, number)
    return number


def divide(number):
    return 1 / number


def refuse(message):
    from repcap.errors import SourceError

    raise SourceError(message)


def leave(code):
    sys.exit(code)


def die(payload):
    """Kill the own process in the first `deaths` tries, then answer."""
    path, deaths = payload
    log(path, os.getpid())
    if len(Path(path).read_text().split()) <= deaths:
        os.kill(os.getpid(), signal.SIGKILL)
    return "alive"


def hang(payload):
    """Sleep for ever in the first `hangs` tries, then answer."""
    path, hangs = payload
    log(path, os.getpid())
    if len(Path(path).read_text().split()) <= hangs:
        time.sleep(3600)
    return "awake"


def nap(seconds):
    time.sleep(seconds)
    return os.getpid()


def chatter(number):
    """A library that prints on standard output, below Python too."""
    print("noise", flush=True)  # noqa: T201
    os.write(1, b"more noise\n")
    return number


def big(size):
    return b"x" * size


def unpicklable(_):
    return lambda: None


def environment(names):
    time.sleep(0.2)
    return {name: os.environ.get(name) for name in names}


def doomed_log(payload):
    """Log the start, answer with the node that did it; one node of the cluster is going to die.

    The others wait for that node's first answer, later ones it never gives: however slowly its processes start, it
    has answered once and has work in hand when it is killed.
    """
    path, name, victim, answered = payload
    log(path, name)
    time.sleep(0.1)
    here = _node()
    if here == victim and Path(answered).exists():
        time.sleep(3600)
    end = time.monotonic() + 90
    while here != victim and not Path(answered).exists() and time.monotonic() < end:
        time.sleep(0.05)
    return here


def _node():
    ray = sys.modules.get("ray")
    return ray.get_runtime_context().get_node_id() if ray is not None and ray.is_initialized() else "here"
