"""Callbacks that log epsilon of a model's embedding while it trains.

`repcap.integrations.EpsilonCallback` serves the Trainer of transformers, and
`repcap.integrations.lightning.EpsilonCallback` serves Lightning. Neither framework is imported before its callback is
asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_WHERE = {"EpsilonCallback": "repcap.integrations.trainer"}

__all__ = ["EpsilonCallback"]


def __getattr__(name: str) -> Any:
    if name in _WHERE:
        return getattr(import_module(_WHERE[name]), name)
    raise AttributeError(f"module 'repcap.integrations' has no attribute {name!r}")
