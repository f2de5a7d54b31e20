"""Does repcap lose anything? Long commands meet signals, full disks, locks and damage, and what they leave is read.

    python tools/reliability.py                       # 5 tries of each fault and program
    python tools/reliability.py --tries 50 --only SIGKILL
    python tools/reliability.py --write docs/reliability.md

Every try runs the real program. Afterwards readers that share nothing with repcap look for: rows that were on the
disk and are gone or differ from a clean run, a second run that does not end equal to a clean one or does work again
that was done, wrong exit codes, tracebacks, files and processes left behind. Exit code 1 if anything is found.

Linux. Where mounting is allowed (root, or user namespaces) disks are filled and folders made read-only by mounts of
our own; else by a limit on the size of files and by modes. The table says which.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import reliability_faults as faults
from reliability_faults import Bench, Line

MARK = ("<!-- table: tools/reliability.py -->", "<!-- end of the table -->")
DAMAGES = ("a row cut short", "cut short", "garbage bytes", "NUL bytes")


def kinds(mounts: bool) -> dict[str, Any]:
    """Name -> what makes the lines of a fault."""
    found: dict[str, Any] = {
        name: partial(faults.signals, number=getattr(signal, name)) for name in ("SIGINT", "SIGTERM", "SIGKILL")
    }
    found |= {
        "full": partial(faults.full_disk, mounts=mounts),
        "read-only": partial(faults.read_only, mounts=mounts),
        "waits": partial(faults.locked, seconds=3.0),
        "locked": partial(faults.locked, seconds=40.0),
        "two": faults.two_at_once,
        "clock": faults.clocks,
    }
    return found | {f"damage: {kind}": partial(faults.damaged, kind=kind) for kind in DAMAGES}


def mounted() -> bool:
    """Whether this process may mount; runs itself again in a mount namespace of its own where that is possible."""
    if os.environ.get("REPCAP_RELIABILITY") == "mounts":
        return True
    for flags in (["-m"], ["-Urm"]):
        probe = ["unshare", *flags, "sh", "-c", "mount -t tmpfs -o size=1m tmpfs /mnt"]
        try:
            possible = subprocess.run(probe, capture_output=True).returncode == 0
        except OSError:
            return False
        if possible:
            os.environ["REPCAP_RELIABILITY"] = "mounts"
            os.execvp("unshare", ["unshare", *flags, sys.executable, *sys.argv])
    return False


def lines(bench: Bench, tries: int, only: list[str], mounts: bool) -> Iterator[Line]:
    for name, fault in kinds(mounts).items():
        if not only or any(word.lower() in name.lower() for word in only):
            yield from fault(bench, tries)


def table(found: list[Line]) -> str:
    """The lines as Markdown; commands that say the same of the same fault share a row."""
    rows: dict[tuple[str, str, str], list[Line]] = {}
    for line in found:
        said = line.says[0].removeprefix("repcap: error: ") if line.says else "nothing"
        said = re.sub(r"\S*/(out\.\w+)", r"\1", said)  # no folder of the try
        said = re.sub(r"(record with key) \w+(-\w+)? is not JSON: .*", r"\1 KEY is not JSON: ...", said)
        said = re.sub(r"(in position|byte|page_ordinal|line|char|column) [\dxa-f-]+", r"\1 N", said)
        rows.setdefault((line.fault, line.how, said.replace("|", "\\|")), []).append(line)
    text = ["| fault | made by | command | tries | rows at stake | lost | what the user sees |"]
    text.append("|---|---|---|--:|--:|--:|---|")
    for (fault, how, said), lines_ in rows.items():
        names = ", ".join(f"`{line.program}`" for line in lines_)
        counts = " | ".join(str(sum(getattr(line, name) for line in lines_)) for name in ("tries", "stake", "lost"))
        text.append(f"| {fault} | {how} | {names} | {counts} | {said} |")
    return "\n".join(text)


def put(text: str, page: Path) -> None:
    """The table into the page, between its marks."""
    held = page.read_text(encoding="utf-8")
    before, after = held.partition(MARK[0])[0], held.partition(MARK[1])[2]
    page.write_text(f"{before}{MARK[0]}\n{text}\n{MARK[1]}{after}", encoding="utf-8")


def added(found: list[Line], keep: Path) -> list[Line]:
    """The lines, and those of earlier runs, which go into the file together."""
    earlier = [Line(**one) for one in json.loads(keep.read_text())] if keep.exists() else []
    merged: dict[tuple[str, str, str], Line] = {}
    for line in [*earlier, *found]:
        there = merged.setdefault((line.fault, line.how, line.program), Line(line.fault, line.how, line.program))
        for name in ("tries", "stake", "lost", "says", "problems"):
            setattr(there, name, getattr(there, name) + getattr(line, name))
    order = {name: place for place, name in enumerate(dict.fromkeys((one.fault, one.how) for one in merged.values()))}
    together = sorted(merged.values(), key=lambda one: order[one.fault, one.how])
    keep.write_text(json.dumps([dataclasses.asdict(one) for one in together], indent=1))
    return together


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tries", type=int, default=5, help="of each fault with each command (default 5)")
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="NAME",
        help=f"faults whose name has this: {', '.join(kinds(False))}",
    )
    parser.add_argument("--commands", default="", metavar="A+B", help="only these: survey, track, sweep, table, pack")
    parser.add_argument("--rows", type=int, default=60, help="results of a clean run (default 60)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--write", type=Path, metavar="PAGE", help="put the table into this page, between its marks")
    parser.add_argument(
        "--keep", type=Path, metavar="FILE", help="JSON to which these tries are added; --write takes all"
    )
    asked = parser.parse_args()
    mounts, found, began = mounted(), [], time.monotonic()
    with tempfile.TemporaryDirectory(prefix="repcap-reliability-") as made:
        bench = Bench(Path(made), asked.rows, asked.seed, asked.commands)
        for line in lines(bench, asked.tries, asked.only, mounts):
            found.append(line)
            text = table(added([line], asked.keep) if asked.keep else found)
            if asked.write is not None:
                put(text, asked.write)
            state = "ok" if not line.problems else f"{len(line.problems)} PROBLEMS"
            print(f"{line.fault:17} {line.how:60.60} {line.program:15} {line.tries:4} tries {line.stake:6} at stake "
                  f"{line.lost:3} lost  {state}", flush=True)  # fmt: skip
            for words in line.says[:5]:
                print(f"    {words[:200]}", flush=True)
            for problem in line.problems[:5]:
                print(f"    {problem}", flush=True)
    problems = sum(len(line.problems) for line in found)
    tries = sum(line.tries for line in found)
    print(f"{tries} tries, {problems} problems, {sum(line.lost for line in found)} rows lost, "
          f"{time.monotonic() - began:.0f} s")  # fmt: skip
    return 1 if problems or not tries else 0


if __name__ == "__main__":
    sys.exit(main())
