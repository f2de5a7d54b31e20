"""The faults of tools/reliability.py: each is made, the program meets it, and what it leaves is looked at."""

from __future__ import annotations

import contextlib
import os
import random
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from reliability_programs import Program, Rows, checkpoint_steps, make_inputs, programs, store_table, vector_coherence

PATIENCE = 180.0
"""Seconds until a run that does not end is a fault of its own."""
ALIVE = "a process of its session is still there"
# Signals are handled before torch is there; a search saves its state ten times a second instead of every 30 s.
_BOOT = """
import sys
from repcap.console import interrupt
interrupt.install()
if "pack" in sys.argv[1:2]:
    from repcap.packing.search.resume import Checkpoint
    Checkpoint.__init__.__defaults__ = (0.1,)
from repcap.__main__ import main
main()
"""
# Every look at the clock, in the program and its workers, is years off, now into the past, now into the future.
_CLOCK = """
import datetime, random, time
_time, _shift = time.time, lambda: random.choice((-1, 1)) * random.uniform(0, 10) * 365.25 * 86400
class Shifted(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return cls.fromtimestamp(_time() + _shift(), tz)
datetime.datetime, time.time = Shifted, lambda: _time() + _shift()
"""


@dataclass
class Line:
    """One line of the table: a fault and a program. stake: results that were on the disk when the fault came."""

    fault: str
    how: str
    program: str
    tries: int = 0
    stake: int = 0
    lost: int = 0
    says: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Ended:
    code: int
    error: str
    seen: int | set[str]


class Bench:
    """A folder with inputs, and for each program a clean run to compare with."""

    def __init__(self, folder: Path, rows: int, seed: int, only: str) -> None:
        self.folder, self.random = folder, random.Random(seed)
        self.programs = [one for one in programs(rows) if not only or one.name in only.split("+")]
        make_inputs(folder, rows, rows)
        (folder / "clock").mkdir()
        (folder / "clock" / "sitecustomize.py").write_text(_CLOCK)
        self.clean: dict[str, Rows] = {}
        self.bytes: dict[str, bytes] = {}
        self.seconds: dict[str, float] = {}
        self._number = 0

    def prepare(self, program: Program) -> None:
        """The clean run, once."""
        if program.name in self.clean:
            return
        out, began = self.fresh(program), time.monotonic()
        ended = self.finish(self.start(program.words(out)))
        rows = program.read(out)
        if ended.code or not rows:
            raise SystemExit(f"the clean run of {program.name} failed: {ended.error}")
        self.seconds[program.name] = time.monotonic() - began
        self.clean[program.name], self.bytes[program.name] = rows, out.read_bytes()

    def fresh(self, program: Program) -> Path:
        """A path in a new empty folder."""
        self._number += 1
        place = self.folder / f"try-{self._number}"
        place.mkdir()
        return place / f"out{program.ending}"

    def start(
        self, words: list[str], *, clock: bool = False, limit: int | None = None, readonly: Path | None = None
    ) -> Any:
        """The program as a process in a session of its own."""
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "200"}
        if clock:
            environment["PYTHONPATH"] = os.pathsep.join(
                [str(self.folder / "clock"), *filter(None, [environment.get("PYTHONPATH")])]
            )
        command = [sys.executable, "-c", _BOOT, *words]
        if readonly is not None:
            script = 'mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" && exec "$@"'
            command = ["unshare", "-m", "sh", "-c", script, str(readonly), *command]

        def limited() -> None:
            if limit is not None:
                resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

        return subprocess.Popen(
            command, cwd=self.folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
            start_new_session=True, preexec_fn=limited,
        )  # fmt: skip

    def finish(self, process: Any, seen: int | set[str] = 0) -> Ended:
        try:
            _, error = process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            _, error = process.communicate()
            return Ended(-999, f"did not end within {PATIENCE:.0f} s: {error}", seen)
        if left_alive(process.pid):
            error += f"\n{ALIVE}"
        return Ended(process.returncode, error, seen)


