"""The worker process: reads units from its standard input, writes answers to its standard output.

A frame is an 8-byte little-endian length and so many bytes of pickle. Both ends are our own processes, connected by
anonymous pipes; nothing else can write there.

To the worker: (worker function, payload). From it: `("ready",)` once, then `("ok", value)` or
`("error", class, reason)` for each unit.
"""

from __future__ import annotations

import os
import pickle
import queue
import signal
import struct
import sys
import threading
from typing import IO, Any

from repcap.jobs.units import fault_of

_LENGTH = struct.Struct("<Q")


def write_frame(stream: IO[bytes], data: bytes) -> None:
    """Write one frame and flush it."""
    stream.write(_LENGTH.pack(len(data)))
    stream.write(data)
    stream.flush()


def read_frame(stream: IO[bytes]) -> bytes | None:
    """The next frame, or None at the end of the stream, also where it ends within a frame."""
    try:
        head = stream.read(_LENGTH.size)
        if len(head) < _LENGTH.size:
            return None
        (length,) = _LENGTH.unpack(head)
        data = stream.read(length)
    except (OSError, ValueError):
        return None
    return data if len(data) == length else None


def _receive(inbox: IO[bytes], frames: queue.SimpleQueue[bytes]) -> None:
    # The input ends when the driver is gone, however it went: then nobody wants the answer, so stop in mid-unit.
    while (frame := read_frame(inbox)) is not None:
        frames.put(frame)
    os._exit(0)


def answer(frame: bytes) -> bytes:
    """Do the unit in `frame`; the pickled answer. Never raises: whatever goes wrong is the unit's failure."""
    try:
        function, payload = pickle.loads(frame)
        return pickle.dumps(("ok", function(payload)))
    except BaseException as error:
        fault = fault_of(error)
        return pickle.dumps(("error", fault.error, fault.reason))


def main() -> None:
    """Work until the driver closes our input."""
    # Ctrl-C reaches the whole process group; the driver alone decides what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    inbox, outbox = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    # What libraries print must not get between the frames.
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    frames: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_receive, args=(inbox, frames), daemon=True).start()
    reply: Any = pickle.dumps(("ready",))
    while True:
        try:
            write_frame(outbox, reply)
        except OSError:
            os._exit(0)
        reply = answer(frames.get())
