"""Freeze what repcap prints: run the `--json` of every verb on fixed inputs, keep it, and compare it later.

    python tools/freeze.py --out before                # run every case, one JSON file a case
    python tools/freeze.py --compare before            # run them again and compare (exit code 1 where they differ)
    python tools/freeze.py --compare before after      # compare two folders, run nothing
    python tools/freeze.py --cheap --compare tests/frozen/records      # what `make test` does
    python tools/freeze.py --only 'capacity*' --out tests/frozen/records   # record anew

To compare two versions of the code set PYTHONPATH to the `src` of the one that is to run.

After a change that is meant: a key that was renamed, moved or dropped, or that is new, gets a rule in
tests/frozen/renamed.json (applied to the old record before it is compared), and the CHANGELOG says so. Numbers that
are meant to differ are recorded anew with --out, and the commit says which and why; drop the rules that a new record
makes needless.

A rule has `cases` (a pattern of names; all where it is missing), `why`, and one of
    "was": PATTERN, "is": REPLACEMENT    keys are moved, as re.sub does it; "is": null drops them
    "new": PATTERN                       keys that the old record does not have
    "free": PATTERN                      keys whose values may differ
Patterns are regular expressions that match a whole path, such as `[0]\\.capacity\\.log10` (step, then keys; list
indices in brackets).

Floats are equal to a relative 1e-9 on the machine and torch that recorded them. Elsewhere float32 products are summed
in another order and an optimiser takes another path, so that there a kind of case has its own tolerance (LOOSE), and
the words and whole numbers of a search are not compared.
"""

from __future__ import annotations

import argparse
import contextlib
import fnmatch
import gzip
import io
import json
import math
import os
import platform
import re
import shlex
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before numpy and torch: sums in one order
sys.path.insert(0, str(Path(__file__).parent))

from frozen_cases import CASES, LAWS, PRODUCTS, READ, SEARCH, Case
from frozen_made import make

ROOT = Path(__file__).resolve().parents[1]
RULES = ROOT / "tests" / "frozen" / "renamed.json"
STRICT, NEAR_ZERO = 1e-9, 1e-12
LOOSE = {LAWS: 1e-7, PRODUCTS: 2e-5, SEARCH: 0.05}
VOLATILE = re.compile(r".*\.((\w*_)?seconds|created|(repcap_)?version|torch|python|platform|host|bytes)")
PACKED = 20_000
"""Records of more characters than this are stored compressed."""

Flat = dict[str, Any]


def machine() -> dict[str, str]:
    """What decides the last digits: processor and libraries."""
    import numpy
    import torch

    name = platform.processor()
    with contextlib.suppress(OSError):
        found = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
        name = found.group(1) if found else name
    return {"processor": name, "torch": torch.__version__, "numpy": numpy.__version__}


def run_line(line: str) -> Any:
    """What one step printed, as JSON where it is; with the exit code where that is not 0."""
    if line.startswith(READ):
        return json.loads(Path(line.split()[1]).read_text())
    try:
        from repcap.cli.main import run  # before the house
    except ModuleNotFoundError:
        from repcap.cli import run
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
        code = run(["--quiet", *shlex.split(line)])
    text = out.getvalue()
    printed = json.loads(text) if text.startswith(("{", "[")) else None
    return printed if code == 0 else {"exit code": code, "printed": printed}


def record(case: Case, made: Path) -> list[Any]:
    """Run a case in a folder of its own that holds a copy of `made`."""
    start = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(made, Path(folder) / "made")
        os.chdir(folder)
        try:
            return [run_line(step) for step in case.steps]
        finally:
            os.chdir(start)


def save(folder: Path, name: str, found: Any) -> None:
    text = json.dumps(found, indent=1, ensure_ascii=False) + "\n"
    for old in (folder / f"{name}.json", folder / f"{name}.json.gz"):
        old.unlink(missing_ok=True)
    if len(text) > PACKED:
        (folder / f"{name}.json.gz").write_bytes(gzip.compress(json.dumps(found).encode(), mtime=0))
    else:
        (folder / f"{name}.json").write_text(text)


def load(folder: Path, name: str) -> Any:
    """A record, or None where there is none."""
    packed = folder / f"{name}.json.gz"
    if packed.exists():
        return json.loads(gzip.decompress(packed.read_bytes()))
    plain = folder / f"{name}.json"
    return json.loads(plain.read_text()) if plain.exists() else None


