"""Damaged files, for some seconds a parser: each is read, or refused with one line of `repcap.errors`.

    REPCAP_FUZZ_SECONDS=300 REPCAP_FUZZ_SEED=1 python -m pytest tests/attacks/fuzz -n 0 -s

tries for longer, with other files, and says how many. A file that ends in anything else is kept, and named.
"""

from __future__ import annotations

import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from parsers import PARSERS, Parser

from repcap.errors import RepcapError
from repcap.text import printable

SECONDS = float(os.environ.get("REPCAP_FUZZ_SECONDS", "20"))
SEED = int(os.environ.get("REPCAP_FUZZ_SEED", "0"))
PATIENCE = 20
"""Seconds of the processor that one file may take."""

pytestmark = [pytest.mark.timeout(int(SECONDS) + 300), pytest.mark.filterwarnings("ignore")]


@pytest.fixture
def quick() -> None:
    """In place of that of the folder above: a run takes as long as it is asked to."""


class TooSlow(Exception):
    """A file took more than PATIENCE seconds."""


def _too_slow(*_: object) -> None:
    raise TooSlow


def attempt(parser: Parser, folder: Path, seed: int) -> str:
    """`read` or `refused`; anything else is raised."""
    files = parser.make(random.Random(seed))
    for name, body in files.items():
        (folder / name).write_bytes(body)
    signal.setitimer(signal.ITIMER_VIRTUAL, PATIENCE)
    try:
        parser.read(folder)
    except RepcapError as error:
        line = printable(str(error))  # as the command line shows it
        assert line.strip(), "an error without a word"
        assert "\n" not in line, f"more than one line: {line!r}"
        return "refused"
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    return "read"


def run(name: str, seconds: float, first: int, kept: Path) -> tuple[int, int]:
    """(files, of them refused) of a parser; a finding is an AssertionError that says where its file is."""
    count = refused = 0
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    signal.signal(signal.SIGVTALRM, _too_slow)
    start = time.monotonic()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        while time.monotonic() - start < seconds or count < 20:
            seed = (first << 32) + count
            folder = Path(tempfile.mkdtemp(prefix=f"repcap-fuzz-{name}-"))
            try:
                refused += attempt(PARSERS[name], folder, seed) == "refused"
            except BaseException as error:
                place = kept / f"{name}-{seed}"
                shutil.copytree(folder, place, dirs_exist_ok=True)
                lines = "".join(traceback.format_exception(error)[-6:])
                raise AssertionError(f"{name}, seed {seed}, files in {place}:\n{lines}") from error
            finally:
                shutil.rmtree(folder, ignore_errors=True)
            count += 1
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 2 << 20, f"{name}: {grown} kB of memory"
    return count, refused


@pytest.mark.skipif(not hasattr(signal, "SIGVTALRM"), reason="needs timers of POSIX")
@pytest.mark.parametrize("name", list(PARSERS))
def test_damaged_files(name: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    count, refused = run(name, SECONDS, SEED, tmp_path_factory.getbasetemp().parent / "repcap-fuzz")
    print(f"{name}: {count} files, {refused} refused")  # noqa: T201 - the report of a long run
    assert count >= 20
