"""Files that are whole or absent: written to a temporary name in the same directory, then renamed."""

from __future__ import annotations

import errno
import json
import os
import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from repcap.errors import InputError

if sys.platform != "win32":
    import fcntl

_FULL = (errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC))


@contextmanager
def atomic_path(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary path beside `path`; rename it onto `path` when the block ends without an error.

    The reader of `path` sees the old file or the whole new one, never a part. On an error the temporary file is
    removed and `path` is untouched.

    Raises
    ------
    InputError
        if the directory of `path` does not exist or cannot be written.
    """
    target = Path(path)
    temporary = target.parent / f".{target.name}.{secrets.token_hex(4)}{target.suffix}"
    try:  # from the first, so that a signal leaves no file behind wherever it comes
        try:
            # Not of tempfile, which makes private files.
            os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise InputError(f"cannot write {target}: {reason}; give a path in a directory that exists") from error
        yield temporary
        with temporary.open("rb") as written:
            os.fsync(written.fileno())
        temporary.replace(target)
    except BaseException as error:
        if isinstance(error, OSError) and error.errno in _FULL and error.filename is None:
            error.filename = str(target)  # the system names no file where a write fails
        with suppress(OSError):  # of a directory that may not be written, for one
            temporary.unlink()
        raise


@contextmanager
def held_directory(path: str | os.PathLike[str]) -> Iterator[None]:
    """Have the directory of `path` to oneself, among processes that ask for it with this function; waits for it.

    For what reads a file and writes it anew. The lock goes with the process, however that ends, and leaves no file. On
    Windows, and where a file system knows no locks, nothing is held.
    """
    if sys.platform == "win32":
        yield
        return
    handle = os.open(Path(path).parent, os.O_RDONLY)
    try:
        with suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def check_directory(path: str | os.PathLike[str]) -> None:
    """Refuse a path that `atomic_path` could not write, before hours of work.

    Raises
    ------
    InputError
        if the directory of `path` does not exist or cannot be written.
    """
    with suppress(_Untouched), atomic_path(path):
        raise _Untouched


class _Untouched(Exception):
    """Ends an `atomic_path` without a file."""


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write `text` to `path` atomically, as UTF-8."""
    with atomic_path(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_json(path: str | os.PathLike[str], value: Any) -> None:
    """Write `value` to `path` atomically, as indented JSON."""
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False) + "\n")