def progress(program: Program, out: Path) -> int | set[str]:
    """What is on the disk while the program works: keys of rows, or steps of a search."""
    with contextlib.suppress(Exception):  # caught in the middle of a write of SQLite's: look again
        if program.name == "pack":
            return checkpoint_steps(out) or 0
        return set(program.read(out))
    return 0 if program.name == "pack" else set()


def amount(seen: int | set[str]) -> int:
    return seen if isinstance(seen, int) else len(seen)


def until_ready(process: Any) -> None:
    """Until the process handles SIGTERM, as /proc says it: before that Python itself is starting."""
    status = Path(f"/proc/{process.pid}/status")
    while process.poll() is None:
        with contextlib.suppress(OSError, StopIteration):
            caught = next(line for line in status.read_text().splitlines() if line.startswith("SigCgt"))
            if int(caught.split()[1], 16) >> (signal.SIGTERM - 1) & 1:
                return
        time.sleep(0.002)


def left_alive(session: int) -> bool:
    """Whether a process of this session is there after 5 s."""
    end = time.monotonic() + 5
    while time.monotonic() < end:
        alive = False
        for stat in Path("/proc").glob("[0-9]*/stat"):
            with contextlib.suppress(OSError, ValueError, IndexError):
                words = stat.read_text().rpartition(")")[2].split()
                alive |= words[3] == str(session) and words[0] != "Z"
        if not alive:
            return False
        time.sleep(0.05)
    return True


# What is looked at -----------------------------------------------------------------------------------------------


def check_end(line: Line, ended: Ended, codes: tuple[int, ...]) -> None:
    """Exit code, and an error of the program's own words."""
    line.tries += 1
    if ended.code not in codes:
        line.problems.append(f"exit code {ended.code}, not {codes}: {ended.error[-300:]}")
    if any(word in ended.error for word in ("Traceback", "Exception ignored", "internal error", "Fatal Python", ALIVE)):
        line.problems.append(f"a traceback, or worse: {ended.error[-2000:]}")
    errors = [one for one in ended.error.splitlines() if one.startswith("repcap: error: ")]
    if ended.code > 0 and len(errors) != 1:
        line.problems.append(f"{len(errors)} lines of error: {ended.error[-300:]}")
    if errors and errors[0] not in line.says:
        line.says.append(errors[0])


def check_kept(line: Line, bench: Bench, program: Program, out: Path, ended: Ended) -> None:
    """What was on the disk before is there, whole, and equal to the clean run's."""
    line.stake += amount(ended.seen)
    try:
        if isinstance(ended.seen, int):
            program.read(out)
            done = progress(program, out)
            assert isinstance(done, int)
            missing = max(0, ended.seen - done) if not done_already(bench, program, out) else 0
        else:
            rows, clean = program.read(out), bench.clean[program.name]
            missing = sum(rows.get(key) != clean.get(key) for key in {*ended.seen, *rows})
    except Exception as error:
        line.problems.append(f"{out.name} is damaged: {error}")
        missing = amount(ended.seen)
    if missing:
        line.lost += missing
        line.problems.append(f"{missing} of {amount(ended.seen)} lost after {ended.code}: {ended.error[-200:]}")


def done_already(bench: Bench, program: Program, out: Path) -> bool:
    with contextlib.suppress(Exception):
        return program.read(out) == bench.clean[program.name]
    return False


def check_left(line: Line, program: Program, out: Path, killed: bool, log: bool = False) -> None:
    """No files but those that are to be there. A killed program may leave files with a dot, which nobody reads.

    log: SQLite's log may be there, which it folds in as it opens the store: the disk is full, or a signal came while a
    library was being imported.
    """
    allowed = {out.name, f"{out.name}.checkpoint" if program.name == "pack" else out.name, "ballast"}
    extra = {one.name for one in out.parent.iterdir()} - allowed
    if killed:
        extra = {name for name in extra if not name.startswith(".")}
    if killed or log:
        extra = {name for name in extra if name[-4:] not in ("-wal", "-shm")}
    if extra:
        line.problems.append(f"left behind: {', '.join(sorted(extra))}")


