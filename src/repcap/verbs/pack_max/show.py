"""What the terminal shows of the most lines within a coherence."""

from __future__ import annotations

import math
from collections.abc import Iterator

from rich.console import RenderableType

from repcap.console.common import new_table
from repcap.numerics import format_power
from repcap.packing.largest import PackMax
from repcap.text import abridged


def parts(result: PackMax) -> Iterator[RenderableType]:
    table = new_table(f"Lines in R^{result.d} with |cos| <= {result.epsilon:g}", "", ">", "")
    table.add_row("shown", str(result.k) if result.k < 10**12 else f"{result.k:.6g}", abridged(result.method))
    table.add_row("coherence", f"{result.coherence:.9g}", result.evidence)
    if result.known_log10_k > math.log10(result.k) + 1e-9:
        table.add_row("known on paper", format_power(result.known_log10_k), abridged(result.known_name))
    table.add_row("proven limit", format_power(result.upper_log10_k), result.upper_name)
    table.add_row("searches", str(len(result.trials)), f"{result.seconds:.1f} s")
    if result.path:
        table.add_row("vectors", "", result.path)
    yield table
