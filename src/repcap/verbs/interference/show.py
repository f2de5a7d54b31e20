"""What the terminal shows of reading features out of directions."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType

from repcap.console.common import new_table
from repcap.console.prose import prose
from repcap.verbs.interference.study import Interference


def parts(result: Interference) -> Iterator[RenderableType]:
    """One table a set of directions."""
    for one in result.sets:
        table = new_table(
            f"\n{one.method} ({one.label}): coherence {one.coherence:.4f}, rms cosine {one.rms_cosine:.4f} "
            f"(least possible {one.welch_rms:.4f})",
            ">active",
            ">rms on",
            ">rms idle",
            ">predicted",
            ">worst",
            ">found",
            ">dual rms",
            ">found",
            ">omp",
        )
        for s in result.active:
            direct, dual, omp = (r for r in one.readouts if r.active == s)  # in the order of READOUTS
            predicted = "" if direct.predicted_idle is None else f"{direct.predicted_idle:.4f}"
            table.add_row(
                str(s),
                f"{direct.rms_active:.4f}",
                f"{direct.rms_idle:.4f}",
                predicted,
                f"{direct.worst:.4f}",
                f"{direct.recovery:.1%}",
                f"{dual.rms_idle:.4f}",
                f"{dual.recovery:.1%}",
                f"{omp.recovery:.1%}",
            )
        yield table
    yield prose(result.reading)