def check_again(
    line: Line, bench: Bench, program: Program, out: Path, killed: bool = False, near: bool = False, **how: Any
) -> None:
    """The same command once more: it ends well, equals the clean run, and does nothing twice.

    near: the vectors of a search may be others, if they are no worse by more than 0.5 %.
    """
    stored = store_table(out) if out.suffix == ".sqlite" else {}
    again = bench.finish(bench.start(program.words(out, second=True), **how))
    if again.code or "Traceback" in again.error:
        line.problems.append(f"the second run ended with {again.code}: {again.error[-300:]}")
        return
    rows, clean = program.read(out), bench.clean[program.name]
    if near and rows != clean and rows.keys() == clean.keys():  # stopped within a step: the search went another way
        before = bench.folder / "clean"
        before.write_bytes(bench.bytes[program.name])
        if vector_coherence(out) < vector_coherence(before) * 1.005:
            rows = clean
    if wrong := {key for key in {*rows, *clean} if rows.get(key) != clean.get(key)}:
        line.lost += len(wrong)
        line.problems.append(f"{len(wrong)} rows differ from the clean run after the second: {sorted(wrong)[:3]}")
    if stored and any(store_table(out)[key][1] != created for key, (_, created) in stored.items()):
        line.problems.append("the second run did again what was stored")
    check_left(line, program, out, killed)


# Signals ---------------------------------------------------------------------------------------------------------


def stopped(bench: Bench, program: Program, out: Path, number: signal.Signals, **how: Any) -> Ended | None:
    """Start the program and send it a signal at a random moment; None where it had ended before."""
    process = bench.start(program.words(out), **how)
    until_ready(process)
    seen: int | set[str] = 0 if program.name == "pack" else set()
    draw = bench.random.random
    if draw() < 0.7:  # after a random number of results and a moment more
        whole = 300 if program.name == "pack" else len(bench.clean[program.name])
        goal = bench.random.randint(1, max(1, int(0.8 * whole)))
        while amount(seen) < goal and process.poll() is None:
            seen = progress(program, out)
            time.sleep(0.002)
        time.sleep(draw() * 0.03)
    else:
        time.sleep(draw() * bench.seconds[program.name])
    seen = max(progress(program, out), seen, key=amount)
    alone = number == signal.SIGTERM or draw() < 0.5
    with contextlib.suppress(ProcessLookupError):
        (os.kill if alone else os.killpg)(process.pid, number)
    ended = bench.finish(process, seen)
    return None if ended.code == 0 else ended


def signals(bench: Bench, tries: int, *, number: signal.Signals) -> Iterator[Line]:
    codes = (-9,) if number == signal.SIGKILL else (128 + number, -number)  # the second: while Python ends
    for program in bench.programs:
        line = Line(number.name, "at random moments, to the process or its group", program.name)
        bench.prepare(program)
        for _ in range(4 * tries):  # some end before
            if line.tries == tries:
                break
            out = bench.fresh(program)
            ended = stopped(bench, program, out, number)
            if ended is None:
                continue
            killed = number == signal.SIGKILL
            check_end(line, ended, codes)
            check_left(line, program, out, killed, log=True)
            check_kept(line, bench, program, out, ended)
            check_again(line, bench, program, out, killed, near=program.name == "pack" and not killed)
        yield line


