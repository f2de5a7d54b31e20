"""Files that other programs read: the workflow, the container, the hooks, the forms, the citation."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

from demo import SMOLLM2

ROOT = Path(__file__).resolve().parents[1]
VERSION = (ROOT / "src" / "repcap" / "_version.py").read_text().split('"')[1]


def held(name: str) -> Any:
    return yaml.safe_load((ROOT / name).read_text())


def runs(job: dict[str, Any]) -> list[str]:
    return [step["run"] for step in job["steps"] if "run" in step]


def test_the_workflow_calls_what_everyone_calls() -> None:
    workflow = held(".github/workflows/ci.yml")
    assert ".ci/run" in runs(workflow["jobs"]["all"])
    assert (ROOT / ".ci" / "run").stat().st_mode & 0o111
    for job in workflow["jobs"].values():
        assert job["timeout-minutes"] <= 60
        assert all("@v" in step["uses"] for step in job["steps"] if "uses" in step)
    assert workflow["jobs"]["all"]["steps"][1]["with"] == {"python-version": "3.11"}  # that of the constraints


def test_targets_that_scripts_name_are_in_the_makefile() -> None:
    targets = set(re.findall(r"^([.\w/-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    scripts = [(ROOT / ".ci" / "run").read_text(), *runs(held(".github/workflows/ci.yml")["jobs"]["dear"])]
    named = {word for text in scripts for word in re.findall(r"^\s*make (\S+)", text, re.MULTILINE)}
    assert {"test", "lint", "docs", ".venv/.dev"} <= named <= targets
    assert "make test" in (ROOT / "README.md").read_text()


def instructions() -> list[tuple[str, str]]:
    text = (ROOT / "Dockerfile").read_text().replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [(line.split(" ", 1)[0], line.split(" ", 1)[1]) for line in lines]


def test_the_container_measures_the_demo_model() -> None:
    found = instructions()
    assert found[0] == ("FROM", "python:3.11-slim")
    (entry,), (command,) = (
        [json.loads(text) for word, text in found if word == name] for name in ("ENTRYPOINT", "CMD")
    )
    assert [*entry, *command] == ["repcap", "measure", SMOLLM2]
    order = [word for word, _ in found]
    assert order.index("USER") < order.index("ENTRYPOINT")  # nothing runs as root


def test_what_the_container_copies_is_there_and_is_enough_to_build() -> None:
    copied = {word for name, text in instructions() if name == "COPY" for word in shlex.split(text)[:-1]}
    assert all((ROOT / name).exists() for name in copied)
    text = (ROOT / "pyproject.toml").read_text()
    assert {"pyproject.toml", "src"} <= copied
    for key in ("readme", "license-files"):
        named = re.search(rf"^{key} = (.+)$", text, re.MULTILINE)
        assert named is None or set(re.findall(r'"([^"]+)"', named[1])) <= copied
    ignored = (ROOT / ".dockerignore").read_text().split()
    assert {".git", ".venv*"} <= set(ignored)
    assert not copied & set(ignored)


def test_hooks_run_the_tools_of_make_lint() -> None:
    (repository,) = held(".pre-commit-config.yaml")["repos"]
    assert repository["repo"] == "local"  # so that their versions are those of the constraints
    entries = [hook["entry"] for hook in repository["hooks"]]
    lint = (ROOT / "Makefile").read_text().split("\nlint:")[1].split("\n\n")[0]
    tools = {word.split("/")[-1] for word in re.findall(r"\$\(BIN\)/(\S+)", lint)}
    assert {entry.split()[0].removeprefix(".venv/bin/") for entry in entries} == tools


@pytest.mark.parametrize(
    "path", sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml")), ids=lambda path: path.stem
)
def test_forms_can_be_filled_in(path) -> None:
    form = yaml.safe_load(path.read_text())
    assert form["name"]
    assert form["description"]
    kinds = {"textarea", "input", "dropdown", "checkboxes", "markdown"}
    assert form["body"]
    for field in form["body"]:
        assert field["type"] in kinds
        assert field["attributes"].get("label") or field["type"] == "markdown"
    assert any(field.get("validations", {}).get("required") for field in form["body"])


def test_the_citation_has_what_the_format_asks_for() -> None:
    citation = held("CITATION.cff")
    assert {"cff-version", "message", "title", "authors"} <= set(citation)
    assert citation["version"] == VERSION
    assert citation["license"] in (ROOT / "pyproject.toml").read_text()
    assert "2606.02765" in json.dumps(citation["references"])
