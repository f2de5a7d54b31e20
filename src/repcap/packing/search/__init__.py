"""The optimisers of `pack`. One more is one file (see `method.py`) and one line here."""

from __future__ import annotations

from repcap.packing.search.adam_pnorm import AdamPnorm
from repcap.packing.search.method import Method
from repcap.packing.search.optimise import Optimise
from repcap.packing.search.random_lines import RandomLines

METHODS: dict[str, type[Method]] = {
    "optimise": Optimise,
    "random": RandomLines,
    "adam-pnorm": AdamPnorm,
}
"""Name, as `pack(method=...)` and `--method` take it, -> the class that carries its parameters."""

__all__ = ["METHODS", "AdamPnorm", "Method", "Optimise", "RandomLines"]
