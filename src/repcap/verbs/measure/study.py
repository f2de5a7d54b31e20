"""`measure` is what several verbs share, so it lies below them: `repcap.studies.measured`."""

from __future__ import annotations

from repcap.studies.measured import Measured, measure, measure_both

__all__ = ["Measured", "measure", "measure_both"]
