"""How long the command line takes to start, against importing typer and rich: `python benchmarks/startup.py [--quick]`.

CPU seconds of fresh processes, the least of several runs, so that a busy machine matters little.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys

from measured import Measured

RUNS = 7
FLOOR = "import typer, rich"
CASES = {
    FLOOR: "import typer, rich.console, rich.table",
    "import repcap": "import repcap",
    "repcap --help": "from repcap.cli import run; run(['--help'])",
    "repcap capacity": "from repcap.cli import run; run(['capacity', '--d', '4096', '--eps', '0.0645'])",
}


def cpu_seconds(code: str) -> float:
    """CPU time of one fresh interpreter that runs `code`."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def rows(quick: bool) -> list[Measured]:
    least = {name: min(cpu_seconds(code) for _ in range(1 if quick else RUNS)) for name, code in CASES.items()}
    floor = least.pop(FLOOR)
    return [Measured(name, "a fresh process", took, floor, FLOOR, unit="s CPU") for name, took in least.items()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one run of each")
    print(*rows(parser.parse_args().quick), sep="\n")


if __name__ == "__main__":
    main()
