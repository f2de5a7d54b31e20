"""What the verbs print is as docs/schema/records.schema.json says."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest

from tool_modules import load_tool

jsonschema = pytest.importorskip("jsonschema")

ROOT = Path(__file__).resolve().parents[2]
SCHEMA = json.loads((ROOT / "docs" / "schema" / "records.schema.json").read_text())
LINES = [
    "measure made/odd",
    "measure made/untied --matrix both",
    "pairs made/tied --top 2",
    "compare made/untied --sample 32",
    "track made/run",
    "dictionary made/sae --against made/tied",
    "probes made/transformer",
    "neighbours made/transformer --overview",
    "inspect made/bin",
    "capacity --d 64 --eps 0.125",
    "table --d 8,100 --eps 0.3",
    "table --d 8 --k 20",
    "design --features 1e5 --eps 0.08",
    "fit made/cells.csv --law ratio --bootstrap 0 --holdout none",
    "pack 12 4 --steps 20 --no-save",
    "pack-max 8 0.4 --no-search",
    "interference --d 8 --k 20 --active 1,2 --trials 10 --steps 20",
]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    module = load_tool("frozen_made")
    folder = tmp_path_factory.mktemp("schema")
    module.make(folder / "made")
    return folder


def test_it_is_a_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert set(SCHEMA["$defs"]) == set(SCHEMA["properties"]["kind"]["enum"])


@pytest.mark.parametrize("line", LINES)
def test_what_is_printed_is_as_the_schema_says(line, made, repcap, monkeypatch) -> None:
    monkeypatch.chdir(made)
    printed = repcap(*line.split(), "--json").json
    records = printed if isinstance(printed, list) else [printed]
    for record in records:
        jsonschema.validate(record, SCHEMA)


def test_what_is_amiss_is_seen(made, repcap, monkeypatch) -> None:
    monkeypatch.chdir(made)
    record = repcap("measure", "made/tied", "--json").json
    for change in ({"epsilon": "0.3"}, {"kind": "measured"}, {"schema_version": None}, {"dropped": 3}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({**record, **change}, SCHEMA)
    for key in ("kind", "epsilon", "reading", "capacity"):
        less = copy.deepcopy(record)
        del less[key]
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(less, SCHEMA)
