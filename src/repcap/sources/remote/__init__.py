"""The network. `open_remote` is imported when it is first used, after a look at the variables that its imports read."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from repcap.sources.remote.hub_environment import check_environment

if TYPE_CHECKING:
    from repcap.sources.remote.hub import open_remote

__all__ = ["open_remote"]


def __getattr__(name: str) -> Any:
    if name == "open_remote":
        check_environment()
        return import_module("repcap.sources.remote.hub").open_remote
    raise AttributeError(f"module 'repcap.sources.remote' has no attribute {name!r}")
