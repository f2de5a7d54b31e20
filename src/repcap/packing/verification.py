"""Given vectors, whoever made them: their coherence in float64 against every bound, set and law that is known here."""

from __future__ import annotations

import dataclasses
import math
import os
from typing import Any, ClassVar

import numpy
import torch

from repcap.constructions import best as constructions
from repcap.errors import DomainError
from repcap.laws import curves
from repcap.laws.limits import bounds, existence, levenshtein, welch
from repcap.matrix import Matrix, ProgressFn
from repcap.options import verb
from repcap.packing.coherence import Coherence, coherence
from repcap.packing.vector_files import open_vectors
from repcap.result import Result

ORDERS = range(1, 9)
"""Welch bounds that are listed; the best of all orders is below Levenshtein's."""


@dataclasses.dataclass(frozen=True, repr=False)
class Verification(Result):
    """What is true of k vectors in R^d."""

    kind: ClassVar[str] = "verification"
    k: int
    d: int
    coherence: float
    """max |cos| over all pairs, float64."""
    pair: tuple[int, int]
    """Two rows that attain it."""
    lower_bounds: dict[str, float]
    """Proven: no k vectors in R^d have less. Welch by orders, orthoplex (where it applies), Levenshtein, the best."""
    ratio_to_bound: float | None
    """coherence / the best lower bound; None where the bound is 0."""
    random: float | None
    """Median coherence of k random directions (predicted)."""
    exists: float | None
    """Random coding proves that some k vectors have this."""
    explicit: float
    """Least coherence of the explicit sets, and the name of the set."""
    explicit_name: str
    laws: dict[str, float]
    """What the published laws say of (k, d)."""
    source: str
    metadata: dict[str, str]
    """What the file says of itself, as read; nothing of it is believed."""

    @property
    def title(self) -> str:
        return f"{self.k} vectors in R^{self.d}"

    @property
    def numbers(self) -> str:
        return f"coherence {self.coherence:.6g}, proven to be at least {self.lower_bounds['best']:.6g}"

    @property
    def reading(self) -> str:
        angle = math.degrees(math.acos(self.coherence))
        return (
            f"Rows {self.pair[0]} and {self.pair[1]} are the closest, at {angle:.5g} degrees. "
            f"The best explicit set has coherence {self.explicit:.6g}."
        )

    def _folder(self) -> str:
        return "pack"


@verb
def verify(
    vectors: str | os.PathLike[str] | Matrix | torch.Tensor | numpy.ndarray[Any, Any],
    *,
    on_progress: ProgressFn | None = None,
) -> Verification:
    """Measure the vectors (a .safetensors, .npy or .txt file, or a table (k, d)) and set them against what is known.

    Time k^2 d multiply-adds in float64; memory a few blocks of rows.

    Raises
    ------
    InputError, VectorsError
        if the file cannot be read, or a row has no direction.
    """
    metadata: dict[str, str] = {}
    if isinstance(vectors, (str, os.PathLike)):
        vectors, metadata = open_vectors(vectors)
    found = coherence(vectors, on_progress=on_progress)
    source = vectors.info.source if isinstance(vectors, Matrix) else type(vectors).__name__
    return against_bounds(found, source, metadata)


def against_bounds(found: Coherence, source: str = "", metadata: dict[str, str] | None = None) -> Verification:
    """The measured coherence of k vectors in R^d beside every bound, set and law."""
    k, d = found.count, found.dim
    best = bounds.coherence_lower_bound(k, d).value
    explicit = constructions.best_coherence(k, d)
    return Verification(
        k=k,
        d=d,
        coherence=found.value,
        pair=found.pair,
        lower_bounds={**_bounds(k, d), "best": best},
        ratio_to_bound=found.value / best if best > 0 else None,
        random=_defined(lambda: existence.random_coherence(k, d)),
        exists=_defined(lambda: existence.gilbert_varshamov_coherence(k, d)),
        explicit=explicit.coherence,
        explicit_name=explicit.name,
        laws={
            curve.key: value
            for law, curve in curves()
            if curve.fitted
            and (value := _defined(lambda law=law, curve=curve: law.epsilon(k, d, **curve.params))) is not None
        },
        source=source,
        metadata=metadata or {},
    )


def _defined(value: Any) -> float | None:
    try:
        result = float(value())
    except DomainError:
        return None
    return result if math.isfinite(result) else None


def _bounds(k: int, d: int) -> dict[str, float]:
    if k <= d or d < 2:
        return {}
    orders = {f"Welch, order {order}": welch.coherence(k, d, order) for order in ORDERS}
    named = {name: value for name, value in orders.items() if value > 0}
    if k > d * (d + 1) // 2:
        named["orthoplex"] = d**-0.5
    levels = levenshtein.coherence(d, math.log(k)) if d > 2 else None
    if levels is not None:
        named["Levenshtein"] = levels[0]
    return named
