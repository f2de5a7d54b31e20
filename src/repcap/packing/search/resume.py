"""A search that was stopped goes on: its state in one file, replaced whole every 30 seconds."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open

from repcap._version import __version__
from repcap.errors import InputError
from repcap.packing.vector_files import write_tensors
from repcap.plain_json import parse_json

INTERVAL = 30.0
"""Seconds between two writes."""


@dataclasses.dataclass
class SearchState:
    """Everything that a search needs to go on."""

    restart: int = 0
    """Restarts that are finished."""
    steps: int = 0
    """Steps of finished restarts."""
    seconds: float = 0.0
    coherence: float = 2.0
    """Best of the finished restarts, and its rows."""
    label: str = ""
    rows: torch.Tensor | None = None
    numbers: dict[str, Any] = dataclasses.field(default_factory=dict)
    """Of the descent that was under way, with its tensors."""
    tensors: dict[str, torch.Tensor] = dataclasses.field(default_factory=dict)


class Checkpoint:
    """Where a search writes its state. `identity` says which search it is: another one refuses the file."""

    def __init__(self, path: str | os.PathLike[str], identity: dict[str, Any], interval: float = INTERVAL) -> None:
        self.path = Path(path)
        self.identity = json.dumps(identity, sort_keys=True)
        self.interval = interval
        self._written = time.monotonic()

    def maybe(self, state: Callable[[], SearchState]) -> None:
        """Write the state if the last write is `interval` seconds ago."""
        if time.monotonic() - self._written >= self.interval:
            self.write(state())

    def write(self, state: SearchState) -> None:
        """Write the state now, atomically."""
        tensors = {f"descent.{name}": tensor.cpu() for name, tensor in state.tensors.items()}
        if state.rows is not None:
            tensors["best"] = state.rows
        numbers = {
            field.name: getattr(state, field.name)
            for field in dataclasses.fields(state)
            if field.name not in ("rows", "tensors")
        }
        metadata = {"search": self.identity, "state": json.dumps(numbers), "repcap_version": __version__}
        metadata["sha256"] = _digest(metadata["state"], tensors)
        write_tensors(self.path, tensors, metadata)
        self._written = time.monotonic()

    def load(self) -> SearchState | None:
        """The state in the file, or None where there is no file.

        Raises
        ------
        InputError
            if the file is damaged or belongs to another search.
        """
        if not self.path.exists():
            return None
        try:
            with safe_open(str(self.path), framework="pt") as handle:
                metadata = handle.metadata() or {}
                tensors = {name: handle.get_tensor(name) for name in handle.keys()}  # noqa: SIM118 - no dict
            numbers = _numbers(metadata["state"])
            digest = _digest(metadata["state"], tensors)
            if metadata.get("sha256", digest) != digest:
                raise ValueError("it is damaged: its content is not what was written")
        except (SafetensorError, OSError, KeyError, ValueError) as error:
            raise InputError(f"{self.path} is no checkpoint of a packing ({error}); remove it to start anew") from error
        if metadata.get("search") != self.identity:
            raise InputError(
                f"{self.path} belongs to another search: {metadata.get('search')}; give the same options, or remove it"
            )
        descent = {name.removeprefix("descent."): t for name, t in tensors.items() if name.startswith("descent.")}
        return SearchState(**numbers, rows=tensors.get("best"), tensors=descent)


def _digest(state: str, tensors: dict[str, torch.Tensor]) -> str:
    """SHA-256 of the numbers and the tensors, by their names."""
    found = hashlib.sha256(state.encode("utf-8", "surrogatepass"))
    for name in sorted(tensors):
        found.update(name.encode() + b"\0")
        if tensors[name].numel():
            found.update(tensors[name].contiguous().view(torch.uint8).numpy().data)
    return found.hexdigest()


def _numbers(text: str) -> dict[str, Any]:
    """The numbers of a state, as `Checkpoint.write` left them.

    Raises
    ------
    ValueError
        if one is missing, unknown, or of another kind.
    """
    found = parse_json(text.encode("utf-8", "surrogatepass"))
    state = SearchState()
    names = [field.name for field in dataclasses.fields(state) if field.name not in ("rows", "tensors")]
    if not isinstance(found, dict) or set(found) != set(names):
        raise ValueError("its state is not that of a search")
    for name in names:
        kind = type(getattr(state, name))
        if isinstance(found[name], bool) or not isinstance(found[name], (int, float) if kind is float else kind):
            raise ValueError(f"its {name} is no {kind.__name__}")
    return found