def clocks(bench: Bench, tries: int) -> Iterator[Line]:
    """A killed run and its second one, with a clock that jumps; times of the inputs in the future."""
    for program in bench.programs:
        line = Line("clock changes", "each look up to 10 years off, files of 2100, SIGKILL between", program.name)
        bench.prepare(program)
        inputs = list((bench.folder / "run").rglob("*.*"))
        times = [(one, one.stat().st_atime_ns, one.stat().st_mtime_ns) for one in inputs]
        for one in inputs:
            os.utime(one, (4102444800, 4102444800))
        for _ in range(tries):
            out = bench.fresh(program)
            ended = stopped(bench, program, out, signal.SIGKILL, clock=True)
            if ended is not None:
                check_end(line, ended, (-9,))
                check_kept(line, bench, program, out, ended)
                check_again(line, bench, program, out, True, clock=True)
        for one, *both in times:
            os.utime(one, ns=(both[0], both[1]))
        yield line


# The disk --------------------------------------------------------------------------------------------------------


def full_disk(bench: Bench, tries: int, *, mounts: bool) -> Iterator[Line]:
    how = "a file system of 4 MB that fills" if mounts else "a limit on the size of files (no right to mount)"
    for program in bench.programs:
        line = Line("disk full", how, program.name)
        bench.prepare(program)
        for _ in range(tries):
            out = bench.fresh(program)
            room = int(len(bench.bytes[program.name]) * bench.random.uniform(0.02, 0.9))
            if mounts:
                subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", out.parent], check=True)
                (out.parent / "ballast").write_bytes(bytes(max(0, (4 << 20) - room)))
            ended = bench.finish(bench.start(program.words(out), limit=None if mounts else max(room, 1)))
            if ended.code:
                ended = Ended(ended.code, ended.error, progress(program, out))
                check_end(line, ended, (2,))
                check_left(line, program, out, False, log=True)
                check_kept(line, bench, program, out, ended)
                (out.parent / "ballast").unlink(missing_ok=True)
                check_again(line, bench, program, out)
            if mounts:
                subprocess.run(["umount", out.parent], check=True)
        yield line


def read_only(bench: Bench, tries: int, *, mounts: bool) -> Iterator[Line]:
    """With nothing there yet, and with half of the rows there."""
    for program in bench.programs:
        line = Line("read-only folder", "mounted so" if mounts else "mode 0555", program.name)
        bench.prepare(program)
        for number in range(tries):
            out = bench.fresh(program)
            if number % 2 and program.name != "pack":
                half(bench, program, out)
            before = {one.name: one.read_bytes() for one in out.parent.iterdir()}
            seen = progress(program, out)
            if not mounts:
                out.parent.chmod(0o555)
            ended = bench.finish(bench.start(program.words(out), readonly=out.parent if mounts else None), seen)
            if not mounts:
                out.parent.chmod(0o755)
            check_end(line, ended, (2,))
            check_kept(line, bench, program, out, ended)
            if {one.name: one.read_bytes() for one in out.parent.iterdir()} != before:
                line.problems.append("the folder has changed")
            check_again(line, bench, program, out)
        yield line