def flat(value: Any, at: str = "") -> Iterator[tuple[str, Any]]:
    """(path, value) of every leaf; empty lists and objects are leaves."""
    if isinstance(value, dict) and value:
        for key, item in value.items():
            yield from flat(item, f"{at}.{key}")
    elif isinstance(value, list) and value:
        for index, item in enumerate(value):
            yield from flat(item, f"{at}[{index}]")
    else:
        yield at, value


def follow(old: Flat, new: Flat, rules: list[dict[str, Any]], name: str) -> tuple[Flat, Flat]:
    """Both records after the rules that hold for this case."""
    for rule in rules:
        if not fnmatch.fnmatch(name, rule.get("cases", "*")):
            continue
        if "was" in rule:
            pattern, to = re.compile(rule["was"]), rule["is"]
            moved = {path: pattern.fullmatch(path) for path in old}
            old = {
                (found.expand(to) if found else path): old[path]
                for path, found in moved.items()
                if not (found and to is None)
            }
        else:
            pattern = re.compile(rule.get("new") or rule["free"])
            new = {path: value for path, value in new.items() if not (pattern.fullmatch(path) and path not in old)}
            if "free" in rule:
                old = {path: value for path, value in old.items() if not pattern.fullmatch(path)}
                new = {path: value for path, value in new.items() if not pattern.fullmatch(path)}
    return old, new


def same(a: Any, b: Any, within: float, numbers_only: bool) -> bool:
    if isinstance(a, float) or (isinstance(b, float) and not isinstance(a, str)):
        if not isinstance(a, (int, float)) or not isinstance(b, (int, float)):
            return False
        return math.isclose(a, b, rel_tol=within, abs_tol=NEAR_ZERO if within <= STRICT else within)
    return bool(a == b) if not numbers_only else type(a) is type(b)


def differences(name: str, old: Any, new: Any, rules: list[dict[str, Any]], strict: bool) -> list[str]:
    """One line for each leaf that departs."""
    kind, free = CASES[name].kind, re.compile(CASES[name].free)
    within = STRICT if strict else LOOSE[kind]
    before, after = follow(dict(flat(old)), dict(flat(new)), rules, name)
    found = []
    for path in dict.fromkeys([*before, *after]):
        if VOLATILE.fullmatch(path) or free.fullmatch(path):
            continue
        if path not in after or path not in before:
            held = before.get(path, after.get(path))
            found.append(f"{name} {path}: {'gone' if path not in after else 'new'} ({held!r:.80})")
        elif not same(before[path], after[path], within, not strict and kind == SEARCH):
            found.append(f"{name} {path}: {before[path]!r:.80} -> {after[path]!r:.80}")
    return found


def chosen(only: str, cheap: bool) -> list[str]:
    return [name for name, case in CASES.items() if fnmatch.fnmatch(name, only) and (case.cheap or not cheap)]


def run_all(names: list[str], out: Path) -> None:
    """Write a record of each case into `out`."""
    out = out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as work:
        made = Path(work) / "made"
        make(made)
        for name in names:
            start = time.perf_counter()
            save(out, name, record(CASES[name], made))
            print(f"{time.perf_counter() - start:7.2f} s  {name}", flush=True)
    (out / "machine.json").write_text(json.dumps(machine(), indent=1) + "\n")


def compare(names: list[str], before: Path, after: Path) -> list[str]:
    """Every difference; a case without a record in `before` is left out, one without it in `after` is a difference."""
    rules = json.loads(RULES.read_text()) if RULES.exists() else []
    strict = load(before, "machine") == load(after, "machine")
    found: list[str] = []
    for name in names:
        old, new = load(before, name), load(after, name)
        if old is not None:
            found += [f"{name}: no record"] if new is None else differences(name, old, new, rules, strict)
    return found


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="folder for the records")
    parser.add_argument("--compare", type=Path, nargs="+", metavar="DIR", help="compare with DIR, or two of them")
    parser.add_argument("--only", default="*", help="names of cases, such as 'pack*'")
    parser.add_argument("--cheap", action="store_true", help="leave out the cases that take long")
    parser.add_argument("--list", action="store_true", help="name the cases")
    given = parser.parse_args(words)
    names = chosen(given.only, given.cheap)
    if given.list:
        print("\n".join(names))
        return 0
    if given.compare is None and given.out is None:
        parser.error("give --out or --compare")
    if given.compare and len(given.compare) == 2:
        found = compare(names, *given.compare)
    else:
        with tempfile.TemporaryDirectory() as folder:
            out = given.out or Path(folder)
            run_all(names, out)
            found = compare(names, given.compare[0], out) if given.compare else []
    print("\n".join(found) if found else "no difference" if given.compare else "recorded")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
