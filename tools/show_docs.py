"""Bring the output that README.md and docs/ show up to date: `python tools/show_docs.py docs/measure.md ...`.

A page's commands are run from top to bottom, as tests/docs/test_commands.py runs them, and where the output has changed
the page is rewritten. Read the difference before it is committed: a number that moved has a reason. Commands that take
minutes are run with --dear.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def main(words: list[str]) -> int:
    """Run the pages' tests with a hook that rewrites instead of comparing."""
    dear = "--dear" in words
    pages = [word for word in words if not word.startswith("-")]
    os.environ["REPCAP_REWRITE_DOCS"] = "1"
    test = f"{ROOT}/tests/docs/test_commands.py"
    name = "test_whole_page" if dear else "test_page"
    chosen = [f"{test}::{name}[{page}]" for page in pages] or [f"{test}::{name}"]
    return int(pytest.main(["-q", "-n", "0", "--rootdir", str(ROOT), "-m", "dear" if dear else "not dear", *chosen]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