def half(bench: Bench, program: Program, out: Path) -> None:
    """A file with about half of the rows, as an earlier run left it."""
    out.write_bytes(bench.bytes[program.name])
    if out.suffix == ".sqlite":
        with contextlib.closing(sqlite3.connect(out, isolation_level=None)) as db:
            db.execute("DELETE FROM results WHERE rowid % 2 = 0")
    elif out.suffix == ".csv":
        lines = out.read_text(encoding="utf-8").splitlines(keepends=True)
        out.write_text("".join(lines[: len(lines) // 2]), encoding="utf-8")


# Several, and locks ----------------------------------------------------------------------------------------------


def two_at_once(bench: Bench, tries: int) -> Iterator[Line]:
    for program in bench.programs:
        if program.name == "pack":
            continue
        line = Line("two runs at once", "the same command twice on one file", program.name)
        bench.prepare(program)
        for _ in range(tries):
            out = bench.fresh(program)
            first = bench.start(program.words(out))
            time.sleep(bench.random.random() * 0.5)
            second = bench.start(program.words(out))
            for process in (first, second):
                check_end(line, bench.finish(process, set()), (0,))
            line.tries -= 1
            rows = program.read(out)
            check_kept(line, bench, program, out, Ended(0, "", set(bench.clean[program.name])))
            if len(rows) != len(bench.clean[program.name]):
                line.problems.append(f"{len(rows)} rows")
            check_left(line, program, out, False)
            check_again(line, bench, program, out)
        yield line


def locked(bench: Bench, tries: int, *, seconds: float) -> Iterator[Line]:
    """Another program holds SQLite's lock for so long; the store waits 30 s."""
    for program in bench.programs:
        if program.ending != ".sqlite":
            continue
        line = Line("locked store", f"held by another process for {seconds:g} s", program.name)
        bench.prepare(program)
        for _ in range(tries):
            out = bench.fresh(program)
            half(bench, program, out)
            seen = progress(program, out)
            with contextlib.closing(sqlite3.connect(out, isolation_level=None)) as db:
                db.execute("BEGIN EXCLUSIVE")
                process, end = bench.start(program.words(out)), time.monotonic() + seconds
                while process.poll() is None and time.monotonic() < end:
                    time.sleep(0.05)
                db.execute("ROLLBACK")
            ended = bench.finish(process, seen)
            check_end(line, ended, (2,) if seconds > 30 else (0,))
            check_kept(line, bench, program, out, ended)
            check_again(line, bench, program, out)
        yield line


# Damage ----------------------------------------------------------------------------------------------------------


def damaged(bench: Bench, tries: int, *, kind: str) -> Iterator[Line]:
    """The file of a finished run, or the checkpoint of a stopped one, is damaged at a random place."""
    for program in bench.programs:
        if kind == "a row cut short" and program.ending not in (".sqlite", ".csv"):
            continue
        line = Line("damaged file", kind, program.name)
        bench.prepare(program)
        for _ in range(tries):
            out = bench.fresh(program)
            file = out
            if program.name == "pack":
                file = out.with_name(f"{out.name}.checkpoint")
                while not file.exists():
                    stopped(bench, program, out, signal.SIGKILL)
            else:
                out.write_bytes(bench.bytes[program.name])
            hurt(file, kind, bench.random)
            before = file.read_bytes()
            ended = bench.finish(bench.start(program.words(out, second=True)), set())
            check_end(line, ended, (0, 2))
            line.stake += len(bench.clean[program.name])
            if ended.code == 2:
                if file.read_bytes() != before:
                    line.problems.append("the damaged file was changed")
                cure(line, bench, program, file, ended.error)
            check_again(line, bench, program, out)
        yield line


def hurt(file: Path, kind: str, rng: random.Random) -> None:
    if kind == "a row cut short" and file.suffix == ".sqlite":
        with contextlib.closing(sqlite3.connect(file, isolation_level=None)) as db:
            db.execute(
                "UPDATE results SET record = substr(record, 1, CAST(length(record) * ? AS INTEGER)) WHERE rowid = "
                "(SELECT rowid FROM results ORDER BY random() LIMIT 1)",
                (rng.uniform(0.01, 0.99),),
            )
        return
    data = bytearray(file.read_bytes())
    at = rng.randrange(len(data) - 1)
    if kind in ("a row cut short", "cut short"):
        del data[at:]
    else:
        size = rng.randint(16, 400)
        data[at : at + size] = bytes(size) if kind == "NUL bytes" else rng.randbytes(size)
    file.write_bytes(data)


def cure(line: Line, bench: Bench, program: Program, file: Path, error: str) -> None:
    """What the message tells to do: delete one record, or move the file away."""
    key = error.partition("record with key ")[2].split()
    if key:
        done = bench.finish(bench.start(["results", "delete", key[0].rstrip(":"), "--yes", "--store", str(file)]))
        if done.code:
            line.problems.append(f"the advice does not help: {done.error[-300:]}")
    else:
        shutil.move(file, file.parent.parent / f"{file.parent.name}-damaged")
