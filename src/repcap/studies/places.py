"""What a source is before it is opened: its identity and the state of its files, for the keys of a store."""

from __future__ import annotations

import dataclasses
import hashlib
from pathlib import Path
from typing import Any

from repcap.errors import SourceError
from repcap.jobs.engine import Unit
from repcap.jobs.store import Store, canonical_json
from repcap.sources.package import package_path
from repcap.sources.spec import is_file_name, parse_spec


@dataclasses.dataclass(frozen=True)
class Place:
    """What a source is, before it is opened.

    identity: part of the key. opening: the source as a process with another working directory must name it.
    fingerprint: state of its local files; None where there are none. bytes: of those files.
    """

    identity: dict[str, Any]
    opening: str
    fingerprint: str | None = None
    bytes: int = 0


def locate(source: str) -> Place:
    """Identity and state of a source, without opening it and without the network.

    A local source is known by its absolute path, a remote one by what was asked for (repository, revision as written,
    folder, tensor). The fingerprint of local files changes when a file is replaced, and asks for a new measurement.
    """
    try:
        spec = parse_spec(source)
    except SourceError:
        # Not there now: opening it will say so. The identity must be the one that it has when it is there.
        return Place({"scheme": "path", "location": str(Path(source).absolute())}, source)
    identity: dict[str, Any] = {"scheme": spec.scheme, "location": spec.location}
    if spec.tensor is not None:
        identity["tensor"] = spec.tensor
    if spec.scheme == "hub":
        return Place(identity | {"revision": spec.revision, "folder": spec.folder}, source)
    if spec.scheme == "path":
        path = Path(spec.location).absolute()
        identity["location"] = str(path)
        tensor = "" if spec.tensor is None else f"::{spec.tensor}"
        return Place(identity, f"{path}{tensor}", *_fingerprint(path))
    if spec.scheme == "package":
        try:
            return Place(identity, source, *_fingerprint(package_path(spec.location, spec.text)))
        except SourceError:
            pass
    return Place(identity, source)


def _fingerprint(path: Path) -> tuple[str | None, int]:
    """(hash of names, sizes and times of the files, their bytes in all).

    Of a directory: the files that a checkpoint is made of, not in depth. A store or a log beside them does not count.
    """
    try:
        files = [path]
        if path.is_dir():
            files = sorted(item for item in path.iterdir() if is_file_name(item.name))
        states = [(item.name, item.stat()) for item in files]
    except OSError:
        return None, 0
    listed = [[name, state.st_size, state.st_mtime_ns] for name, state in states]
    return hashlib.sha256(canonical_json(listed).encode()).hexdigest()[:32], sum(state.st_size for _, state in states)


def is_current(store: Store, unit: Unit) -> bool:
    """Whether the unit is stored, and its local files are as they were. Files that are gone count as unchanged."""
    now = unit.payload["fingerprint"]
    held = store.unit(unit.key)
    if not held or now is None:
        return bool(held)
    return all(result.provenance.get("fingerprint") == now for result in held)
