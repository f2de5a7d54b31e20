"""repcap: how many near-orthogonal directions fit into a language model's latent space.

The names below are imported when they are first used, so `import repcap` loads neither torch nor anything else heavy.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from repcap._version import __version__

_PUBLIC: dict[str, str] = {
    "Measurement": "repcap.geometry.measurement",
    "Moments": "repcap.geometry.moments",
    "measure": "repcap.studies.measure",
    "capacity": "repcap.laws.capacity",
    "compare": "repcap.studies.compare",
    "track": "repcap.studies.track",
    "probes": "repcap.studies.probes",
    "latents": "repcap.studies.latents",
    "design": "repcap.studies.design",
    "fit": "repcap.laws.fit",
    "interference": "repcap.studies.interference",
    "neighbours": "repcap.studies.neighbours",
    "Packing": "repcap.packing.result",
    "pack": "repcap.packing.solve",
    "pack_max": "repcap.packing.largest",
    "pairs": "repcap.studies.pairs",
    "reproduce": "repcap.studies.reproduce",
    "inspect_source": "repcap.sources",
    "survey": "repcap.studies.survey",
    "Store": "repcap.store",
    "open_source": "repcap.sources",
}
"""Public name -> module that defines it."""

__all__ = ["__version__", *_PUBLIC]


def __getattr__(name: str) -> Any:
    if name in _PUBLIC:
        value = getattr(import_module(_PUBLIC[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'repcap' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_PUBLIC])
