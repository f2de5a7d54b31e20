"""Ctrl-C ends the program, in one line and with exit code 130, also while libraries are being imported."""

from __future__ import annotations

import os
import signal
from types import FrameType

CODE = 130
MESSAGE = "repcap: error: interrupted\n"
_SHOW_CURSOR = "\x1b[?25h"


def install() -> None:
    """Handle SIGINT from now on. To be called in the main thread."""
    signal.signal(signal.SIGINT, _interrupt)


def _interrupt(_signal: int, frame: FrameType | None) -> None:
    # torch and numpy swallow a KeyboardInterrupt that meets them while they are imported, and the run goes on. Nothing
    # is in hand then: leave at once. (Progress bars hide the cursor.)
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            os.write(2, ((_SHOW_CURSOR if os.isatty(2) else "") + MESSAGE).encode())
            os._exit(CODE)
        frame = frame.f_back
    raise KeyboardInterrupt
