"""The `--json` of every verb against records of an earlier version, and the tool that compares them."""

from __future__ import annotations

import copy
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from demo import needs_demo
from tool_modules import load_tool

ROOT = Path(__file__).resolve().parents[2]
TOOL = ROOT / "tools" / "freeze.py"
RECORDS = Path(__file__).parent / "records"
OLD = [{"epsilon": 0.25, "capacity": {"law": [1e30, 2.0]}, "name": "a", "seconds": 1.0}]


@pytest.fixture(scope="module")
def freeze():
    return load_tool("freeze")


@needs_demo
@pytest.mark.timeout(900)
def test_records_are_what_the_verbs_print_now() -> None:
    """One process with one thread: products are summed in the order in which they were recorded."""
    pytest.importorskip("transformers")
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    words = [sys.executable, str(TOOL), "--cheap", "--compare", str(RECORDS)]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    departed = [line for line in done.stdout.splitlines() if " s  " not in line]
    assert done.returncode == 0, "\n".join(departed[:60]) + done.stderr[-2000:]


def test_every_case_has_a_record_and_every_record_a_case(freeze) -> None:
    held = {path.name.split(".")[0] for path in RECORDS.iterdir()} - {"machine"}
    assert held == set(freeze.CASES)
    assert all(freeze.load(RECORDS, name) for name in held)


def test_every_rule_is_one_of_the_three_kinds() -> None:
    for rule in json.loads((RECORDS.parent / "renamed.json").read_text()):
        assert rule["why"]
        assert ({"was", "is"} <= set(rule)) + ("new" in rule) + ("free" in rule) == 1


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda new: new[0].update(epsilon=0.25 + 1e-9), "capacity-k [0].epsilon: 0.25 -> 0.250000001"),
        (lambda new: new[0].update(epsilon=None), "capacity-k [0].epsilon: 0.25 -> None"),
        (lambda new: new[0].update(name="b"), "capacity-k [0].name: 'a' -> 'b'"),
        (lambda new: new[0].pop("name"), "capacity-k [0].name: gone ('a')"),
        (lambda new: new[0].update(more=[]), "capacity-k [0].more: new ([])"),
        (lambda new: new[0]["capacity"]["law"].append(3), "capacity-k [0].capacity.law[2]: new (3)"),
    ],
)
def test_a_difference_is_seen(freeze, change, said) -> None:
    new = copy.deepcopy(OLD)
    change(new)
    assert freeze.differences("capacity-k", OLD, new, [], strict=True) == [said]


def test_the_last_bits_and_volatile_keys_are_no_difference(freeze) -> None:
    new = [{"epsilon": 0.25 * (1 + 1e-12), "capacity": {"law": [1e30 * (1 - 1e-12), 2]}, "name": "a", "seconds": 9.0}]
    assert freeze.differences("capacity-k", OLD, new, [], strict=True) == []


def test_a_search_may_take_another_path_on_another_machine(freeze) -> None:
    old, new = [{"coherence": 0.5, "pair": [1, 2]}], [{"coherence": 0.51, "pair": [3, 4]}]
    assert len(freeze.differences("pack", old, new, [], strict=True)) == 3
    assert freeze.differences("pack", old, new, [], strict=False) == []
    assert len(freeze.differences("capacity-k", old, new, [], strict=False)) == 3


def test_rules(freeze) -> None:
    new = [{"eps": 0.25, "law": [1e30, 2.5], "kind": "x", "seconds": 1.0}]
    rules = [
        {"was": r"(.*)\.epsilon", "is": r"\1.eps", "why": "shorter"},
        {"was": r"(.*)\.capacity(.*)", "is": r"\1\2", "why": "flat"},
        {"was": r".*\.name", "is": None, "why": "not needed"},
        {"new": r".*\.kind", "why": "every record has one"},
        {"free": r".*\.law\[1\]", "why": "a better estimate"},
    ]
    assert freeze.differences("capacity-k", OLD, new, rules, strict=True) == []
    elsewhere = [{**rule, "cases": "pack*"} for rule in rules]
    assert len(freeze.differences("capacity-k", OLD, new, elsewhere, strict=True)) == 8
