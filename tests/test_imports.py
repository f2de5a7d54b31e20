"""What starting up may load."""

from __future__ import annotations

import ast
import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = ("torch", "ray", "transformers", "matplotlib", "plotly", "gguf", "huggingface_hub")


def loaded_by(code: str) -> set[str]:
    program = f"{code}\nimport sys\nsys.stderr.write(' '.join(m for m in {HEAVY!r} if m in sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(done.stderr.split())


@pytest.mark.parametrize("code", ["import repcap", "import repcap; dir(repcap)", "import repcap.cli"])
def test_import_loads_nothing_heavy(code):
    assert loaded_by(code) == set()


def test_studies_load_nothing_heavy_before_they_are_called():
    package = Path(importlib.util.find_spec("repcap").origin).parent
    studies = [".".join(path.with_suffix("").parts[-4:]) for path in package.glob("verbs/*/study.py")]
    assert len(studies) > 10
    assert loaded_by(f"import {', '.join(studies)}, repcap.studies.measured, repcap.geometry") == set()


@pytest.mark.parametrize("argv", [["--help"], ["--version"]])
def test_command_line_starts_without_torch(argv):
    assert loaded_by(f"from repcap.cli import run; run({argv!r})") == set()


def test_no_module_imports_what_another_keeps_private():
    package = Path(importlib.util.find_spec("repcap").origin).parent
    found = [
        f"{path.relative_to(package)}: {name.name}"
        for path in package.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("repcap")
        for name in node.names
        if name.name.startswith("_") and not name.name.startswith("__")
    ]
    assert found == []
