"""Ctrl-C, SIGTERM and a closed terminal end the program: one line, exit code 130, 143 or 129, nothing left lying about.

Each is a KeyboardInterrupt: what cleans up after Ctrl-C, and what keeps the best so far, does so after the others too.
"""

from __future__ import annotations

import os
import signal
from types import FrameType

CODE = 130
"""What typer makes of a KeyboardInterrupt."""
_WORDS = {"SIGINT": "interrupted", "SIGTERM": "terminated", "SIGHUP": "the terminal was closed"}
_SHOW_CURSOR = "\x1b[?25h"
_last = ["SIGINT"]


def install() -> None:
    """Handle the signals from now on. To be called in the main thread."""
    for name in _WORDS:
        number = getattr(signal, name, None)  # Windows has no SIGHUP
        # nohup has SIGHUP ignored, and means it.
        if number is not None and (name != "SIGHUP" or signal.getsignal(number) is not signal.SIG_IGN):
            signal.signal(number, _interrupt)


def leave_alone() -> None:
    """The work is done: from now on a signal kills Python, which cannot handle one while it ends."""
    for name in _WORDS:
        if (number := getattr(signal, name, None)) is not None and signal.getsignal(number) is _interrupt:
            signal.signal(number, signal.SIG_DFL)


def ending() -> tuple[str, int]:
    """(what to say, exit code) of the last signal."""
    return _WORDS[_last[0]], 128 + getattr(signal, _last[0])


def _interrupt(number: int, frame: FrameType | None) -> None:
    _last[0] = signal.Signals(number).name
    # torch and numpy swallow a KeyboardInterrupt that meets them while they are imported, and the run goes on. Nothing
    # is in hand then: leave at once. (Progress bars hide the cursor.)
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            words, code = ending()
            os.write(2, f"{_SHOW_CURSOR if os.isatty(2) else ''}repcap: error: {words}\n".encode())
            os._exit(code)
        frame = frame.f_back
    raise KeyboardInterrupt
