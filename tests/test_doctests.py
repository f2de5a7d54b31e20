"""The examples in docstrings are run, and give what they show."""

from __future__ import annotations

import doctest
from importlib import import_module
from pathlib import Path

import pytest

SRC = Path(__file__).resolve().parents[1] / "src"


def has_examples(path: Path) -> bool:
    """Whether an example is run: those of the callbacks need a trainer and are skipped."""
    return any(">>> " in line and "+SKIP" not in line for line in path.read_text().split("\n"))


WITH_EXAMPLES = sorted(filter(has_examples, SRC.rglob("*.py")))


def module_name(path: Path) -> str:
    parts = path.relative_to(SRC).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@pytest.mark.parametrize("name", map(module_name, WITH_EXAMPLES))
def test_examples(name: str) -> None:
    failed, tried = doctest.testmod(import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE)
    assert tried
    assert not failed


def test_there_are_examples() -> None:
    assert len(WITH_EXAMPLES) >= 20
