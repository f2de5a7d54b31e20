"""How long the command line takes to start, against importing typer and rich: `python benchmarks/startup.py`.

CPU seconds of fresh processes, the least of several runs, so that a busy machine matters little.
"""

from __future__ import annotations

import resource
import subprocess
import sys

RUNS = 7
CASES = {
    "import typer, rich": "import typer, rich.console, rich.table",
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


def main() -> None:
    least = {name: min(cpu_seconds(code) for _ in range(RUNS)) for name, code in CASES.items()}
    floor = least["import typer, rich"]
    for name, seconds in least.items():
        print(f"{name:20s} {seconds:6.3f} s CPU  {seconds / floor:5.2f} of importing typer and rich")


if __name__ == "__main__":
    main()
