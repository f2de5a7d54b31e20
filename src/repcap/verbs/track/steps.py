"""A list of checkpoints: globs and run directories spelled out, training steps read from names."""

from __future__ import annotations

import glob
import re
from collections.abc import Iterable
from pathlib import Path

from repcap.errors import InputError

_NAMED = re.compile(
    r"(?:global|training|train|optimizer)?[-_]?(step|checkpoint|ckpt|iter|iteration|update)s?[-_=]?(\d+)([kKmM]?)(?![a-zA-Z0-9])",
    re.IGNORECASE,
)
_ORDER = ("step", "iteration", "iter", "update", "checkpoint", "ckpt")
"""Where a name holds several numbers (`epoch=3-step=1200`), the first of these decides."""
_FILES = (".safetensors", ".gguf", ".bin", ".pt", ".pth", ".ckpt", ".npy", ".npz")
_SCALE = {"": 1, "k": 1000, "m": 1_000_000}


def step_of(source: str) -> int | None:
    """The training step in a name, or None: `checkpoint-1000`, `step_500`, `org/name@step3000`, `iter10k`.

    The last part of a path decides, then the one above it (`checkpoint-500/model.safetensors`).

    >>> step_of("run/checkpoint-1000"), step_of("org/name@step143000"), step_of("epoch=1-step=200.ckpt")
    (1000, 143000, 200)
    >>> step_of("run/step_10k/model.safetensors"), step_of("llama-7b")
    (10000, None)
    """
    body = source.partition("::")[0].rstrip("/")
    name, _, revision = body.partition("@")
    parts = [revision, *reversed(name.split("/")[-2:])]
    for part in parts:
        found = {kind.lower(): int(digits) * _SCALE[scale.lower()] for kind, digits, scale in _NAMED.findall(part)}
        for kind in _ORDER:
            if kind in found:
                return found[kind]
    return None


def expand(sources: Iterable[str]) -> list[tuple[str, int | None]]:
    """(source, step) of each checkpoint, by step where every one has a step, else in the order given.

    A pattern (`run/checkpoint-*`) stands for the paths that it matches; a directory whose sub-directories, or else
    whose files of weights, are named by steps, for those.

    Raises
    ------
    InputError
        if a pattern matches nothing, or nothing is named at all.
    """
    found: list[str] = []
    for source in sources:
        if any(mark in source for mark in "*?[") and not Path(source).exists():
            matched = sorted(glob.glob(source))  # noqa: PTH207 - the pattern may be absolute
            if not matched:
                raise InputError(f"{source}: no path matches this pattern")
            found += matched
        else:
            found += _run(source) or [source]
    if not found:
        raise InputError("no checkpoint given: name directories, files, a pattern or a run directory")
    named = [(source, step_of(source)) for source in dict.fromkeys(found)]
    if all(step is not None for _, step in named):
        return sorted(named, key=lambda item: item[1] or 0)
    return named


def _run(source: str) -> list[str]:
    """Checkpoints of a run directory; empty where it is none (it may be a checkpoint itself)."""
    path = Path(source)
    if not path.is_dir():
        return []
    named = sorted(item for item in path.iterdir() if step_of(item.name) is not None)
    folders = [str(item) for item in named if item.is_dir()]
    return folders or [str(item) for item in named if item.name.endswith(_FILES)]
