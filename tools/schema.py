"""Write docs/schema/records.schema.json: the JSON that the verbs print, one definition for each `kind`.

    python tools/schema.py

The cheap cases of `tools/freeze.py` are run, and what they print is described: the keys with their types, and which of
them are always there. Keys that are not described may come at any time; a reader ignores them. A test holds records
against the file (tests/docs/test_schema.py).
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from freeze import chosen, load, run_all

OUT = Path(__file__).resolve().parents[1] / "docs" / "schema" / "records.schema.json"
TYPES = {bool: "boolean", int: "number", float: "number", str: "string", type(None): "null"}
DEPTH = 3
"""Objects nested deeper than this are described as objects only: their keys are data, not structure."""
FREE = {"options", "provenance", "details", "params", "ci"}
"""Objects whose keys depend on what was asked."""

Schema = dict[str, Any]


def records(value: Any) -> list[dict[str, Any]]:
    """The records with a kind in what a case printed."""
    if isinstance(value, list):
        return [found for item in value for found in records(item)]
    if not isinstance(value, dict):
        return []
    own = [value] if isinstance(value.get("kind"), str) and "schema_version" in value else []
    return own + [found for name in ("records", "record") if name in value for found in records(value[name])]


def described(values: list[Any], depth: int = 0) -> Schema:
    """What all `values` have in common."""
    kinds = sorted(
        {"object" if isinstance(v, dict) else "array" if isinstance(v, list) else TYPES[type(v)] for v in values}
    )
    found: Schema = {"type": kinds[0] if len(kinds) == 1 else kinds}
    objects = [value for value in values if isinstance(value, dict)]
    if objects and depth < DEPTH:
        names = sorted({name for value in objects for name in value})
        found["properties"] = {
            name: {"type": "object"}
            if name in FREE and all(isinstance(value.get(name, {}), dict) for value in objects)
            else described([value[name] for value in objects if name in value], depth + 1)
            for name in names
        }
        needed = [name for name in names if all(name in value for value in objects)]
        if needed and len(objects) > 1 - depth:
            found["required"] = needed
    items = [item for value in values if isinstance(value, list) for item in value]
    if items and depth < DEPTH:
        found["items"] = described(items, depth + 1)
    return found


def schema(found: list[dict[str, Any]]) -> Schema:
    """The whole file for these records."""
    kinds = sorted({record["kind"] for record in found})
    definitions = {kind: described([record for record in found if record["kind"] == kind]) for kind in kinds}
    for kind, definition in definitions.items():
        definition["properties"]["kind"] = {"const": kind}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Records of repcap",
        "description": "What --json prints, and what a store exports. Unknown keys are to be ignored.",
        "type": "object",
        "required": ["kind", "schema_version"],
        "properties": {"kind": {"enum": kinds}, "schema_version": {"type": "integer"}},
        "allOf": [
            {
                "if": {"properties": {"kind": {"const": kind}}, "required": ["kind"]},
                "then": {"$ref": f"#/$defs/{kind}"},
            }
            for kind in kinds
        ],
        "$defs": definitions,
    }


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        names = chosen("*", cheap=True)
        run_all(names, Path(folder))
        found = [record for name in names for record in records(load(Path(folder), name))]
    OUT.parent.mkdir(exist_ok=True)
    OUT.write_text(json.dumps(schema(found), indent=1) + "\n")
    print(f"{OUT}: {len(found)} records of {len({record['kind'] for record in found})} kinds")
    return 0


if __name__ == "__main__":
    sys.exit(main())
