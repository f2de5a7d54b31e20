"""What a store holds: results, failures, and the keys that name them."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from typing import Any

from repcap.errors import InputError
from repcap.text import json_text


@dataclasses.dataclass(frozen=True)
class Stored:
    """One row of a store. `repcap.jobs.record` says what the keys of `record` and `provenance` mean."""

    key: str
    unit: str
    kind: str
    record: dict[str, Any]
    provenance: dict[str, Any]
    created: str = ""
    """UTC, ISO 8601; set by the store."""

    def to_dict(self) -> dict[str, Any]:
        return dict(vars(self))  # as it is: records nest as deep as their file did


@dataclasses.dataclass(frozen=True)
class Failure:
    """A unit that gave no result, with the reason of its last attempt."""

    key: str
    kind: str
    label: str
    error: str
    """Class of the error, or `WorkerLost`."""
    reason: str
    """One line."""
    attempts: int
    """Runs that tried this unit and failed."""
    first: str
    last: str

    def to_dict(self) -> dict[str, Any]:
        return dict(vars(self))  # as it is: records nest as deep as their file did


def canonical_json(value: Any) -> str:
    """JSON that is the same text for equal values: sorted keys, no spaces, strict numbers, valid UTF-8.

    Raises
    ------
    InputError
        if `value` holds something that JSON cannot say (NaN, infinity, an object).
    """
    try:
        text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InputError(f"not storable as JSON: {error}") from error
    return json_text(text)


def unit_key(kind: str, identity: Any, options: Mapping[str, Any]) -> str:
    """Name of a unit of work: 128 bits of SHA-256 over (kind, identity of the source, options), as 32 hex digits.

    The order of options does not matter. Both must be JSON values.

    >>> unit_key("pack", {"k": 6, "d": 3}, {"steps": 10}) == unit_key("pack", {"d": 3, "k": 6}, {"steps": 10})
    True
    """
    text = canonical_json([kind, identity, dict(options)])
    return hashlib.sha256(text.encode()).hexdigest()[:32]
