"""Runs the benchmarks, each in a process of its own, and writes their one table into docs/performance.md.

    python benchmarks/run.py                      all; at most 15 minutes on two cores
    python benchmarks/run.py --quick              all in little; about two minutes
    python benchmarks/run.py --only pairs,remote  prints their table; writes it only where --out says

One that fails or takes too long has a line that says so, the others go on, and the exit code is 1.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import importlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from measured import MB, Measured, machine, write_part

HERE = Path(__file__).resolve().parent
PAGE = HERE.parent / "docs" / "performance.md"
NAMES = ("moments", "model", "coverage", "pairs", "packing", "dequantising", "remote", "callback", "startup")
LIMIT = 300.0
"""Seconds that one benchmark may take."""
HEAD = (
    "| file | what | size | seconds | times the floor | floor | times faster | than | memory, MB | stated bound, MB "
    "| process, MB |"
)


@dataclasses.dataclass(frozen=True)
class Ran:
    """What came of one benchmark: its lines, or why there are none; peak resident bytes of its processes."""

    name: str
    rows: tuple[Measured, ...]
    why: str
    peak: int
    seconds: float


def child(name: str, quick: bool, answer: str) -> None:
    """In the process of one benchmark: its lines as JSON into a file."""
    found = importlib.import_module(name).rows(quick)
    Path(answer).write_text(json.dumps([dataclasses.asdict(row) for row in found]))


def run(name: str, quick: bool, limit: float) -> Ran:
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as place:
        answer, log = Path(place) / "rows.json", Path(place) / "stderr"
        command = [sys.executable, __file__, "--child", name, str(answer), *(["--quick"] if quick else [])]
        with log.open("wb") as stderr:
            process = subprocess.Popen(command, stderr=stderr, stdout=subprocess.DEVNULL, start_new_session=True)
            timer = threading.Timer(limit, end, (process.pid,))
            timer.start()
            try:
                # wait4, not wait: it says how much memory this process and those that it started took.
                _, status, usage = os.wait4(process.pid, 0)
                process.returncode = os.waitstatus_to_exitcode(status)
            finally:
                timer.cancel()
                end(process.pid)  # after Ctrl-C, and what it may have left
        seconds = time.monotonic() - began
        rows, why = (), ""
        if process.returncode == 0:
            rows = tuple(Measured(**row) for row in json.loads(answer.read_text()))
        elif seconds >= limit:
            why = f"took more than {limit:g} s"
        else:
            lines = log.read_text(errors="replace").strip().splitlines()
            why = lines[-1] if lines else f"exit code {process.returncode}"
    unit = 1 if sys.platform == "darwin" else 1024
    return Ran(name, rows, why, usage.ru_maxrss * unit, seconds)


def end(group: int) -> None:
    """Ends a benchmark and what it started: it has a session of its own."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)


def number(value: float | None, digits: int = 3) -> str:
    """Three digits, never in powers of ten."""
    if value is None:
        return ""
    return f"{value:.0f}" if abs(value) >= 10 ** (digits - 1) else f"{value:.{digits}g}"


def line(ran: Ran, row: Measured) -> str:
    more = "> " if row.capped else ""
    cells: list[Any] = [
        f"`{ran.name}`", row.name, row.size, number(row.seconds) + (f" {row.unit}" if row.unit != "s" else ""),
        number(row.over_floor), row.floor_is, more + number(row.times_faster) if row.reference else "",
        row.reference_is, *(number(None if bytes_ is None else bytes_ / MB) for bytes_ in (row.memory, row.bound)),
        number(ran.peak / MB),
    ]  # fmt: skip
    return "| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |"


def table(found: list[Ran], quick: bool) -> str:
    """The machine, and a line a measurement."""
    sizes = " Small sizes (`--quick`): not the figures to quote." if quick else ""
    lines = [f"{machine()}.{sizes}", "", HEAD, "|---|---|---|" + "---:|---:|---|---:|---|---:|---:|---:|"]
    for ran in found:
        why = ran.why.replace("|", "\\|")
        lines += [line(ran, row) for row in ran.rows] or [f"| `{ran.name}` | **failed**: {why} |" + " |" * 9]
    lines += ["", f"{sum(ran.seconds for ran in found):.0f} s in all."]
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small sizes")
    parser.add_argument("--only", help=f"of {','.join(NAMES)}")
    parser.add_argument("--out", type=Path, help="the page whose table is written (default: docs/performance.md)")
    parser.add_argument("--limit", type=float, default=LIMIT, help="seconds that one benchmark may take")
    parser.add_argument("--child", nargs=2, metavar=("NAME", "FILE"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(options.child[0], options.quick, options.child[1])
        return 0
    names = options.only.split(",") if options.only else NAMES
    if unknown := [name for name in names if name not in NAMES]:
        parser.error(f"no benchmark {', '.join(unknown)}; there are {', '.join(NAMES)}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that no benchmark is left running
    found = []
    for name in names:
        print(f"{name} ...", file=sys.stderr, flush=True)
        found.append(run(name, options.quick, options.limit))
        print(f"{name} {found[-1].seconds:.0f} s {found[-1].why}", file=sys.stderr, flush=True)
    text = table(found, options.quick)
    print(text)
    page = options.out or (None if options.only else PAGE)
    if page:
        write_part(page, "performance", text)
    return 1 if any(ran.why for ran in found) else 0


if __name__ == "__main__":
    sys.exit(main())
