"""An explicit set on disk, and what is true of the file: measured over all pairs where that is quick, else proven."""

from __future__ import annotations

import dataclasses
import json
import os
from typing import ClassVar

import torch

from repcap.constructions.lines import Lines
from repcap.errors import OptionError
from repcap.matrix import ProgressFn
from repcap.options import verb
from repcap.packing.coherence import coherence
from repcap.packing.solve import lower_bound
from repcap.packing.vector_files import Stored, check_room, write_vectors
from repcap.result import Result

CHECKED = 40_000
"""Vectors of a set up to which all pairs are measured."""

ROUNDED = 1e-14
"""What computing the entries in float64 may add to a cosine."""

DTYPES = {"float32": torch.float32, "float64": torch.float64}


@dataclasses.dataclass(frozen=True, repr=False)
class Written(Result):
    """k lines in R^d of an explicit set."""

    kind: ClassVar[str] = "construction"
    k: int
    d: int
    name: str
    coherence: float
    """Measured on the numbers as they are stored, or what the theorem says."""
    coherence_claimed: float
    exact: bool
    """Whether the theorem gives the value itself, not a bound on it."""
    evidence: str
    dtype: str
    rounding: float
    """What storing the entries as `dtype` may add to a cosine."""
    lower_bound: float
    lower_bound_name: str
    path: str | None = None

    @property
    def title(self) -> str:
        return f"{self.name}: {self.k} lines in R^{self.d}"

    @property
    def numbers(self) -> str:
        return f"coherence {self.coherence:.6g}, proven to be at least {self.lower_bound:.6g}"

    @property
    def reading(self) -> str:
        return f"The largest |cosine| of these {self.k} lines is {self.coherence:.6g}, {self.evidence}."

    def _folder(self) -> str:
        return "pack"


@verb
def write_set(
    lines: Lines,
    path: str | os.PathLike[str] | None = None,
    precision: str = "float32",
    *,
    on_progress: ProgressFn | None = None,
) -> Written:
    """Measure or quote the coherence of an explicit set, and write it to `path` if one is given, by blocks of rows.

    Raises
    ------
    InputError
        if it does not fit where `path` lies, or `precision` is neither float32 nor float64.
    """
    if precision not in DTYPES:
        raise OptionError("precision", precision, "vectors are written as float32 or float64")
    k, d, dtype = lines.count, lines.dim, DTYPES[precision]
    if path is not None:
        check_room(path, k, d, dtype)
    measured = coherence(Stored(lines, dtype), on_progress=on_progress).value if 2 <= k <= CHECKED else None
    bound, bound_name = lower_bound(k, d) if k > 1 else (0.0, "one vector")
    found = Written(
        k=k, d=d, name=lines.name, coherence=lines.claimed if measured is None else measured,
        coherence_claimed=lines.claimed, exact=lines.exact,
        evidence="proven" if measured is None else "measured over all pairs", dtype=precision,
        rounding=max(torch.finfo(dtype).eps, ROUNDED), lower_bound=bound, lower_bound_name=bound_name,
        path=None if path is None else str(path),
    )  # fmt: skip
    if path is not None:
        known = {"k": k, "d": d, "coherence": found.coherence, "method": f"construction: {lines.name}"}
        metadata = {name: str(value) for name, value in known.items()}
        write_vectors(path, lines, {**metadata, "repcap": json.dumps(found.values())}, dtype, on_progress)
    return found
