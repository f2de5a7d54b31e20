"""Where matrices come from. `open_source` gives a Matrix, `inspect_source` says what a source offers."""

from __future__ import annotations

from repcap.sources.opening import inspect_source, open_checkpoint, open_source, pin_source

__all__ = ["inspect_source", "open_checkpoint", "open_source", "pin_source"]
